/**
 * A model of leasing in memory. Several actions run concurrently; afterwards the database must hold what they result in
 * in some order: no URL in two open leases, none with a result that counted twice, and none lost.
 */
import type { CrawlerId } from "#core/ids";
import type { Lease } from "#protocol/lease";

interface OpenLease {
  readonly crawlerId: CrawlerId;
  readonly host: string;
  readonly expiresMs: number;
  /** Without a result yet. */
  readonly urls: ReadonlySet<string>;
}

/** What was done, and what the store said of it. */
export type Deed =
  | { readonly type: "admitted"; readonly urls: readonly string[]; readonly count: number }
  | { readonly type: "leased"; readonly crawlerId: CrawlerId; readonly leases: readonly Lease[] }
  | {
      readonly type: "taken";
      readonly leaseId: string;
      readonly urls: readonly string[];
      readonly count: number;
    }
  | { readonly type: "returned"; readonly leaseIds: readonly string[]; readonly count: number }
  | {
      readonly type: "left";
      readonly crawlerId: CrawlerId;
      readonly held: readonly string[];
      readonly count: number;
    }
  | { readonly type: "expired"; readonly count: number };

/** What the database holds after them. */
export interface Found {
  readonly leases: ReadonlyMap<string, readonly string[]>;
  readonly urls: ReadonlyMap<string, { readonly dueMs: number; readonly visits: number }>;
}

type Ended = Extract<Deed, { type: "returned" | "left" | "expired" }>;

export class LeaseModel {
  /** Every URL, leased or not. */
  readonly urls = new Map<string, { dueMs: number; visits: number }>();
  readonly open = new Map<string, OpenLease>();
  readonly #leaseMs: number;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** Does them, as far as `found` tells in which order they were done; throws where it tells of none. */
  apply(deeds: readonly Deed[], found: Found, nowMs: number): void {
    this.#admit(ofType(deeds, "admitted"), nowMs);
    this.#take(deeds, found);
    const ended = this.#end(deeds, found, nowMs);
    for (const { crawlerId, leases } of ofType(deeds, "leased"))
      for (const lease of leases) this.#lease(lease, crawlerId, nowMs);
    // Some may have ended as soon as they began.
    const count = ended + this.#end(deeds, found, nowMs);
    const told = deeds.filter(isEnd).reduce((sum, deed) => sum + deed.count, 0);
    check(count === told, `${told} leases were said to end, and ${count} did`);
  }

  #admit(deeds: readonly Extract<Deed, { type: "admitted" }>[], nowMs: number): void {
    const added = new Set(deeds.flatMap(({ urls }) => urls).filter((url) => !this.urls.has(url)));
    const told = deeds.reduce((sum, { count }) => sum + count, 0);
    check(added.size === told, `${told} URLs were said to be new, and ${added.size} are`);
    for (const url of added) this.urls.set(url, { dueMs: nowMs, visits: 0 });
  }

  /** Those count that a lease holds, once each; all of them where nobody ends the lease meanwhile. */
  #take(deeds: readonly Deed[], found: Found): void {
    const taken = ofType(deeds, "taken");
    let count = 0;
    for (const [leaseId, lease] of this.open) {
      const asked = new Set(taken.filter((deed) => deed.leaseId === leaseId).flatMap(({ urls }) => urls));
      const held = [...lease.urls].filter((url) => asked.has(url));
      const counted = held.filter((url) => found.urls.get(url)!.visits > this.urls.get(url)!.visits);
      check(
        counted.length === held.length || deeds.some((deed) => mayEnd(deed, leaseId, lease)),
        `of ${held.length} results of lease ${leaseId} ${counted.length} count`,
      );
      count += counted.length;
      for (const url of counted) {
        this.urls.set(url, { dueMs: found.urls.get(url)!.dueMs, visits: this.urls.get(url)!.visits + 1 });
      }
      const left = new Set([...lease.urls].filter((url) => !counted.includes(url)));
      if (left.size === 0) this.open.delete(leaseId);
      else this.open.set(leaseId, { ...lease, urls: left });
    }
    const told = taken.reduce((sum, deed) => sum + deed.count, 0);
    check(count === told, `${told} results were said to count, and ${count} do`);
  }

  #end(deeds: readonly Deed[], found: Found, nowMs: number): number {
    const gone = [...this.open].filter(([leaseId]) => !found.leases.has(leaseId));
    for (const [leaseId, lease] of gone) {
      const isDue = (deed: Deed) => deed.type !== "expired" || lease.expiresMs <= nowMs;
      check(
        deeds.some((deed) => mayEnd(deed, leaseId, lease) && isDue(deed)),
        `lease ${leaseId} of ${lease.host} ended, and nobody ended it`,
      );
      this.open.delete(leaseId);
    }
    return gone.length;
  }

  #lease({ leaseId, host, urls }: Lease, crawlerId: CrawlerId, nowMs: number): void {
    const other = [...this.open.values()].find((one) => one.host === host);
    check(other === undefined, `${host} was leased twice`);
    for (const { url } of urls) {
      const known = this.urls.get(url);
      check(known !== undefined && known.dueMs <= nowMs, `${url} was leased and is not due`);
    }
    const held = new Set(urls.map(({ url }) => url));
    check(held.size === urls.length && held.size > 0, `lease ${leaseId} has a URL twice, or none`);
    this.open.set(leaseId, { crawlerId, host, expiresMs: nowMs + this.#leaseMs, urls: held });
  }
}

const isEnd = (deed: Deed): deed is Ended =>
  deed.type === "returned" || deed.type === "left" || deed.type === "expired";

function mayEnd(deed: Deed, leaseId: string, { crawlerId }: OpenLease): boolean {
  if (deed.type === "returned") return deed.leaseIds.includes(leaseId);
  if (deed.type === "left") return deed.crawlerId === crawlerId && !deed.held.includes(leaseId);
  return deed.type === "expired";
}

function ofType<Type extends Deed["type"]>(deeds: readonly Deed[], type: Type) {
  return deeds.filter((deed): deed is Extract<Deed, { type: Type }> => deed.type === type);
}

function check(holds: boolean, words: string): asserts holds {
  if (!holds) throw new Error(words);
}

/** What the flows know of the crawlers: all that are registered, as they are stored, and the connected fleet. */
import type { CrawlerId, LeaseId, SubnetId } from "#core/ids";
import { formatAddress, parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import type { KeyScope } from "#protocol/identity";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { Partition } from "../domain-sets/partition.ts";

export interface CrawlerRecord {
  readonly crawlerId: CrawlerId;
  readonly name: string;
  /** By which it is placed: as its partner states it, else as it is seen. */
  readonly address: string | null;
  /** Where its last connection came from; absent: it has not come yet. */
  readonly seenAddress?: string;
  readonly subnetId: SubnetId | null;
  readonly country: string | null;
  readonly place: string | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
  readonly concurrentHosts: number;
  readonly probeMethods: readonly ProbeMethod[];
  /** True: it contacts no site over IPv6, as its last hello said; absent: it does, or said nothing yet. */
  readonly withoutIpv6?: true;
  readonly state: "online" | "offline" | "draining";
  readonly lastSeenAt: Date | null;
  readonly offlineReason: string | null;
  /** Since when it is to hand its subnets over, online or not; null: it is not. */
  readonly drainingSince: Date | null;
  /** Since when it waits to be given what is nearest to it, having come into a fleet at work; null: it has it. */
  readonly joiningSince: Date | null;
  /** Since when it is where it is: what was measured from and to it before is void. Absent: it has never moved. */
  readonly placedAt?: Date;
  /** Of the coordinator that it is, or was last, connected to. Absent: none said so. */
  readonly coordinatorNumber?: number;
  /** True: its key is for measurements, so it is given no subnet and no lease; absent: it crawls, too. */
  readonly measuresOnly?: true;
  /** Since when its results are not believed; absent: they are. */
  readonly distrustedSince?: Date;
  /** Since when its probe reports are not; absent: they are. */
  readonly probesDoubtedSince?: Date;
  /** Which hosts it may have by its domain sets; absent: any. */
  readonly partition?: Partition;
}

/**
 * Where other crawlers measure the way to it: what is stated alone is not believed where something else of the public
 * Internet is seen, or a crawler could have the whole fleet measure the way to a stranger.
 */
export function peerAddressOf({ address, seenAddress }: CrawlerRecord): string | null {
  const seen = parseAddress(seenAddress ?? "");
  return seen !== null && specialPurposeOf(seen) === null ? formatAddress(seen) : address;
}

export interface PeerRtt {
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly rttMs: number;
  readonly method: ProbeMethod;
}

/** `partner`: whoever hosts it. */
export type DrainedBy = "operator" | "partner";

/** The connected fleet, as the gateway offers it. */
export interface Fleet {
  online(): readonly CrawlerId[];
  /** Asks a crawler to measure; resolves with its report, or with a `failed` outcome when it is gone or silent past the deadline. Never rejects. */
  probe(
    crawlerId: CrawlerId,
    target: {
      host: string;
      address: string;
      /** True: the address that the crawler itself resolves the host to is measured, and reported with the outcome. */
      byName?: boolean;
      port: number;
      secure: boolean;
      method: ProbeMethod;
      tries: number;
      deadlineMs: number;
    },
  ): Promise<ProbeOutcome>;
}

/** What a probe comes to where nobody reports whether the target was asked. */
export function unreported(method: ProbeMethod, reason: string): ProbeOutcome {
  return { type: "failed", code: "unreported", method, reason: reason.slice(0, 500) };
}

/** Neither its results nor its probe reports are doubted; one that is not registered any more is not believed. */
export function isBelieved(crawler: CrawlerRecord | null): boolean {
  if (crawler === null) return false;
  return crawler.distrustedSince === undefined && crawler.probesDoubtedSince === undefined;
}

// Pages and bytes that each crawler has fetched today (UTC), against what its partner allows a day (paper
// section 4.4: the size a crawler has to check each day). Kept in memory and read back from the fetches at
// the start. A result is counted when it arrives, so the crawler's own limit, which counts at once, is the
// one that holds to the byte.

interface Spent {
  readonly pages: number;
  readonly bytes: number;
}

/** A crawler and its partner's limits. */
interface DayLimits {
  readonly crawlerId: CrawlerId;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
}

const msPerDay = 86_400_000;
const nothing: Spent = { pages: 0, bytes: 0 };

/** The usual size of a page counts as much as so many pages of today. */
const pagesOfUsualSize = 5;

export class DayBudget {
  #day = Number.NaN;
  readonly #spent = new Map<CrawlerId, Spent>();
  /** Told of what `spend` is told. */
  onSpend: (crawlerId: CrawlerId, spent: Spent) => void = () => {};

  /** What was fetched today before this coordinator started. */
  restore(spent: readonly (Spent & { readonly crawlerId: CrawlerId })[], now: Date): void {
    for (const one of spent) this.hear(one.crawlerId, one, now);
  }

  spend(crawlerId: CrawlerId, spent: Spent, now: Date): void {
    this.hear(crawlerId, spent, now);
    this.onSpend(crawlerId, spent);
  }

  /** Spent by way of another coordinator. */
  hear(crawlerId: CrawlerId, { pages, bytes }: Spent, now: Date): void {
    this.#turnPage(now);
    const before = this.#spent.get(crawlerId) ?? nothing;
    this.#spent.set(crawlerId, { pages: before.pages + pages, bytes: before.bytes + bytes });
  }

  /** What was fetched today. */
  spent(crawlerId: CrawlerId, now: Date): Spent {
    this.#turnPage(now);
    return this.#spent.get(crawlerId) ?? nothing;
  }

  /** Pages that both limits still allow today, at the mean size of today's pages. */
  left({ crawlerId, pagesPerDay, bytesPerDay }: DayLimits, now: Date): number {
    const { pages, bytes } = this.spent(crawlerId, now);
    const meanPageBytes = (bytes + pagesOfUsualSize * defaultMeanPageBytes) / (pages + pagesOfUsualSize);
    const pagesInBytes = bytes >= bytesPerDay ? 0 : Math.ceil((bytesPerDay - bytes) / meanPageBytes);
    return Math.max(0, Math.min(pagesPerDay - pages, pagesInBytes));
  }

  #turnPage(now: Date): void {
    const day = Math.floor(now.getTime() / msPerDay);
    if (day === this.#day) return;
    this.#day = day;
    this.#spent.clear();
  }
}

/** Pages and bytes a day; null: as the partner allows. */
export interface Budget {
  readonly pagesPerDay: number | null;
  readonly bytesPerDay: number | null;
}

/** What is left out stays as it is. */
export type BudgetChange = Partial<Budget>;

export interface ChangedBudget {
  readonly before: Budget;
  readonly granted: Budget;
  /** The least of what is granted and what the partner allows. */
  readonly inForce: { readonly pagesPerDay: number; readonly bytesPerDay: number };
}

export interface Absence {
  readonly since: Date;
  readonly until: Date;
  /** The coordinator's own record. */
  readonly reason: string;
  /** How the process before ended, as it says; null: it did not end, or did not say. */
  readonly lastWords: string | null;
}

export interface IssuedKey {
  readonly keyId: number;
  readonly scopes: readonly KeyScope[];
  readonly issuedAt: Date;
  /** Null: nobody has said or shown that it arrived. */
  readonly keptAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

export interface CrawlerName {
  readonly crawlerId: number;
  readonly name: string;
  readonly state: "online" | "offline" | "draining";
}

// Who is over capacity (paper section 4.4: "the size of the assigned web-pages that the crawler has to check
// each day"). A partner states pages and bytes per day, and neither may be exceeded.

/** Taken while no page has been measured yet: the page that our crawl benchmarks use. */
export const defaultMeanPageBytes = 40_000;

/** Leases of a crawler come back to the frontier. */
export interface LeaseReturns {
  /** Returns how many came back. `held`: leases that it says it still has. */
  returnLeasesOf(crawlerId: CrawlerId, now: Date, held?: readonly LeaseId[]): Promise<number>;
}

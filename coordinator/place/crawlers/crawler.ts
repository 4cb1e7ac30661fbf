/** The registered crawlers as stored, and the connected fleet. */
import type { CrawlerId, HostHash, LeaseId, SubnetId } from "#core/ids";
import { formatAddress, parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import type { KeyScope } from "#protocol/identity";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import type { Partition } from "../domain-sets/partition.ts";

export const crawlerStates = ["online", "offline", "draining"] as const;

export interface CrawlerIdentity {
  readonly crawlerId: CrawlerId;
  readonly name: string;
}

interface CrawlerPlace {
  /** The address that locates it: stated by its partner, otherwise the observed one. */
  readonly address: string | null;
  /** Source address of its last connection. Absent until it first connects. */
  readonly seenAddress?: string;
  readonly subnetId: SubnetId | null;
  readonly country: string | null;
  readonly place: string | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
  /** When it moved to its current location, which voids earlier RTTs from and to it. Absent if it never moved. */
  readonly placedAt?: Date;
}

export interface DayLimits {
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
}

/** What the crawler is allowed and able to do. */
export interface CrawlerLimits extends DayLimits {
  readonly concurrentHosts: number;
  readonly probeMethods: readonly ProbeMethod[];
  /** Set if its last hello said that it contacts no site over IPv6. */
  readonly withoutIpv6?: true;
  /** Set if its key only allows measurements. It gets no subnets or leases. */
  readonly measuresOnly?: true;
  /** Hosts allowed by its domain sets. If absent, any host is allowed. */
  readonly partition?: Partition;
}

interface CrawlerPresence {
  readonly state: (typeof crawlerStates)[number];
  readonly lastSeenAt: Date | null;
  readonly offlineReason: string | null;
  /** When it began draining, online or not. Null if it is not draining. */
  readonly drainingSince: Date | null;
  /** Since when it waits for the subnets nearest to it, after joining a working fleet. Null if it has them. */
  readonly joiningSince: Date | null;
  /** The coordinator that it is or was last connected to. */
  readonly coordinatorNumber?: number;
}

interface CrawlerDoubts {
  /** Time from which its results are not believed. */
  readonly distrustedSince?: Date;
  /** Time from which its probe reports are not believed. */
  readonly probesDoubtedSince?: Date;
}

/** The complete record of a crawler. All other types of a crawler are picked from it. */
export interface CrawlerRecord
  extends CrawlerIdentity,
    CrawlerPlace,
    CrawlerLimits,
    CrawlerPresence,
    CrawlerDoubts {}

/**
 * The address at which other crawlers measure it. A stated address alone is not used if another public one is observed, since
 * a crawler could otherwise have the whole fleet probe a stranger.
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

/** `partner` is the host of the crawler. */
export type DrainedBy = "operator" | "partner";

/** The connected fleet, provided by the gateway. */
export interface Fleet {
  online(): readonly CrawlerId[];
  /**
   * Asks a crawler to measure. Resolves with its report, or with `failed` if it is gone or misses the deadline. Never
   * rejects.
   */
  probe(
    crawlerId: CrawlerId,
    target: {
      host: string;
      address: string;
      /** If true, probes the address to which the crawler resolves the host, and reports it with the outcome. */
      byName?: boolean;
      port: number;
      secure: boolean;
      method: ProbeMethod;
      tries: number;
      deadlineMs: number;
    },
  ): Promise<ProbeOutcome>;
}

/** Outcome of a probe if no report says whether the target was contacted. */
export function unreported(method: ProbeMethod, reason: string): ProbeOutcome {
  return { type: "failed", code: "unreported", method, reason: reason.slice(0, 500) };
}

/** True if neither results nor probe reports are distrusted. False for unregistered crawlers. */
export function isBelieved(crawler: CrawlerRecord | null): boolean {
  if (crawler === null) return false;
  return crawler.distrustedSince === undefined && crawler.probesDoubtedSince === undefined;
}

// Pages and bytes that each crawler fetched today (UTC), against its partner's daily limits (paper section 4.4: the
// size a crawler has to check each day). Kept in memory and restored from the fetches at start. Results count on
// arrival, so only the crawler's own limit is exact to the byte.

interface Spent {
  readonly pages: number;
  readonly bytes: number;
}

const msPerDay = 86_400_000;
const nothing: Spent = { pages: 0, bytes: 0 };

/** The default page size counts as this many pages in today's mean, so that the first few pages do not distort it. */
const pagesOfUsualSize = 5;

export class DayBudget {
  #day = Number.NaN;
  readonly #spent = new Map<CrawlerId, Spent>();
  /** Called with every `spend`. */
  onSpend: (crawlerId: CrawlerId, spent: Spent) => void = () => {};

  /** Loads what was fetched today before this coordinator started. */
  restore(spent: readonly (Spent & { readonly crawlerId: CrawlerId })[], now: Date): void {
    for (const one of spent) this.hear(one.crawlerId, one, now);
  }

  spend(crawlerId: CrawlerId, spent: Spent, now: Date): void {
    this.hear(crawlerId, spent, now);
    this.onSpend(crawlerId, spent);
  }

  /** Adds what was spent through another coordinator. */
  hear(crawlerId: CrawlerId, { pages, bytes }: Spent, now: Date): void {
    this.#turnPage(now);
    const before = this.#spent.get(crawlerId) ?? nothing;
    this.#spent.set(crawlerId, { pages: before.pages + pages, bytes: before.bytes + bytes });
  }

  spent(crawlerId: CrawlerId, now: Date): Spent {
    this.#turnPage(now);
    return this.#spent.get(crawlerId) ?? nothing;
  }

  /** Pages that both limits still allow today, at today's mean page size. */
  left(
    { crawlerId, pagesPerDay, bytesPerDay }: DayLimits & Pick<CrawlerIdentity, "crawlerId">,
    now: Date,
  ): number {
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

/** Pages and bytes per day. `null` means the partner's limit. */
export type Budget = { readonly [Limit in keyof DayLimits]: DayLimits[Limit] | null };

/** Omitted values stay unchanged. */
export type BudgetChange = Partial<Budget>;

export interface ChangedBudget {
  readonly before: Budget;
  readonly granted: Budget;
  /** The smaller of the grant and the partner's limit. */
  readonly inForce: DayLimits;
}

export interface Absence {
  readonly since: Date;
  readonly until: Date;
  /** Recorded by the coordinator. */
  readonly reason: string;
  /** The crawler's own account of how its former process ended. Null if it did not end or gave no account. */
  readonly lastWords: string | null;
}

export interface IssuedKey {
  readonly keyId: number;
  readonly scopes: readonly KeyScope[];
  readonly issuedAt: Date;
  /** When the crawler confirmed or first used the key. Null before. */
  readonly keptAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

export type CrawlerName = Pick<CrawlerRecord, "name" | "state"> & { readonly crawlerId: number };

// Which crawlers are over capacity (paper section 4.4: "the size of the assigned web-pages that the crawler has to check each
// day"). A partner states pages and bytes per day, neither of which may be exceeded.

/** Page size assumed until a page has been measured. It is the page size of our crawl benchmarks. */
export const defaultMeanPageBytes = 40_000;

/** Returns a crawler's leases to the frontier. */
export interface LeaseReturns {
  /** Returns how many leases were returned. `held` lists the leases that the crawler says it still has. */
  returnLeasesOf(crawlerId: CrawlerId, now: Date, held?: readonly LeaseId[]): Promise<number>;
}

interface KnownFleet {
  readonly crawlers: readonly CrawlerRecord[];
}

/** A crawler gets no new subnet if it is draining, distrusted, for measurements only, or has used up its daily pages or bytes. */
export function crawlersWithoutRoom(state: KnownFleet, budget: DayBudget, now: Date): ReadonlySet<CrawlerId> {
  const full = state.crawlers.filter(
    (crawler) =>
      crawler.state === "draining" ||
      crawler.measuresOnly === true ||
      !isBelieved(crawler) ||
      budget.left(crawler, now) <= 0,
  );
  return new Set(full.map(({ crawlerId }) => crawlerId));
}

/** How long the answer is cached, since thousands of rounds may start per second. */
const roomKeptMs = 200;

/** Extra caching time per crawler, since a large fleet takes longer to check: 2 s for 10,000. */
const roomKeptMsPerCrawler = 0.2;

/** Does what `crawlersWithoutRoom` does, but caches the answer briefly and recomputes it when the crawlers change. */
export function watchRoom(state: KnownFleet, budget: DayBudget): (now: Date) => ReadonlySet<CrawlerId> {
  let seen: { crawlers: KnownFleet["crawlers"]; atMs: number; full: ReadonlySet<CrawlerId> } | null = null;
  return (now) => {
    const { crawlers } = state;
    const atMs = now.getTime();
    // The clock may also be set back.
    const keptMs = Math.max(roomKeptMs, roomKeptMsPerCrawler * crawlers.length);
    const isFresh = seen !== null && seen.crawlers === crawlers && Math.abs(atMs - seen.atMs) < keptMs;
    if (!isFresh) seen = { crawlers, atMs, full: crawlersWithoutRoom(state, budget, now) };
    return seen!.full;
  };
}

/**
 * The steps of a crawler's move to another host, and which of the two hosts may run it. At every step exactly one may: one
 * row of the database decides, and it changes once.
 *
 *     asked → emptying → packing → sending → moved → running
 *       └────────┴──────────┴─────────┴→ failed
 */

export const moveSteps = ["asked", "emptying", "packing", "sending", "moved", "running", "failed"] as const;
export type MoveStep = (typeof moveSteps)[number];

/** Steps at which a move can still fail and the old host runs the crawler. */
export const openMoveSteps: readonly MoveStep[] = ["asked", "emptying", "packing", "sending"];

/** Maximum seconds of a step without progress. `null` means unlimited. */
export const stepSeconds: Readonly<Record<MoveStep, number | null>> = {
  asked: 30,
  emptying: 90,
  packing: 120,
  sending: 60,
  moved: null,
  running: null,
  failed: null,
};

// A batch of results as a crawler sent it, shared by all rooms.

export interface WireResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  readonly wireBytes: number;
}

export interface ResultBatch {
  readonly crawlerId: CrawlerId;
  readonly spoolId: string;
  readonly results: readonly WireResult[];
}

/** A stored fetch with its times. */
export interface RecentFetch {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly crawlerId: CrawlerId;
  readonly subnetId: SubnetId | null;
  readonly fetchedAt: Date;
  readonly firstByteMs: number | null;
  readonly connectMs: number | null;
  readonly totalMs: number;
}

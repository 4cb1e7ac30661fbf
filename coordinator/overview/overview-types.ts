/** What operators look at beyond totals: how it went, what waits and why, what fails, how near the delegations are. */

import type { ChartHistory } from "#core/chart-history";
import type { TimeRange } from "#core/time-range";
import type { AccuracyCounts, AccuracySampleEntry } from "../delegation/accuracy.ts";
import type { HeldBackDomain } from "../frontier/domain-store.ts";
import type { AlertFacts } from "./alert-facts.ts";
import type { GatedHosts } from "./bot-gate-reads.ts";
import type { FailuresByBlame } from "./minute-figures.ts";

/** How far back a history goes, and what one of its points stands for. */
export const historyRanges = {
  "1h": { words: "1 hour", minutes: 60, stepMinutes: 1 },
  "24h": { words: "24 hours", minutes: 24 * 60, stepMinutes: 15 },
  "7d": { words: "7 days", minutes: 7 * 24 * 60, stepMinutes: 120 },
  "1y": { words: "1 year", minutes: 52 * 7 * 24 * 60, stepMinutes: 7 * 24 * 60 },
} as const;

export type HistoryRange = keyof typeof historyRanges;
export const historyRangeNames = Object.keys(historyRanges) as readonly HistoryRange[];

export interface History {
  readonly range: HistoryRange;
  readonly stepMinutes: number;
  /** Oldest first, one for each step; null where no coordinator wrote anything. */
  readonly points: readonly (HistoryPoint | null)[];
  /** When the first step begins. */
  readonly since: string;
}

/** Means over the minutes of the step that somebody wrote. */
export interface HistoryPoint {
  readonly pagesPerMinute: number;
  readonly fetchedBytesPerMinute: number;
  readonly probesPerMinute: number;
}

/** Counted over a span of time that ends now. */
export interface SpanFigures {
  readonly minutes: number;
  readonly fetches: number;
  readonly pages: number;
  readonly fetchedBytes: number;
  readonly shippedBytes: number;
  readonly rounds: number;
  readonly probes: number;
  readonly failures: FailuresByBlame;
}

/**
 * Why a host that is due is not being fetched, the first that applies.
 *
 *   no-address        DNS was not asked yet, or has given none
 *   no-delegation     no crawler was found for its subnet yet
 *   no-ipv6           it has only IPv6 addresses, and no crawler that is online speaks IPv6, whoever has its subnet
 *   crawler-offline   its crawler is not connected
 *   crawler-draining  its crawler is being emptied
 *   budget            its crawler has fetched today what its partner allows
 *   politeness        the host, or its address, is to be left alone for now
 *   crawler-full      its crawler has as many hosts as it takes, or holds back by itself
 *   in-line           nothing is in the way: its crawler will ask for it
 */
export const waitReasons = [
  "no-address",
  "no-delegation",
  "no-ipv6",
  "crawler-offline",
  "crawler-draining",
  "budget",
  "politeness",
  "crawler-full",
  "in-line",
] as const;
export type WaitReason = (typeof waitReasons)[number];

export interface QueueAge {
  readonly hosts: number;
  /** Since the host's longest due URL could have been fetched; null: nothing waits. */
  readonly medianSeconds: number | null;
  readonly p95Seconds: number | null;
  readonly oldestSeconds: number | null;
}

export interface QueueAges extends QueueAge {
  /** Told from a part of the hosts, since there are many. */
  readonly isEstimate: boolean;
  /** Those that something waits for, in the order of `waitReasons`. */
  readonly reasons: readonly (QueueAge & { readonly reason: WaitReason })[];
  /** Hosts in crawlers' hands counted with those that wait. */
  readonly verdict: Verdict;
}

/**
 * Why a host that is being crawled, or that rests between two leases, goes no faster.
 *
 * back-off      it answered 429 or 503, or not at all
 * site-cap      an operator's cap on its site
 * crawl-delay   its robots.txt asks for it
 * tolerated-rate  it was found to tolerate no more
 * slow-answers  it answers slowly, and our rest is a multiple of the time that it takes
 * usual-pace    none of these: the rest that every host gets
 */
export const paceLimits = [
  "back-off",
  "site-cap",
  "crawl-delay",
  "tolerated-rate",
  "slow-answers",
  "usual-pace",
] as const;
export type PaceLimit = (typeof paceLimits)[number];

/** What the crawl as a whole is limited by; the reasons of waiting hosts, with `politeness` in its kinds. */
export const limitCodes = [
  "nothing-due",
  "no-delegation",
  "no-ipv6",
  "crawler-offline",
  "crawler-draining",
  "budget",
  "crawler-full",
  ...paceLimits,
  "in-line",
  "no-address",
] as const satisfies readonly ("nothing-due" | WaitReason | PaceLimit)[];
/** Nothing is handed out while a coordinator's clock is wrong, whatever else is in the way. */
export const clockLimit = "coordinator-clock";
export type LimitCode = (typeof limitCodes)[number];

export interface Verdict {
  readonly limitedBy: LimitCode | typeof clockLimit;
  /** That it is in the way of; 0: nothing is due. */
  readonly hosts: number;
  /** `limited by 3 hosts' Crawl-delay`. */
  readonly words: string;
}

export interface HostInHand {
  readonly host: string;
  readonly crawler: string;
  /** When its lease began. */
  readonly since: string;
  readonly expiresAt: string;
  /** Of the lease: URLs that were handed out, and those without a result yet. */
  readonly urls: number;
  readonly openUrls: number;
  /** Results since the lease began. */
  readonly urlsPerMinute: number;
  readonly limit: PaceLimit;
  /** Least time between two requests that robots.txt or a cap asks for; null: neither does. */
  readonly delayMs: number | null;
  /** Null: there is no back-off. */
  readonly backOffUntil: string | null;
}

/** `rate` the fastest first, `open` those with the most to do, `since` the longest held. */
export const inHandSorts = ["rate", "open", "since", "host"] as const;
export type InHandSort = (typeof inHandSorts)[number];

export interface HostsInHand {
  readonly at: string;
  /** In all. */
  readonly hosts: number;
  readonly shown: readonly HostInHand[];
}

export interface WaitingHost {
  readonly host: string;
  readonly reason: WaitReason;
  readonly dueAt: string;
  /** Null: the address lies in no registered subnet. */
  readonly range: string | null;
  readonly crawler: string | null;
  /** Politeness: not before; null: at any time. */
  readonly notBefore: string | null;
  /** Politeness: why it is asked slowly, in part sentences. */
  readonly slowBecause: readonly string[];
  /** Why its crawler holds back, in its own words. */
  readonly holdingBack: readonly string[];
}

/** The pages that have charts of the whole crawl. */
export const chartedPages = ["queue", "failures", "accuracy", "trust", "recrawl"] as const;
export type ChartedPage = (typeof chartedPages)[number];

export interface ChartReads {
  charts(page: ChartedPage, range: TimeRange): Promise<ChartHistory>;
  crawlerCharts(
    crawler: { readonly crawlerId: number; readonly name: string },
    range: TimeRange,
  ): Promise<ChartHistory>;
}

export interface OperationReads extends ChartReads {
  history(range: HistoryRange, now: Date): Promise<History>;
  /** Over so many minutes up to now. */
  figures(minutes: number, now: Date): Promise<SpanFigures>;
  queueAges(now: Date): Promise<QueueAges>;
  /** What was left out at the bounds of hosts; at most `shown` of them. */
  leftOutUrls(shown: number): Promise<LeftOutUrls>;
  gatedHosts(now: Date): Promise<GatedHosts>;
  /** Of the hosts at the front of the queue (`front` of them are looked at), the longest due first. */
  longestWaiting(
    query: { readonly reason: WaitReason | null; readonly most: number },
    now: Date,
  ): Promise<WaitingHost[]>;
  hostsInHand(query: { readonly sort: InHandSort; readonly most: number }, now: Date): Promise<HostsInHand>;
  accuracyCounts(now: Date): Promise<AccuracyCounts>;
  accuracySamples(
    query: { readonly most: number; readonly farOnly: boolean },
    now: Date,
  ): Promise<AccuracySampleEntry[]>;
  alertFacts(now: Date): Promise<AlertFacts>;
  crawlerGauges(most: number): Promise<CrawlerGauge[]>;
}

/** What is measured of a crawler that is registered and not shut out. */
export interface CrawlerGauge {
  readonly name: string;
  readonly online: boolean;
  readonly openLeases: number;
  /** On its disk, not acknowledged yet. */
  readonly waitingResults: number;
  /** Fetched and shipped since its own start, as it says. */
  readonly fetchedBytes: number;
  readonly shippedBytes: number;
}

/** The longest due hosts that `longestWaiting` looks through for those of one reason. */
export const queueFront = 5000;

/** URLs that were named beyond what their hosts may have and hold, and left out, each time that they were. */
export interface LeftOutUrls {
  readonly urls: number;
  readonly hosts: number;
  /** There are more hosts than were looked at. */
  readonly more: boolean;
  /** The most first. */
  readonly most: readonly { readonly host: string; readonly urls: number }[];
  /** Registrable domains whose new hosts have to wait, or whose pages' links have; the most first. */
  readonly domains: readonly HeldBackDomain[];
}

/** What a coordinator cannot work without, beside a database that answers and can be written (database/database-watch). */
export interface ReadinessReads {
  /** Names of the migrations that this software has and the database lacks. */
  pendingMigrations(): Promise<readonly string[]>;
  /** Of the registry in force; null: none was imported. */
  currentGeneration(): Promise<number | null>;
}

/** The state of the whole crawl as one JSON value: totals, rates, the fleet, the latest decisions. */
import type { DelegationCause } from "./delegation-causes.ts";
import type { CrawlerReport, SubnetList } from "./who-answer.ts";

/** What only the coordinator's memory knows; plain counts since its start. */
export interface LiveState {
  readonly startedAt: Date;
  /** What it is at, in a few words: "crawling", "waiting for crawlers". */
  readonly phase: string;
  readonly sessions: number;
  readonly roundsUnderWay: number;
  readonly probesUnderWay: number;
  readonly totals: LiveTotals;
}

/** Since the coordinator's start, never decreasing. */
export interface LiveTotals {
  readonly fetches: number;
  readonly pages: number;
  readonly fetchedBytes: number;
  readonly shippedBytes: number;
  readonly rounds: number;
  readonly probes: number;
}

export interface OverviewReads {
  crawlTotals(): Promise<CrawlTotals>;
  fleet(): Promise<FleetLine[]>;
  recentDelegations(limit: number): Promise<RecentDelegation[]>;
  crawlerDetail(crawlerId: number): Promise<Omit<CrawlerDetail, "crawler">>;
}

export interface CrawlTotals {
  readonly hosts: number;
  readonly hostsResolved: number;
  readonly hostsUnresolved: number;
  readonly hostsRefused: number;
  readonly urls: number;
  readonly urlsDue: number;
  readonly urlsLeased: number;
  readonly urlsRefused: number;
  readonly urlsGone: number;
  /** Never fetched yet and still to be. */
  readonly urlsPending: number;
  readonly pages: number;
  /** Of the pages as they are stored now: decoded bodies, and what of them was shipped. */
  readonly bodyBytes: number;
  readonly shippedBytes: number;
  readonly rounds: number;
  readonly probes: number;
  readonly subnetsWaiting: number;
  readonly subnetsDelegated: number;
  readonly meanRttMs: number | null;
  /** Of the registry in force; null before the first import. */
  readonly generation: number | null;
  readonly generationAppliedAt: string | null;
}

export interface FleetLine extends CrawlerReport {
  readonly subnets: number;
  readonly pages: number;
  /** Of the pages that are stored: decoded bodies, and what their results took on the wire. */
  readonly bodyBytes: number;
  readonly shippedBytes: number;
  readonly meanRttMs: number | null;
  readonly openLeases: number;
}

export interface RecentDelegation {
  readonly range: string;
  readonly name: string;
  readonly country: string | null;
  readonly crawler: string;
  readonly rttMs: number | null;
  readonly since: string;
  readonly cause: DelegationCause;
}

export interface CrawlerDetail {
  readonly crawler: FleetLine;
  /** Latest delegations first. */
  readonly subnets: SubnetList;
  readonly peers: readonly { readonly name: string; readonly rttMs: number; readonly method: string }[];
  /** Over the latest fetches of the whole fleet. */
  readonly outcomes: readonly { readonly outcome: string; readonly fetches: number }[];
}

/** Per minute, over the last minute or what there is of it. */
export interface Rates {
  readonly pagesPerMinute: number;
  readonly fetchedBytesPerMinute: number;
  readonly probesPerMinute: number;
  /** Pages per minute, oldest first, one value per `stepSeconds`. */
  readonly pagesHistory: readonly number[];
  readonly stepSeconds: number;
}

export interface Overview {
  readonly at: string;
  readonly startedAt: string;
  readonly phase: string;
  readonly sessions: number;
  readonly roundsUnderWay: number;
  readonly probesUnderWay: number;
  readonly rates: Rates;
  readonly totals: CrawlTotals;
  readonly fleet: readonly FleetLine[];
  readonly recent: readonly RecentDelegation[];
}

const recentShown = 12;

export async function showOverview(
  reads: OverviewReads,
  live: LiveState,
  at: { readonly rates: Rates; readonly now: Date },
): Promise<Overview> {
  const [totals, fleet, recent] = await Promise.all([
    reads.crawlTotals(),
    reads.fleet(),
    reads.recentDelegations(recentShown),
  ]);
  return {
    at: at.now.toISOString(),
    startedAt: live.startedAt.toISOString(),
    phase: live.phase,
    sessions: live.sessions,
    roundsUnderWay: live.roundsUnderWay,
    probesUnderWay: live.probesUnderWay,
    rates: at.rates,
    totals,
    fleet,
    recent,
  };
}

/** One crawler in full; null when there is none of that name. */
export async function showCrawler(reads: OverviewReads, name: string): Promise<CrawlerDetail | null> {
  const crawler = (await reads.fleet()).find((line) => line.name === name);
  if (!crawler) return null;
  return { crawler, ...(await reads.crawlerDetail(crawler.crawlerId)) };
}

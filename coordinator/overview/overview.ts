/**
 * The state of the whole crawl as one JSON value: alerts, rates with their history, what waits, what fails, how much
 * is shipped, how near it is fetched, totals, the fleet, the latest decisions.
 */

import type { DelegationCause } from "#core/delegation-cause";
import { type AccuracyEstimate, accuracyEstimate } from "../delegation/accuracy.ts";
import type { SubnetList } from "../subnets/subnet-reads.ts";
import type { CrawlerReport } from "../who/who-report.ts";
import { type Alert, showAlerts } from "./alert-rules.ts";
import type { History, HistoryRange, OperationReads, QueueAges, SpanFigures } from "./overview-types.ts";

/** What only the coordinator's memory knows; plain counts since its start. */
export interface LiveState {
  readonly startedAt: Date;
  /** What it is at, in a few words: "crawling", "waiting for crawlers". */
  readonly phase: string;
  readonly sessions: number;
  readonly roundsUnderWay: number;
  readonly probesUnderWay: number;
  readonly totals: LiveTotals;
  /** Of the registry that the tree in memory was read from; null: it is empty; left out: there is no tree here. */
  readonly treeGeneration?: number | null;
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

export interface OverviewReads extends OperationReads {
  crawlTotals(): Promise<CrawlTotals>;
  fleet(): Promise<FleetLine[]>;
  recentDelegations(limit: number): Promise<RecentDelegation[]>;
  crawlerDetail(crawlerId: number): Promise<Omit<CrawlerDetail, "crawler">>;
}

export interface CrawlTotals {
  /** Estimated from a part of the table, where that is large. */
  readonly isEstimate: boolean;
  readonly hosts: number;
  readonly hostsResolved: number;
  readonly hostsUnresolved: number;
  readonly hostsRefused: number;
  /** A bot gate answers in their place. */
  readonly hostsGated: number;
  readonly urls: number;
  readonly urlsDue: number;
  readonly urlsLeased: number;
  readonly urlsRefused: number;
  readonly urlsGone: number;
  /** Their sites ask to be paid (402). */
  readonly urlsPaymentRequired: number;
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
  /** Null: told from the database alone, without a coordinator's memory (nearcrawl overview). */
  readonly startedAt: string | null;
  readonly phase: string;
  readonly sessions: number;
  readonly roundsUnderWay: number | null;
  readonly probesUnderWay: number | null;
  /** The worst first; empty: nothing needs attention. */
  readonly alerts: readonly Alert[];
  readonly rates: Rates;
  readonly history: History;
  readonly queue: QueueAges;
  readonly lastHour: SpanFigures;
  readonly lastDay: SpanFigures;
  readonly accuracy: AccuracyEstimate;
  readonly totals: CrawlTotals;
  readonly fleet: readonly FleetLine[];
  readonly recent: readonly RecentDelegation[];
}

const recentShown = 12;
const dayMinutes = 24 * 60;

/** `live` null: as the database tells it; `runs` false: no coordinator works on it, and what it says of crawlers is of then. */
export async function showOverview(
  reads: OverviewReads,
  live: LiveState | null,
  at: {
    readonly rates: Rates | null;
    readonly range: HistoryRange;
    readonly now: Date;
    readonly runs?: boolean;
  },
): Promise<Overview> {
  const { now, range, runs = true } = at;
  const [totals, fleet, recent, history, queue, lastHour, lastDay, counts, { alerts }] = await Promise.all([
    reads.crawlTotals(),
    reads.fleet(),
    reads.recentDelegations(recentShown),
    reads.history(range, now),
    reads.queueAges(now),
    reads.figures(60, now),
    reads.figures(dayMinutes, now),
    reads.accuracyCounts(now),
    showAlerts(reads, now),
  ]);
  const connected = runs ? fleet.filter(({ state }) => state !== "offline").length : 0;
  const phase = connected === 0 ? "waiting for crawlers" : "crawling";
  return {
    at: now.toISOString(),
    startedAt: live?.startedAt.toISOString() ?? null,
    phase: live?.phase ?? (runs ? phase : "no coordinator runs"),
    sessions: live?.sessions ?? connected,
    roundsUnderWay: live?.roundsUnderWay ?? null,
    probesUnderWay: live?.probesUnderWay ?? null,
    alerts,
    rates: at.rates ?? ratesOf(history),
    history,
    queue,
    lastHour,
    lastDay,
    accuracy: accuracyEstimate(counts),
    totals,
    fleet,
    recent,
  };
}

/** Of the last step that was written. */
function ratesOf({ points, stepMinutes }: History): Rates {
  const last = points.findLast((point) => point !== null);
  return {
    pagesPerMinute: last?.pagesPerMinute ?? 0,
    fetchedBytesPerMinute: last?.fetchedBytesPerMinute ?? 0,
    probesPerMinute: last?.probesPerMinute ?? 0,
    pagesHistory: points.map((point) => point?.pagesPerMinute ?? 0),
    stepSeconds: stepMinutes * 60,
  };
}

/** One crawler in full; null when there is none of that name. */
export async function showCrawler(reads: OverviewReads, name: string): Promise<CrawlerDetail | null> {
  const crawler = (await reads.fleet()).find((line) => line.name === name);
  if (!crawler) return null;
  return { crawler, ...(await reads.crawlerDetail(crawler.crawlerId)) };
}

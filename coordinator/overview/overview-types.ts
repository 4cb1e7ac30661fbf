/** What operators look at beyond totals: how it went, what waits and why, what fails, how near the delegations are. */

import type { ChartHistory } from "#core/chart-history";
import type { TimeRange } from "#core/time-range";
import type { AccuracyCounts, AccuracySampleEntry } from "../delegation/delegation.ts";
import type { AlertFacts } from "./alert-facts.ts";
import type {
  GatedHosts,
  HostsInHand,
  InHandSort,
  LeftOutUrls,
  QueueAges,
  SpanFigures,
  WaitingHost,
  WaitReason,
} from "./queue-api.ts";

/** The pages that have charts of the whole crawl. */
export const chartedPages = ["overview", "queue", "failures", "accuracy", "trust", "recrawl"] as const;
export type ChartedPage = (typeof chartedPages)[number];

export interface ChartReads {
  charts(page: ChartedPage, range: TimeRange): Promise<ChartHistory>;
  crawlerCharts(
    crawler: { readonly crawlerId: number; readonly name: string },
    range: TimeRange,
  ): Promise<ChartHistory>;
}

export interface OperationReads extends ChartReads {
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

/** What a coordinator cannot work without, beside a database that answers and can be written (database/database-watch). */
export interface ReadinessReads {
  /** Names of the migrations that this software has and the database lacks. */
  pendingMigrations(): Promise<readonly string[]>;
  /** Of the registry in force; null: none was imported. */
  currentGeneration(): Promise<number | null>;
}

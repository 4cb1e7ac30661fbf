/**
 * The state of the whole crawl as one JSON value: alerts, rates with their history, what waits, what fails, how much
 * is shipped, how near it is fetched, totals, the fleet, the latest decisions.
 */

import type { TimeRange } from "#core/time-range";
import { accuracyEstimate } from "../../place/delegation/accuracy.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import { showAlerts } from "./alert-rules.ts";
import type { overview } from "./overview-api.ts";
import type { OverviewReads } from "./overview-reads.ts";
import type { SpanFigures } from "./queue-api.ts";

/** What only the coordinator's memory knows; plain counts since its start. */
export interface LiveState {
  readonly startedAt: Date;
  /** What it is at, in a few words: "crawling", "waiting for crawlers". */
  readonly phase: string;
  readonly sessions: number;
  readonly roundsUnderWay: number;
  readonly probesUnderWay: number;
  /** Of the registry that the tree in memory was read from; null: it is empty; left out: there is no tree here. */
  readonly treeGeneration?: number | null;
}

export type Overview = ToldOf<typeof overview>;

const recentShown = 12;
const dayMinutes = 24 * 60;

/** `live` null: as the database tells it; `runs` false: no coordinator works on it, and what it says of crawlers is of then. */
export async function showOverview(
  reads: OverviewReads,
  live: LiveState | null,
  at: { readonly range: TimeRange; readonly now: Date; readonly runs?: boolean },
): Promise<Overview> {
  const { now, range, runs = true } = at;
  const [totals, fleet, recent, history, queue, lately, lastHour, lastDay, counts, { alerts }] =
    await Promise.all([
      reads.crawlTotals(),
      reads.fleet(),
      reads.recentDelegations(recentShown),
      reads.charts("overview", range),
      reads.queueAges(now),
      reads.figures(2, now),
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
    rates: ratesOf(lately, now),
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

/** Of the minute under way and the one before. */
function ratesOf({ pages, fetchedBytes, probes }: SpanFigures, now: Date): Overview["rates"] {
  const minutes = 1 + now.getUTCSeconds() / 60;
  const perMinute = (count: number) => Math.round((10 * count) / minutes) / 10;
  return {
    pagesPerMinute: perMinute(pages),
    fetchedBytesPerMinute: perMinute(fetchedBytes),
    probesPerMinute: perMinute(probes),
  };
}

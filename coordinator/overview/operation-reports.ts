/** The reads of the overview beyond totals, over one pool; those whose cost grows are kept for a while (KeptAnswer). */
import type { Pool } from "pg";
import { KeptAnswer } from "../database/cached-read.ts";
import { accuracyDays } from "../delegation/accuracy.ts";
import { createAccuracyStore } from "../delegation/accuracy-store.ts";
import { alertFacts } from "./alert-reads.ts";
import { history, spanFigures } from "./figures-report.ts";
import {
  type CrawlerGauge,
  type HistoryRange,
  historyRangeNames,
  type OperationReads,
} from "./operation-types.ts";
import { leftOutUrls, longestWaiting, queueAges } from "./queue-reads.ts";

/** `nowMs` is a clock that never goes back, for how long answers are kept. */
export function createOperationReads(pool: Pool, nowMs: () => number): OperationReads {
  const accuracy = createAccuracyStore(pool);
  const after = (now: Date) => new Date(now.getTime() - accuracyDays * 86_400_000);
  const histories = keptFor(historyRangeNames, (range, now) => history(pool, range, now), nowMs);
  const ages = keptAt((now) => queueAges(pool, now), nowMs);
  const spans = new Map<number, (now: Date) => Promise<Awaited<ReturnType<typeof spanFigures>>>>();
  const counts = keptAt((now) => accuracy.counts(after(now)), nowMs);
  const shared = {
    queueAges: ages,
    accuracyCounts: counts,
    figures: async (minutes: number, now: Date) => {
      const kept = spans.get(minutes) ?? keptAt((at) => spanFigures(pool, minutes, at), nowMs);
      spans.set(minutes, kept);
      return await kept(now);
    },
  };
  const facts = keptAt((now) => alertFacts(pool, shared, now), nowMs);
  return {
    ...shared,
    history: async (range, now) => await histories[range](now),
    leftOutUrls: async (shown) => await leftOutUrls(pool, shown),
    longestWaiting: async (query, now) => await longestWaiting(pool, query, now),
    accuracySamples: async (query, now) => await accuracy.list({ ...query, after: after(now) }),
    alertFacts: facts,
    crawlerGauges: async (most) => await crawlerGauges(pool, most),
  };
}

/** One answer, asked as of the moment of the latest caller. */
function keptAt<T>(ask: (now: Date) => Promise<T>, nowMs: () => number): (now: Date) => Promise<T> {
  let at = new Date(0);
  const kept = new KeptAnswer(async () => await ask(at), nowMs);
  return async (now) => {
    at = now;
    return await kept.get();
  };
}

function keptFor<T>(
  ranges: readonly HistoryRange[],
  ask: (range: HistoryRange, now: Date) => Promise<T>,
  nowMs: () => number,
): Readonly<Record<HistoryRange, (now: Date) => Promise<T>>> {
  const kept = ranges.map((range) => [range, keptAt((now) => ask(range, now), nowMs)] as const);
  return Object.fromEntries(kept) as Record<HistoryRange, (now: Date) => Promise<T>>;
}

/** Those that are connected first, so that a bound on them cuts off what has long been gone. */
async function crawlerGauges(pool: Pool, most: number): Promise<CrawlerGauge[]> {
  const { rows } = await pool.query<
    Omit<CrawlerGauge, "waitingResults"> & { heartbeat: Record<string, unknown> }
  >(
    `select c.name, c.state <> 'offline' as online, c.heartbeat, coalesce(l.leases, 0)::int as "openLeases"
     from crawler c
     left join (
       select crawler_id, count(*) as leases from lease where closed_at is null group by crawler_id
     ) l using (crawler_id)
     where c.revoked_at is null
     order by c.state = 'offline', c.last_seen_at desc nulls last, c.name
     limit $1`,
    [most],
  );
  const numberOf = (value: unknown) => (typeof value === "number" ? value : 0);
  return rows.map(({ heartbeat, ...row }) => ({
    ...row,
    waitingResults: numberOf(heartbeat.spooledResults),
    fetchedBytes: numberOf(heartbeat.fetchedBytes),
    shippedBytes: numberOf(heartbeat.shippedBytes),
  }));
}

/** How it went: table minute_figures, as points of a history and as sums over a span. At most some ten thousand rows. */
import type { Pool } from "pg";
import {
  type History,
  type HistoryPoint,
  type HistoryRange,
  historyRanges,
  type SpanFigures,
} from "./operation-types.ts";

const minuteMs = 60_000;

/** Ends with the last whole minute: the one under way is not written yet. */
export async function history(pool: Pool, range: HistoryRange, now: Date): Promise<History> {
  const { minutes, stepMinutes } = historyRanges[range];
  const stepMs = stepMinutes * minuteMs;
  // Steps begin at round times, so that a point stays what it is until it is complete.
  const untilMs = Math.floor(now.getTime() / stepMs) * stepMs + (stepMinutes === 1 ? 0 : stepMs);
  const sinceMs = untilMs - minutes * minuteMs;
  const { rows } = await pool.query<HistoryPoint & { step: number }>(
    `select floor(extract(epoch from minute - $1::timestamptz) / $3)::int as step,
       round(avg(pages), 1)::float8 as "pagesPerMinute",
       round(avg(fetched_bytes))::float8 as "fetchedBytesPerMinute",
       round(avg(probes), 1)::float8 as "probesPerMinute"
     from minute_figures
     where minute >= $1 and minute < $2
     group by step`,
    [new Date(sinceMs), new Date(untilMs), stepMs / 1000],
  );
  const points: (HistoryPoint | null)[] = Array.from({ length: minutes / stepMinutes }, () => null);
  for (const { step, ...point } of rows) points[step] = point;
  return { range, stepMinutes, points, since: new Date(sinceMs).toISOString() };
}

export async function spanFigures(pool: Pool, minutes: number, now: Date): Promise<SpanFigures> {
  const { rows } = await pool.query<Record<string, number>>(
    `select coalesce(sum(fetches), 0)::float8 as fetches, coalesce(sum(pages), 0)::float8 as pages,
       coalesce(sum(fetched_bytes), 0)::float8 as fetched_bytes,
       coalesce(sum(shipped_bytes), 0)::float8 as shipped_bytes,
       coalesce(sum(rounds), 0)::float8 as rounds, coalesce(sum(probes), 0)::float8 as probes,
       coalesce(sum(target_failures), 0)::float8 as target,
       coalesce(sum(network_failures), 0)::float8 as network,
       coalesce(sum(crawler_failures), 0)::float8 as crawler, coalesce(sum(our_failures), 0)::float8 as us
     from minute_figures
     where minute > $1::timestamptz - make_interval(mins => $2) and minute <= $1`,
    [now, minutes],
  );
  const of = (name: string) => rows[0]?.[name] ?? 0;
  return {
    minutes,
    fetches: of("fetches"),
    pages: of("pages"),
    fetchedBytes: of("fetched_bytes"),
    shippedBytes: of("shipped_bytes"),
    rounds: of("rounds"),
    probes: of("probes"),
    failures: { target: of("target"), network: of("network"), crawler: of("crawler"), us: of("us") },
  };
}

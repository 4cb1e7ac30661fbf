/** Tables minute_figures, day_figures, crawler_figures and crawler_day_figures: what happened in each minute and day, and at each crawler in each quarter of an hour and day. */
import type { Pool, PoolClient } from "pg";
import { inTransaction } from "../database/transaction.ts";
import type { CrawlerFigures, FigureStore, Figures } from "./minute-figures.ts";
import {
  type History,
  type HistoryPoint,
  type HistoryRange,
  historyRanges,
  type SpanFigures,
} from "./overview-types.ts";

export function createFigureStore(pool: Pool): FigureStore {
  return {
    add: async (minute, figures, crawlers) =>
      await inTransaction(pool, async (client) => {
        await addMinute(client, minute, figures);
        await addQuarters(client, minute, crawlers);
      }),
    sumDays: async (now) => (await sumDays(pool, now)) + (await sumCrawlerDays(pool, now)),
    forget: async ({ minutes, quarters, crawlerDays }) => {
      const { rowCount } = await pool.query("delete from minute_figures where minute < $1", [minutes]);
      await pool.query("delete from crawler_figures where quarter < $1", [quarters]);
      await pool.query(
        "delete from crawler_day_figures where day < ($1::timestamptz at time zone 'UTC')::date",
        [crawlerDays],
      );
      return rowCount ?? 0;
    },
  };
}

/** The last minute that a coordinator of this database has written; null: none has. */
export async function lastMinute(pool: Pool): Promise<Date | null> {
  const { rows } = await pool.query<{ last: Date | null }>("select max(minute) as last from minute_figures");
  return rows[0]!.last;
}

/** Minutes that are yet to come were written by a clock that was ahead. */
export async function forgetMinutesAfter(pool: Pool, now: Date): Promise<void> {
  await pool.query("delete from minute_figures where minute > $1", [now]);
}

/** Also for a minute in which nothing happened: the row says that somebody was there. */
async function addMinute(client: PoolClient, minute: Date, figures: Figures): Promise<void> {
  const { fetches, pages, fetchedBytes, shippedBytes, rounds, probes, failures } = figures;
  await client.query(
    `insert into minute_figures as m (minute, fetches, pages, fetched_bytes, shipped_bytes, rounds, probes,
       target_failures, network_failures, crawler_failures, our_failures)
     values (date_trunc('minute', $1::timestamptz, 'UTC'), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (minute) do update
     set fetches = m.fetches + excluded.fetches,
         pages = m.pages + excluded.pages,
         fetched_bytes = m.fetched_bytes + excluded.fetched_bytes,
         shipped_bytes = m.shipped_bytes + excluded.shipped_bytes,
         rounds = m.rounds + excluded.rounds,
         probes = m.probes + excluded.probes,
         target_failures = m.target_failures + excluded.target_failures,
         network_failures = m.network_failures + excluded.network_failures,
         crawler_failures = m.crawler_failures + excluded.crawler_failures,
         our_failures = m.our_failures + excluded.our_failures`,
    [
      ...[minute, fetches, pages, fetchedBytes, shippedBytes, rounds, probes],
      ...[failures.target, failures.network, failures.crawler, failures.us],
    ],
  );
}

/**
 * Days (UTC) as the sums of their minutes: those since the day before the last that was summed, again, since coordinators
 * write late. Days older than minutes are kept stay as they are.
 */
async function sumDays(pool: Pool, now: Date): Promise<number> {
  const { rowCount } = await pool.query(
    `insert into day_figures (day, minutes, ${summedColumns})
     select (minute at time zone 'UTC')::date, count(*), ${summedColumns.map((name) => `sum(${name})`)}
     from minute_figures
     where minute >= coalesce(
         (
           select max(day) - 1 from day_figures where minutes > 0 and day <= ($1::timestamptz at time zone 'UTC')::date
         )::timestamp at time zone 'UTC',
         '-infinity'
       )
     group by 1
     order by 1
     on conflict (day) do update
     set minutes = excluded.minutes, ${summedColumns.map((name) => `${name} = excluded.${name}`)}`,
    [now],
  );
  return rowCount ?? 0;
}

/** The same of each crawler. A day is summed while its quarters are there: those of the day before the last that was summed, again. */
async function sumCrawlerDays(pool: Pool, now: Date): Promise<number> {
  const { rowCount } = await pool.query(
    `insert into crawler_day_figures (day, crawler_id, ${crawlerColumns}, subnets, rtt_ms)
     select (quarter at time zone 'UTC')::date, crawler_id, ${crawlerColumns.map((name) => `sum(${name})`)},
       round(avg(subnets)), avg(rtt_ms)
     from crawler_figures
     where quarter >= coalesce(
         (
           select max(day) - 1 from crawler_day_figures where day <= ($1::timestamptz at time zone 'UTC')::date
         )::timestamp at time zone 'UTC',
         '-infinity'
       )
     group by 1, 2
     order by 2, 1
     on conflict (crawler_id, day) do update
     set ${crawlerColumns.map((name) => `${name} = excluded.${name}`)},
       subnets = coalesce(excluded.subnets, crawler_day_figures.subnets),
       rtt_ms = coalesce(excluded.rtt_ms, crawler_day_figures.rtt_ms)`,
    [now],
  );
  return rowCount ?? 0;
}

const crawlerColumns = [
  ...["fetches", "pages", "wire_bytes"],
  ...["target_failures", "network_failures", "crawler_failures", "our_failures"],
] as const;

const summedColumns = [
  ...["fetches", "pages", "fetched_bytes", "shipped_bytes", "rounds", "probes"],
  ...["target_failures", "network_failures", "crawler_failures", "our_failures"],
] as const;

/** A crawler that was removed meanwhile leaves no figures. In one order, so that two coordinators do not wait for each other. */
async function addQuarters(
  client: PoolClient,
  minute: Date,
  crawlers: readonly CrawlerFigures[],
): Promise<void> {
  if (crawlers.length === 0) return;
  await client.query(
    `insert into crawler_figures as q (quarter, crawler_id, fetches, pages, wire_bytes, target_failures,
       network_failures, crawler_failures, our_failures)
     select date_bin('15 minutes', $1::timestamptz, '2000-01-01T00:00:00Z'), crawler_id, fetches, pages, wire_bytes,
       target_failures, network_failures, crawler_failures, our_failures
     from unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
         $9::bigint[])
       as given (crawler_id, fetches, pages, wire_bytes, target_failures, network_failures, crawler_failures,
         our_failures)
     where exists (select from crawler c where c.crawler_id = given.crawler_id)
     order by crawler_id
     on conflict (quarter, crawler_id) do update
     set fetches = q.fetches + excluded.fetches,
         pages = q.pages + excluded.pages,
         wire_bytes = q.wire_bytes + excluded.wire_bytes,
         target_failures = q.target_failures + excluded.target_failures,
         network_failures = q.network_failures + excluded.network_failures,
         crawler_failures = q.crawler_failures + excluded.crawler_failures,
         our_failures = q.our_failures + excluded.our_failures`,
    [
      minute,
      crawlers.map(({ crawlerId }) => crawlerId),
      crawlers.map(({ fetches }) => fetches),
      crawlers.map(({ pages }) => pages),
      crawlers.map(({ wireBytes }) => wireBytes),
      crawlers.map(({ failures }) => failures.target),
      crawlers.map(({ failures }) => failures.network),
      crawlers.map(({ failures }) => failures.crawler),
      crawlers.map(({ failures }) => failures.us),
    ],
  );
}

// How it went: table minute_figures, as points of a history and as sums over a span. At most some ten thousand rows.

const minuteMs = 60_000;

const dayMinutes = 1440;

/** Points of days and more are sums of day_figures: minutes are not kept for so long. */
const ofMinutes = `
  select floor(extract(epoch from minute - $1::timestamptz) / $3)::int as step,
    round(avg(pages), 1)::float8 as "pagesPerMinute",
    round(avg(fetched_bytes))::float8 as "fetchedBytesPerMinute",
    round(avg(probes), 1)::float8 as "probesPerMinute"
  from minute_figures
  where minute >= $1 and minute < $2
  group by step`;

const ofDays = `
  select floor(extract(epoch from day::timestamp at time zone 'UTC' - $1::timestamptz) / $3)::int as step,
    round(sum(pages) / sum(minutes), 1)::float8 as "pagesPerMinute",
    round(sum(fetched_bytes) / sum(minutes))::float8 as "fetchedBytesPerMinute",
    round(sum(probes) / sum(minutes), 1)::float8 as "probesPerMinute"
  from day_figures
  where minutes > 0
    and day::timestamp at time zone 'UTC' >= $1
    and day::timestamp at time zone 'UTC' < $2
  group by step`;

/** Ends with the last whole minute: the one under way is not written yet. */
export async function history(pool: Pool, range: HistoryRange, now: Date): Promise<History> {
  const { minutes, stepMinutes } = historyRanges[range];
  const stepMs = stepMinutes * minuteMs;
  // Steps begin at round times, so that a point stays what it is until it is complete.
  const untilMs = Math.floor(now.getTime() / stepMs) * stepMs + (stepMinutes === 1 ? 0 : stepMs);
  const sinceMs = untilMs - minutes * minuteMs;
  const { rows } = await pool.query<HistoryPoint & { step: number }>(
    stepMinutes < dayMinutes ? ofMinutes : ofDays,
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

/**
 * Tables minute_figures, day_figures, crawler_figures, crawler_day_figures, gauge_sample and disk_sample: the history that
 * charts and alerts need.
 */

import { statfs } from "node:fs/promises";
import type { Pool } from "pg";
import { inTransaction } from "../../database/transaction.ts";
import type { FleetLine } from "../fleet/fleet-api.ts";
import type { DiskFacts } from "./alert-facts.ts";
import {
  crawlerColumns,
  crawlerDays,
  gaugeDays,
  minuteColumns,
  minuteDays,
  quarterDays,
  type WriteFigures,
} from "./minute-figures.ts";
import { type QueueAges, type SpanFigures, waitReasons } from "./queue-api.ts";

/**
 * Writes idle minutes, too, since a row shows that a coordinator ran. Removed crawlers have no figures. Crawlers are written
 * in a fixed order, so that two coordinators do not deadlock.
 */
export function figureWriter(pool: Pool): WriteFigures {
  return async (minute, counts, crawlers) =>
    await inTransaction(pool, async (client) => {
      await client.query(
        `insert into minute_figures as m (minute, ${minuteColumns})
         values (date_trunc('minute', $1::timestamptz, 'UTC'), ${minuteColumns.map((_, index) => `$${index + 2}`)})
         on conflict (minute) do update
         set ${minuteColumns.map((name) => `${name} = m.${name} + excluded.${name}`)}`,
        [minute, ...minuteColumns.map((name) => counts[name])],
      );
      if (crawlers.size === 0) return;
      await client.query(
        `insert into crawler_figures as q (quarter, crawler_id, ${crawlerColumns})
         select date_bin('15 minutes', $1::timestamptz, '2000-01-01T00:00:00Z'), crawler_id, ${crawlerColumns}
         from unnest($2::int[], ${crawlerColumns.map((_, index) => `$${index + 3}::bigint[]`)})
           as given (crawler_id, ${crawlerColumns})
         where exists (select from crawler c where c.crawler_id = given.crawler_id)
         order by crawler_id
         on conflict (quarter, crawler_id) do update
         set ${crawlerColumns.map((name) => `${name} = q.${name} + excluded.${name}`)}`,
        [
          minute,
          [...crawlers.keys()],
          ...crawlerColumns.map((name) => [...crawlers.values()].map((one) => one[name])),
        ],
      );
    });
}

/** Returns the last minute that any coordinator of this database wrote, or null. */
export async function lastMinute(pool: Pool): Promise<Date | null> {
  const { rows } = await pool.query<{ last: Date | null }>("select max(minute) as last from minute_figures");
  return rows[0]!.last;
}

/** Deletes minutes in the future, which were written by a clock that was ahead. */
export async function forgetMinutesAfter(pool: Pool, now: Date): Promise<void> {
  await pool.query("delete from minute_figures where minute > $1", [now]);
}

/** Removes old figures after their days are summed up. Returns how many minutes were removed. */
export async function forgetFigures(pool: Pool, now: Date): Promise<number> {
  const before = (days: number) => new Date(now.getTime() - days * 86_400_000);
  await sumDays(pool, now);
  const { rowCount } = await pool.query("delete from minute_figures where minute < $1", [before(minuteDays)]);
  await pool.query("delete from crawler_figures where quarter < $1", [before(quarterDays)]);
  await pool.query("delete from crawler_day_figures where day < ($1::timestamptz at time zone 'UTC')::date", [
    before(crawlerDays),
  ]);
  return rowCount ?? 0;
}

/**
 * Sums up days (UTC) from their minutes, and each crawler's days from its quarters. The last summed day and the one before
 * are summed again, because coordinators write late. Days whose parts are gone remain unchanged.
 */
async function sumDays(pool: Pool, now: Date): Promise<void> {
  const since = (table: string, condition: string) =>
    `coalesce(
       (
         select max(day) - 1 from ${table} where ${condition} day <= ($1::timestamptz at time zone 'UTC')::date
       )::timestamp at time zone 'UTC',
       '-infinity'
     )`;
  const sums = (names: readonly string[]) => names.map((name) => `sum(${name})`);
  const replaced = (names: readonly string[]) => names.map((name) => `${name} = excluded.${name}`);
  await pool.query(
    `insert into day_figures (day, minutes, ${minuteColumns})
     select (minute at time zone 'UTC')::date, count(*), ${sums(minuteColumns)}
     from minute_figures
     where minute >= ${since("day_figures", "minutes > 0 and")}
     group by 1
     order by 1
     on conflict (day) do update
     set minutes = excluded.minutes, ${replaced(minuteColumns)}`,
    [now],
  );
  await pool.query(
    `insert into crawler_day_figures (day, crawler_id, ${crawlerColumns}, subnets, rtt_ms)
     select (quarter at time zone 'UTC')::date, crawler_id, ${sums(crawlerColumns)}, round(avg(subnets)), avg(rtt_ms)
     from crawler_figures
     where quarter >= ${since("crawler_day_figures", "")}
     group by 1, 2
     order by 2, 1
     on conflict (crawler_id, day) do update
     set ${replaced(crawlerColumns)}, subnets = coalesce(excluded.subnets, crawler_day_figures.subnets),
       rtt_ms = coalesce(excluded.rtt_ms, crawler_day_figures.rtt_ms)`,
    [now],
  );
}

/** Reads the figures of a span that ends now (at most some ten thousand rows). */
export async function spanFigures(pool: Pool, minutes: number, now: Date): Promise<SpanFigures> {
  const { rows } = await pool.query<Record<(typeof minuteColumns)[number], number>>(
    `select ${minuteColumns.map((name) => `coalesce(sum(${name}), 0)::float8 as ${name}`)}
     from minute_figures
     where minute > $1::timestamptz - make_interval(mins => $2) and minute <= $1`,
    [now, minutes],
  );
  const { fetches, pages, rounds, probes, ...row } = rows[0]!;
  return {
    ...{ minutes, fetches, pages, rounds, probes },
    fetchedBytes: row.fetched_bytes,
    shippedBytes: row.shipped_bytes,
    failures: {
      target: row.target_failures,
      network: row.network_failures,
      crawler: row.crawler_failures,
      us: row.our_failures,
    },
  };
}

/** The state of the fleet and the queue at one moment. */
export interface Standing {
  readonly queue: QueueAges;
  readonly urlsInProgress: number;
  readonly openLeases: number;
  readonly crawlers: readonly CrawlerStanding[];
}

type CrawlerStanding = Pick<FleetLine, "crawlerId" | "state" | "subnets" | "meanRttMs">;

/** The interval of samples of the fleet. */
export const gaugeSeconds = 300;

/** Samples older than this are reduced to one an hour. */
const fineDays = 14;

const dayMs = 86_400_000;

export const queueGauge = (reason: string) => `queue.${reason}`;

/** The names are those that chart-reads uses. */
export function gaugesOf({ queue, urlsInProgress, openLeases, crawlers }: Standing) {
  const hosts = new Map<string, number>(queue.reasons.map((one) => [one.reason, one.hosts]));
  const count = (state: CrawlerStanding["state"]) => crawlers.filter((one) => one.state === state).length;
  return {
    ...Object.fromEntries(waitReasons.map((reason) => [queueGauge(reason), hosts.get(reason) ?? 0])),
    queueMedianSeconds: queue.medianSeconds ?? 0,
    queueP95Seconds: queue.p95Seconds ?? 0,
    urlsInProgress,
    leases: openLeases,
    crawlersOnline: count("online"),
    crawlersDraining: count("draining"),
    crawlersOffline: count("offline"),
  };
}

/** Returns true for the first sample of its five minutes. Those of other coordinators are dropped. */
export async function addGauges(
  pool: Pool,
  now: Date,
  gauges: Readonly<Record<string, number>>,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into gauge_sample (at, gauges)
     values (date_bin('5 minutes', $1::timestamptz, '2000-01-01T00:00:00Z'), $2)
     on conflict do nothing`,
    [now, JSON.stringify(gauges)],
  );
  return rowCount === 1;
}

/** Writes into the first quarter of the hour. Removed crawlers are skipped. */
export async function addStandings(
  pool: Pool,
  now: Date,
  crawlers: readonly Omit<CrawlerStanding, "state">[],
): Promise<void> {
  if (crawlers.length === 0) return;
  await pool.query(
    `insert into crawler_figures as q (quarter, crawler_id, subnets, rtt_ms)
     select date_trunc('hour', $1::timestamptz, 'UTC'), crawler_id, subnets, rtt_ms
     from unnest($2::int[], $3::int[], $4::real[]) as given (crawler_id, subnets, rtt_ms)
     where exists (select from crawler c where c.crawler_id = given.crawler_id)
     order by crawler_id
     on conflict (quarter, crawler_id) do update
     set subnets = excluded.subnets, rtt_ms = excluded.rtt_ms
     where q.subnets is null`,
    [
      now,
      crawlers.map(({ crawlerId }) => crawlerId),
      crawlers.map(({ subnets }) => subnets),
      crawlers.map(({ meanRttMs }) => meanRttMs),
    ],
  );
}

export async function forgetGauges(pool: Pool, now: Date): Promise<number> {
  const before = (days: number) => new Date(now.getTime() - days * dayMs);
  const { rowCount } = await pool.query(
    `delete from gauge_sample
     where at < $1 or (at < $2 and extract(minute from at at time zone 'UTC') <> 0)`,
    [before(gaugeDays), before(fineDays)],
  );
  return rowCount ?? 0;
}

interface DiskSample {
  readonly databaseBytes: number;
  /** Null if the disk is another machine's and nobody stated its size. */
  readonly freeBytes: number | null;
}

/** `roomBytes` is the space of an operator's own server. If null, only an embedded server's disk is measured. */
export async function sampleDisk(
  pool: Pool,
  { now, roomBytes }: { readonly now: Date; readonly roomBytes: number | null },
): Promise<DiskSample> {
  const { rows } = await pool.query<{ bytes: number; folder: string | null; is_local: boolean }>(
    `select pg_database_size(current_database())::float8 as bytes,
       (select setting from pg_settings where name = 'data_directory') as folder, inet_server_addr() is null as is_local`,
  );
  const { bytes: databaseBytes, folder, is_local: isLocal } = rows[0]!;
  const freeBytes =
    roomBytes !== null
      ? Math.max(0, Math.round(roomBytes) - databaseBytes)
      : isLocal && folder
        ? await freeBytesOf(folder)
        : null;
  await pool.query(
    `with forgotten as (delete from disk_sample where sampled_at < $1::timestamptz - interval '14 days')
     insert into disk_sample (sampled_at, database_bytes, free_bytes)
     values ($1, $2, $3)
     on conflict (sampled_at) do nothing`,
    [now, databaseBytes, freeBytes],
  );
  return { databaseBytes, freeBytes };
}

async function freeBytesOf(folder: string): Promise<number | null> {
  return await statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => null,
  );
}

/** Minimum time for measuring a pace. Over less, a single checkpoint or import would distort it. */
const leastHours = 3;

/** A sample is valid this long, so that two failed ones do not matter. */
const freshMinutes = 40;

/** Returns null if the free space is unknown. */
export async function diskFacts(pool: Pool, now: Date): Promise<DiskFacts | null> {
  const { rows } = await pool.query<{ free: number; before: number | null; hours: number | null }>(
    `select latest.free_bytes::float8 as free, before.free_bytes::float8 as before,
       extract(epoch from latest.sampled_at - before.sampled_at)::float8 / 3600 as hours
     from (
       select sampled_at, free_bytes
       from disk_sample
       where sampled_at between $1::timestamptz - interval '${freshMinutes} minutes' and $1 and free_bytes is not null
       order by sampled_at desc
       limit 1
     ) latest
     left join lateral (
       select sampled_at, free_bytes
       from disk_sample
       where sampled_at >= latest.sampled_at - interval '1 day'
         and sampled_at <= latest.sampled_at - interval '${leastHours} hours'
         and free_bytes is not null
       order by sampled_at
       limit 1
     ) before on true`,
    [now],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { free, before, hours } = row;
  const lostBytesPerDay = before === null || hours === null ? null : ((before - free) / hours) * 24;
  return { freeBytes: free, lostBytesPerDay };
}

/**
 * Tables minute_figures, day_figures, crawler_figures and crawler_day_figures: what happened in each minute and day, and at each
 * crawler in each quarter of an hour and day.
 */
import type { Pool } from "pg";
import { inTransaction } from "../../database/transaction.ts";
import {
  crawlerColumns,
  crawlerDays,
  minuteColumns,
  minuteDays,
  quarterDays,
  type WriteFigures,
} from "./minute-figures.ts";
import type { SpanFigures } from "./queue-api.ts";

/**
 * Writes a minute in which nothing happened, too: the row says that somebody was there. A crawler that was removed meanwhile
 * leaves no figures; crawlers come in one order, so that two coordinators do not wait for each other.
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

/** The last minute that a coordinator of this database has written; null: none has. */
export async function lastMinute(pool: Pool): Promise<Date | null> {
  const { rows } = await pool.query<{ last: Date | null }>("select max(minute) as last from minute_figures");
  return rows[0]!.last;
}

/** Minutes that are yet to come were written by a clock that was ahead. */
export async function forgetMinutesAfter(pool: Pool, now: Date): Promise<void> {
  await pool.query("delete from minute_figures where minute > $1", [now]);
}

/** Removes what nobody looks at any more; what is left of it are the sums of its days. How many minutes went. */
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
 * Days (UTC) as the sums of their minutes, and of each crawler of its quarters: those since the day before the last that was
 * summed, again, since coordinators write late. Days whose parts are gone stay as they are.
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

/** Counted over a span of time that ends now; at most some ten thousand rows. */
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

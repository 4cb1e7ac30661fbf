/**
 * Partitions of table page_fetch by UTC day, created ahead and dropped as a whole when old. A row without a partition
 * goes to page_fetch_default, so that no result fails for lack of one (after a clock jump, or weeks without
 * maintenance), and moves to its day once that exists. Because days and not host hashes divide the table, old fetches
 * are removed by dropping a table, and only today's indexes are written.
 */
import type { Pool, PoolClient } from "pg";
import { partsSql } from "#db/table-sizes";
import { alone } from "../../database/bounded-work.ts";
import { inTransaction } from "../../database/transaction.ts";

const dayMs = 86_400_000;

/** Days for which partitions are created in advance. */
const daysAhead = 3;

const lockName = "nearcrawl-fetch-days";

/**
 * Attaching and dropping wait for the table's readers and block others meanwhile, so they are limited to this time
 * and retried on the next run.
 */
const lockTimeoutMs = 2000;

/** Rows older than every kept day that are deleted at a time. */
const deletedAtOnce = 20_000;

export interface KeptFetchDays {
  readonly made: readonly string[];
  readonly dropped: readonly string[];
  /** Number of fetches moved out of page_fetch_default. */
  readonly moved: number;
  readonly deleted: number;
}

/** Creates partitions for rows without one and for coming days; drops old days. Null if another coordinator is doing so. */
export async function keepFetchDays(
  pool: Pool,
  { keepDays, now }: { readonly keepDays: number; readonly now: Date },
): Promise<KeptFetchDays | null> {
  const today = Math.floor(now.getTime() / dayMs);
  const oldest = Math.max(0, today - Math.ceil(keepDays));
  return await alone(pool, lockName, async () => {
    const deleted = await deleteWithoutDay(pool, dayStart(oldest));
    const parts = await dayParts(pool);
    // A partition without a beginning holds everything from before partitions were by day.
    const isCovered = (day: number) =>
      parts.some(({ from, to }) => (from === null || from <= dayStart(day)) && dayStart(day) < to);
    const ahead = Array.from({ length: daysAhead + 1 }, (_, days) => today + days);
    const waiting = await daysWithoutPart(pool, dayStart(oldest), dayStart(today + daysAhead + 1));
    const wanted = [...new Set([...waiting, ...ahead])].filter((day) => !isCovered(day));
    let moved = 0;
    for (const day of wanted) moved += await makeDay(pool, day);
    const old = parts.filter(({ to }) => to <= dayStart(oldest)).map(({ name }) => name);
    for (const name of old) await inShortLocks(pool, (client) => client.query(`drop table ${name}`));
    return { made: wanted.map(nameOf), dropped: old, moved, deleted };
  });
}

const dayStart = (day: number) => new Date(day * dayMs);

const nameOf = (day: number) => `page_fetch_${dayStart(day).toISOString().slice(0, 10).replaceAll("-", "")}`;

interface Part {
  readonly name: string;
  /** First day of the partition; null if it has no beginning. */
  readonly from: Date | null;
  readonly to: Date;
}

/** Excludes the default partition. Bounds are written and read in the time zone of the session. */
async function dayParts(pool: Pool): Promise<Part[]> {
  const { rows } = await pool.query<Part>(
    `select name, (regexp_match(bounds, 'FROM \\(''([^'']+)''\\)'))[1]::timestamptz as "from",
       (regexp_match(bounds, 'TO \\(''([^'']+)''\\)'))[1]::timestamptz as "to"
     from (${partsSql("page_fetch")}) part
     where bounds <> 'DEFAULT'`,
  );
  return rows;
}

/** Scans the default partition, which is usually empty. */
async function daysWithoutPart(pool: Pool, from: Date, to: Date): Promise<number[]> {
  const { rows } = await pool.query<{ day: number }>(
    `select distinct floor(extract(epoch from fetched_at) / 86400)::int as day
     from page_fetch_default
     where fetched_at >= $1 and fetched_at < $2
     order by day`,
    [from, to],
  );
  return rows.map(({ day }) => day);
}

async function deleteWithoutDay(pool: Pool, before: Date): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from page_fetch_default
     where ctid = any (array (select ctid from page_fetch_default where fetched_at < $1 limit $2))`,
    [before, deletedAtOnce],
  );
  return rowCount ?? 0;
}

/**
 * Returns how many rows moved. Locks the whole table: a writer that waited only for the lock of the default partition
 * would already have chosen that partition, and would fail.
 */
async function makeDay(pool: Pool, day: number): Promise<number> {
  const [name, from, to] = [nameOf(day), dayStart(day).toISOString(), dayStart(day + 1).toISOString()];
  return await inShortLocks(pool, async (client) => {
    await client.query("lock table only page_fetch in share row exclusive mode");
    await client.query("lock table page_fetch_default in access exclusive mode");
    await client.query(`create table ${name} (like page_fetch)`);
    const { rowCount } = await client.query(
      `with moved as (
         delete from page_fetch_default where fetched_at >= $1 and fetched_at < $2 returning *
       )
       insert into ${name} select * from moved`,
      [from, to],
    );
    await client.query(
      `alter table page_fetch attach partition ${name} for values from ('${from}') to ('${to}')`,
    );
    return rowCount ?? 0;
  });
}

async function inShortLocks<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return await inTransaction(pool, async (client) => {
    await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
    return await work(client);
  });
}

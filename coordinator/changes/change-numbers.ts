/**
 * Tables page_change_inbox → page_change: changes get their numbers here, by one appender at a time, and the oldest ones
 * are let go. Both hold the row of change_feed until they are committed.
 */
import type { Pool, PoolClient } from "pg";
import { inTransaction } from "../database/transaction.ts";
import { changeColumns } from "./change-writes.ts";

/** Changes of one transaction: some milliseconds, and nothing that a reader would notice. */
const numberedAtOnce = 2000;
const removedAtOnce = 5000;

/** Gives what is committed in the inbox the next numbers, in the order in which it was written; gives how many. */
export async function numberChanges(pool: Pool, now: Date, most: number = numberedAtOnce): Promise<number> {
  const { rows } = await pool.query<{ waits: boolean }>(
    "select exists (select from page_change_inbox) as waits",
  );
  if (!rows[0]!.waits) return 0;
  return await inTransaction(pool, async (client) => {
    const { last } = await lockFeed(client);
    const { rowCount } = await client.query(
      `with taken as (
         delete from page_change_inbox
         where inbox_number = any (array (
           select inbox_number from page_change_inbox order by inbox_number limit $1
         ))
         returning *
       )
       insert into page_change (change_number, noted_at, host_hash, url_hash, ${columnList})
       select $2::bigint + row_number() over (order by inbox_number), $3, host_hash, url_hash, ${columnList}
       from taken`,
      [most, last, now],
    );
    const numbered = rowCount ?? 0;
    await client.query("update change_feed set last_number = last_number + $1", [numbered]);
    return numbered;
  });
}

const columnList = changeColumns.filter((name) => name !== "host_hash" && name !== "url_hash").join(", ");

/** Lets the oldest go that were noted before then, a batch of them; gives how many. */
export async function removeOldChanges(
  pool: Pool,
  before: Date,
  most: number = removedAtOnce,
): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const { removedThrough } = await lockFeed(client);
    // In the order of numbers, up to the first that stays: a clock that went back leaves no hole.
    const { rows } = await client.query<{ through: string | null }>(
      `select max(change_number) filter (where oldest_kept is null or change_number < oldest_kept) as through
       from (
         select change_number, min(change_number) filter (where noted_at >= $2) over () as oldest_kept
         from (
           select change_number, noted_at from page_change
           where change_number > $1
           order by change_number
           limit $3
         ) oldest
       ) marked`,
      [removedThrough, before, most],
    );
    const through = rows[0]?.through ?? null;
    if (through === null) return 0;
    const { rowCount } = await client.query("delete from page_change where change_number <= $1", [through]);
    await client.query("update change_feed set removed_through = $1", [through]);
    return rowCount ?? 0;
  });
}

/** Whoever waited for the row sees what the one before committed. */
async function lockFeed(client: PoolClient): Promise<{ last: string; removedThrough: string }> {
  const { rows } = await client.query<{ last: string; removedThrough: string }>(
    `select last_number as last, removed_through as "removedThrough" from change_feed for update`,
  );
  return rows[0]!;
}

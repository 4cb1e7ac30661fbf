/** Work that goes on behind the crawl: by one coordinator at a time, in batches, for a bounded time. */
import type { Pool } from "pg";
import { releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";

/** Null: another one is at it. The lock is a connection's: a coordinator that is killed leaves none behind. */
export async function alone<T>(pool: Pool, lockName: string, work: () => Promise<T>): Promise<T | null> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ schema: string }>("select current_schema() as schema");
    const { schema } = rows[0]!;
    if (!(await tryAdvisoryLock(client, lockName, schema))) return null;
    try {
      return await work();
    } finally {
      await releaseAdvisoryLock(client, lockName, schema);
    }
  } finally {
    client.release();
  }
}

export interface TurnClock {
  /** A clock that never goes back. */
  readonly nowMs: () => number;
  readonly turnMs: number;
}

/** Batch after batch until one finds nothing, or the turn is over; gives the sum of what they found. */
export async function inTurns({ nowMs, turnMs }: TurnClock, batch: () => Promise<number>): Promise<number> {
  const endMs = nowMs() + turnMs;
  let sum = 0;
  for (;;) {
    const found = await batch();
    sum += found;
    if (found === 0 || nowMs() >= endMs) return sum;
  }
}

/** An ordinary table, and the instant that a row of it ends with; names and condition are ours. */
export interface AgedTable {
  readonly table: string;
  readonly column: string;
  /** Rows that never end do not fulfil it. */
  readonly condition?: string;
}

/** Deletes the oldest that are older than then, a batch of them; gives how many. */
export async function deleteOldest(
  pool: Pool,
  { table, column, condition = "true" }: AgedTable,
  before: Date,
  most: number,
): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from ${table}
     where ctid = any (array (
       select ctid from ${table} where ${column} < $1 and ${condition} order by ${column} limit $2
     ))`,
    [before, most],
  );
  return rowCount ?? 0;
}

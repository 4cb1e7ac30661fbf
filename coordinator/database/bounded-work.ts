/** Background work that one coordinator does at a time, in batches and for a bounded time. */
import type { Pool } from "pg";
import { releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";

/**
 * Returns null while another coordinator does the work. The lock belongs to a connection, so a killed coordinator releases
 * it.
 */
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
  readonly nowMs: () => number;
  readonly turnMs: number;
}

/** Runs batches until one finds nothing or `turnMs` is over, and returns the sum of what they found. */
export async function inTurns({ nowMs, turnMs }: TurnClock, batch: () => Promise<number>): Promise<number> {
  const endMs = nowMs() + turnMs;
  let sum = 0;
  for (;;) {
    const found = await batch();
    sum += found;
    if (found === 0 || nowMs() >= endMs) return sum;
  }
}

/** A table whose rows expire by a timestamp column. Names and condition come only from our own code. */
interface AgedTable {
  readonly table: string;
  readonly column: string;
  readonly condition?: string;
}

/** Deletes one batch of the oldest expired rows and returns their number. */
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

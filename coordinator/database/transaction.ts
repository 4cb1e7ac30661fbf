/**
 * Transactions of the stores. Rows are locked in a fixed order everywhere: spool, lease (by id), host (by
 * hash); the URLs of a host change only under its host's lock. Where two transactions collide all the same,
 * Postgres ends one of them, and it runs again from the start.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";

/** deadlock_detected and serialization_failure: nothing was written, and another try may succeed. */
const passingCodes: readonly string[] = ["40P01", "40001"];
const maxTries = 10;

/** Runs `work` in one transaction; after a collision again, so it must change nothing but the database. */
export async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(pool, work);
    } catch (error) {
      if (!passingCodes.includes(sqlStateOf(error)) || attempt === maxTries) throw error;
      await delay(5 * attempt);
    }
  }
}

/** The five characters that Postgres names an error by; empty for any other error. */
export function sqlStateOf(error: unknown): string {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/** The values of rows column by column: the arrays that `unnest` makes rows of again. */
export function columnsOf<Row extends object>(
  rows: readonly Row[],
  names: readonly (keyof Row)[],
): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]));
}

async function once<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  } catch (error) {
    // A connection that cannot even roll back is closed instead of going back to the pool.
    await client.query("rollback").catch(() => {
      broken = true;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

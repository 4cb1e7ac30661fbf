/** Reads with a time limit of their own: the server ends what takes longer, and that counts as an answer. */
import type { Pool, PoolClient } from "pg";

/** Postgres' error code for a statement cancelled by its time limit. */
const queryCanceled = "57014";

/**
 * Returns null if a statement took longer than `longestMs`. Plans are made once per connection, always by index (the tables
 * are too large for anything else) and without JIT compilation, which takes longer than running them.
 */
export async function boundedRead<T>(
  pool: Pool,
  longestMs: number,
  read: (client: PoolClient) => Promise<T>,
): Promise<T | null> {
  const client = await pool.connect();
  try {
    await client.query(`begin read only;
      set local statement_timeout = ${longestMs};
      set local plan_cache_mode = force_generic_plan;
      set local enable_seqscan = off;
      set local jit = off;
      set local work_mem = '32MB'`);
    return await read(client);
  } catch (error) {
    if ((error as { code?: string }).code === queryCanceled) return null;
    throw error;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

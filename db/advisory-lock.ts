/**
 * Session locks, one per name and schema: they end with the connection, even after kill -9 of its process. They block
 * no readers or writers of tables.
 */
import type { Pool, PoolClient } from "pg";

const keys = "hashtext($1), hashtext($2)";

/** Returns false when another session holds the lock. */
export async function tryAdvisoryLock(client: PoolClient, name: string, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(`select pg_try_advisory_lock(${keys}) as locked`, [
    name,
    schema,
  ]);
  return rows[0]?.locked ?? false;
}

/** A broken connection has already released the lock. */
export async function releaseAdvisoryLock(client: PoolClient, name: string, schema: string): Promise<void> {
  await client.query(`select pg_advisory_unlock(${keys})`, [name, schema]).catch(() => {});
}

/**
 * Needs a statement of its own: with tables on several servers, a lock check beside a table would be sent to that
 * table's server.
 */
const isLockHeldSql = `exists (
  select from pg_locks
  where locktype = 'advisory' and granted and objsubid = 2
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext($1)::bigint & 4294967295
    and objid::bigint = hashtext($2)::bigint & 4294967295
)`;

export async function isAdvisoryLockHeld(pool: Pool, name: string, schema: string): Promise<boolean> {
  const { rows } = await pool.query<{ held: boolean }>(`select ${isLockHeldSql} as held`, [name, schema]);
  return rows[0]?.held ?? false;
}

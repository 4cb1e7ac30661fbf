/**
 * Locks of a session, one of each name and schema: gone as soon as the connection is, kill -9 of its process
 * included. Readers and writers of tables are not blocked.
 */
import type { Pool, PoolClient } from "pg";

const keys = "hashtext($1), hashtext($2)";

/** False when somebody has it. */
export async function tryAdvisoryLock(client: PoolClient, name: string, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(`select pg_try_advisory_lock(${keys}) as locked`, [
    name,
    schema,
  ]);
  return rows[0]?.locked ?? false;
}

/** Where the connection is broken the lock is gone with it. */
export async function releaseAdvisoryLock(client: PoolClient, name: string, schema: string): Promise<void> {
  await client.query(`select pg_advisory_unlock(${keys})`, [name, schema]).catch(() => {});
}

/** In a statement of its own: where tables lie on several servers, one beside a table would be asked of that table's. */
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

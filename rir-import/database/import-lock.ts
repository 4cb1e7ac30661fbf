/**
 * One import or rollback at a time per schema: a session's advisory lock, so that it is gone as soon as the
 * process is, kill -9 included. Readers are never blocked.
 */
import type { PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import type { Database } from "#db/connect";

const lockKeys = "hashtext('nearcrawl rir-import'), hashtext($1)";

/** Runs with the lock held, on one connection; throws DatabaseError when another import holds it. */
export async function withImportLock<T>(
  database: Database,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await database.pool.connect();
  let isReusable = false;
  try {
    const answer = await client.query<{ locked: boolean }>(
      `select pg_try_advisory_lock(${lockKeys}) as locked`,
      [database.schema],
    );
    isReusable = true;
    if (!answer.rows[0]?.locked) {
      throw new DatabaseError(
        `another import or rollback is running on schema ${database.schema}; try again later`,
      );
    }
    return await holdingLock(client, database.schema, work);
  } catch (error) {
    isReusable &&= await answers(client);
    throw error;
  } finally {
    client.release(!isReusable);
  }
}

async function holdingLock<T>(
  client: PoolClient,
  schema: string,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  try {
    return await work(client);
  } finally {
    // Where the connection is broken the lock is gone with it.
    await client.query(`select pg_advisory_unlock(${lockKeys})`, [schema]).catch(() => {});
  }
}

async function answers(client: PoolClient): Promise<boolean> {
  return await client.query("select").then(
    () => true,
    () => false,
  );
}

/** Whether an import or a rollback holds the lock. */
export async function isImportRunning({ pool, schema }: Database): Promise<boolean> {
  const { rows } = await pool.query<{ is_running: boolean }>(
    `select exists (
       select from pg_locks
       where locktype = 'advisory' and granted and objsubid = 2
         and database = (select oid from pg_database where datname = current_database())
         and classid::bigint = hashtext('nearcrawl rir-import')::bigint & 4294967295
         and objid::bigint = hashtext($1)::bigint & 4294967295
     ) as is_running`,
    [schema],
  );
  return rows[0]?.is_running ?? false;
}

/** Commits what `work` did, or nothing of it. */
export async function inTransaction<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

/**
 * Allows one import or rollback at a time per schema by a session's advisory lock, which ends with the process, even
 * after kill -9. Readers are never blocked.
 */
import type { PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { isAdvisoryLockHeld, releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import type { Database } from "#db/server-database";

const lockName = "nearcrawl rir-import";

export async function withImportLock<T>(
  database: Database,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await database.pool.connect();
  let isReusable = false;
  try {
    const isOurs = await tryAdvisoryLock(client, lockName, database.schema);
    isReusable = true;
    if (!isOurs) {
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
    await releaseAdvisoryLock(client, lockName, schema);
  }
}

async function answers(client: PoolClient): Promise<boolean> {
  return await client.query("select").then(
    () => true,
    () => false,
  );
}

export async function isImportRunning({ pool, schema }: Pick<Database, "pool" | "schema">): Promise<boolean> {
  return await isAdvisoryLockHeld(pool, lockName, schema);
}

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

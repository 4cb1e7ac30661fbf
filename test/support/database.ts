/**
 * A fresh, migrated schema for one test file or test, on the run's embedded Postgres or on the server that
 * DATABASE_URL names. Closing drops it.
 */
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";
import { type Database, openDatabase } from "#db/connect";
import { startEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";

export async function testDatabase(options: { maxConnections?: number } = {}): Promise<Database> {
  const databaseUrl = process.env.DATABASE_URL ?? (await runDatabaseUrl());
  const database = await openDatabase({
    databaseUrl,
    home: inject("databaseHome"),
    schema: `test_${randomBytes(6).toString("hex")}`,
    ...options,
  });
  await migrate(database);
  return { ...database, close: async () => await dropAndClose(database) };
}

/**
 * The run's server, which need not outlive a power cut: where many tests write, a commit that waits for the disk takes
 * seconds, and so does everything that a crawler and its coordinator do after one another.
 */
async function runDatabaseUrl(): Promise<string> {
  const { url, started } = await startEmbeddedPostgres(inject("databaseHome"));
  if (!started) return url;
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("alter system set fsync = off");
  await client.query("select pg_reload_conf()");
  await client.end();
  return url;
}

async function dropAndClose(database: Database): Promise<void> {
  try {
    await database.pool.query(`drop schema "${database.schema}" cascade`);
  } finally {
    await database.close();
  }
}

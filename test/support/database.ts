/**
 * A fresh, migrated schema for one test file or test, on the run's embedded Postgres or on the server that
 * DATABASE_URL names. Closing drops it.
 */
import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { type Database, openDatabase } from "#db/connect";
import { startEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";

export async function testDatabase(options: { maxConnections?: number } = {}): Promise<Database> {
  const databaseUrl = process.env.DATABASE_URL ?? (await startEmbeddedPostgres(inject("databaseHome"))).url;
  const database = await openDatabase({
    databaseUrl,
    home: inject("databaseHome"),
    schema: `test_${randomBytes(6).toString("hex")}`,
    ...options,
  });
  await migrate(database);
  return { ...database, close: async () => await dropAndClose(database) };
}

async function dropAndClose(database: Database): Promise<void> {
  try {
    await database.pool.query(`drop schema "${database.schema}" cascade`);
  } finally {
    await database.close();
  }
}

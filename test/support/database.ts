/**
 * A fresh, migrated database for one test file or test. On the run's embedded Postgres it is a copy of one that is
 * migrated once, which takes a tenth of the time of the migrations; on the server that DATABASE_URL names it is a schema
 * of its own. Closing drops it.
 */
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";
import { type Database, openDatabase } from "#db/connect";
import { startEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";

interface PoolOptions {
  readonly maxConnections?: number;
}

export async function testDatabase(options: PoolOptions = {}): Promise<Database> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  const { DATABASE_URL: serverUrl } = process.env;
  return serverUrl === undefined ? await copied(name, options) : await newSchema(serverUrl, name, options);
}

async function newSchema(databaseUrl: string, schema: string, options: PoolOptions): Promise<Database> {
  const database = await open(databaseUrl, schema, options);
  await migrate(database);
  const close = async () => {
    try {
      await database.pool.query(`drop schema "${schema}" cascade`);
    } finally {
      await database.close();
    }
  };
  return { ...database, close };
}

const migrated = "migrated";

/** The schema has the name of the database: what is told by schema (locks, processes) is nobody else's. */
async function copied(name: string, options: PoolOptions): Promise<Database> {
  const { url } = await startEmbeddedPostgres(inject("databaseHome"));
  await asServer(url, async (server) => {
    await server.query("select pg_advisory_lock(1)");
    const { rowCount } = await server.query("select from pg_database where datname = $1", [migrated]);
    if (rowCount === 0) await prepare(server, url);
    await server.query("select pg_advisory_unlock(1)");
    await server.query(`create database ${name} template ${migrated}`);
  });
  await asServer(urlOf(url, name), (server) => server.query(`alter schema ${migrated} rename to ${name}`));
  const database = await open(urlOf(url, name), name, options);
  const close = async () => {
    await database.close();
    await asServer(url, (server) => server.query(`drop database ${name} with (force)`));
  };
  return { ...database, close };
}

/**
 * Once in a run. Its server need not outlive a power cut: where many tests write, a commit that waits for the disk takes
 * seconds, and so does everything that a crawler and its coordinator do after one another.
 */
async function prepare(server: Client, url: string): Promise<void> {
  await server.query("alter system set fsync = off");
  await server.query("select pg_reload_conf()");
  await server.query("drop database if exists unfinished");
  await server.query("create database unfinished");
  const database = await open(urlOf(url, "unfinished"), migrated, {});
  await migrate(database);
  await database.close();
  await server.query(`alter database unfinished rename to ${migrated}`);
}

async function asServer(url: string, work: (server: Client) => Promise<unknown>): Promise<void> {
  const server = new Client({ connectionString: url });
  await server.connect();
  try {
    await work(server);
  } finally {
    await server.end();
  }
}

/** Of the same server (the embedded one's URL is `postgresql:///nearcrawl?host=…`). */
function urlOf(url: string, databaseName: string): string {
  return url.replace(/\/\/\/[^?]+/, `///${databaseName}`);
}

async function open(databaseUrl: string, schema: string, options: PoolOptions): Promise<Database> {
  return await openDatabase({ databaseUrl, home: inject("databaseHome"), schema, ...options });
}

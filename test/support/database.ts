/**
 * A fresh, migrated database for a test or a file; closing drops it. On the run's embedded Postgres it is a copy of a template,
 * which takes a tenth of the time of the migrations. On a DATABASE_URL server it is a new schema.
 */
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";
import { openDatabase } from "#db/connect";
import { startEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";

interface TestDatabaseOptions {
  readonly maxConnections?: number;
  /** Keeps all partitions that the migrations create. */
  readonly allParts?: boolean;
}

export async function testDatabase(options: TestDatabaseOptions = {}): Promise<Database> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  const { DATABASE_URL: serverUrl } = process.env;
  return serverUrl === undefined ? await copied(name, options) : await newSchema(serverUrl, name, options);
}

async function newSchema(
  databaseUrl: string,
  schema: string,
  options: TestDatabaseOptions,
): Promise<Database> {
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
const inFewParts = "in_few_parts";

/**
 * `file_copy` takes a third of the processor time of a copy through the write-ahead log. The schema has the database's name,
 * which keeps locks and process names that contain it apart.
 */
async function copied(name: string, options: TestDatabaseOptions): Promise<Database> {
  const { url } = await startEmbeddedPostgres(inject("databaseHome"));
  const template = options.allParts === true ? migrated : inFewParts;
  await asServer(url, async (server) => {
    await server.query("select pg_advisory_lock(1)");
    const { rowCount } = await server.query("select from pg_database where datname = $1", [inFewParts]);
    if (rowCount === 0) await prepare(server, url);
    await server.query("select pg_advisory_unlock(1)");
    await server.query(copyOf(template, name));
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
 * Copies the database and returns a function that puts the copy in its place, as a restore of last night's backup does. Null on
 * a DATABASE_URL server, which may hold other databases.
 */
export async function rememberedDatabase({ schema }: Database): Promise<(() => Promise<void>) | null> {
  if (process.env.DATABASE_URL !== undefined) return null;
  const { url } = await startEmbeddedPostgres(inject("databaseHome"));
  // A retried test makes a second copy.
  const kept = `${schema}_${randomBytes(3).toString("hex")}`;
  const withoutOthers = async (server: Client, work: () => Promise<unknown>) => {
    await server.query(`alter database ${schema} allow_connections false`);
    await server.query("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1", [
      schema,
    ]);
    await work();
  };
  await asServer(url, async (server) => {
    await withoutOthers(server, async () => await server.query(copyOf(schema, kept)));
    await server.query(`alter database ${schema} allow_connections true`);
  });
  return async () =>
    await asServer(url, async (server) => {
      await withoutOthers(server, async () => await server.query(`drop database ${schema} with (force)`));
      await server.query(`alter database ${kept} rename to ${schema}`);
      await server.query(`alter database ${schema} allow_connections true`);
    });
}

/**
 * Runs once per run. The server need not survive a power cut: with many tests writing at once, a commit that waits for the disk
 * takes seconds.
 */
async function prepare(server: Client, url: string): Promise<void> {
  await server.query("alter system set fsync = off");
  // Each copy makes a checkpoint, after which every page would be logged whole at its first change.
  await server.query("alter system set full_page_writes = off");
  // The folder may be in memory.
  await server.query("alter system set max_wal_size = '1GB'");
  await server.query("select pg_reload_conf()");
  for (const left of ["unfinished", migrated]) await server.query(`drop database if exists ${left}`);
  await server.query("create database unfinished");
  const database = await open(urlOf(url, "unfinished"), migrated, {});
  await migrate(database);
  await database.close();
  await server.query(`alter database unfinished rename to ${migrated}`);
  await server.query(copyOf(migrated, "unfinished"));
  await asServer(urlOf(url, "unfinished"), (inside) => inside.query(fewParts));
  await server.query(`alter database unfinished rename to ${inFewParts}`);
}

const copyOf = (template: string, name: string) =>
  `create database ${name} template ${template} strategy file_copy`;

/**
 * Replaces each table's eight hash partitions by two. Every connection reads the catalogue of all partitions and indexes that it
 * uses and plans for each, which is a large share of the time of hundreds of small databases.
 */
const fewParts = `
  do $$
  declare
    parted record;
    part regclass;
  begin
    for parted in
      select t.partrelid::regclass as name, c.relname as bare
      from pg_partitioned_table t
      join pg_class c on c.oid = t.partrelid
      where t.partstrat = 'h'
    loop
      for part in select i.inhrelid::regclass from pg_inherits i where i.inhparent = parted.name loop
        execute format('drop table %s', part);
      end loop;
      for number in 0..1 loop
        execute format('create table ${migrated}.%I partition of %s for values with (modulus 2, remainder %s)',
          parted.bare || '_' || number, parted.name, number);
      end loop;
    end loop;
  end
  $$`;

async function asServer(url: string, work: (server: Client) => Promise<unknown>): Promise<void> {
  const server = new Client({ connectionString: url });
  await server.connect();
  try {
    await work(server);
  } finally {
    await server.end();
  }
}

/** Another database of the same server (the embedded one's URL is `postgresql:///nearcrawl?host=…`). */
function urlOf(url: string, databaseName: string): string {
  return url.replace(/\/\/\/[^?]+/, `///${databaseName}`);
}

async function open(databaseUrl: string, schema: string, options: TestDatabaseOptions): Promise<Database> {
  return await openDatabase({ databaseUrl, home: inject("databaseHome"), schema, ...options });
}

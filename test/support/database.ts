/**
 * A fresh, migrated database for one test file or test. On the run's embedded Postgres it is a copy of one that is
 * migrated once, which takes a tenth of the time of the migrations; on the server that DATABASE_URL names it is a schema
 * of its own. Closing drops it.
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
  /** The tables in all the parts that the migrations give them. */
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
 * Copied as files, which takes a third of the processor's time that block by block through the write-ahead log does.
 * The schema has the name of the database: what is told by schema (locks, processes) is nobody else's.
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
 * Remembers the database as it is, and gives what puts it back so, with all that was written since lost: what a restore of last
 * night's backup does. Null on the server that DATABASE_URL names, where the database is not the test's own.
 */
export async function rememberedDatabase({ schema }: Database): Promise<(() => Promise<void>) | null> {
  if (process.env.DATABASE_URL !== undefined) return null;
  const { url } = await startEmbeddedPostgres(inject("databaseHome"));
  // A test that is tried again remembers a second time.
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
 * Once in a run. Its server need not outlive a power cut: where many tests write, a commit that waits for the disk takes
 * seconds, and so does everything that a crawler and its coordinator do after one another.
 */
async function prepare(server: Client, url: string): Promise<void> {
  await server.query("alter system set fsync = off");
  // Copies make checkpoints, after each of which a page would be written whole at its first change.
  await server.query("alter system set full_page_writes = off");
  // It may lie in memory.
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
 * Two hash partitions in place of each table's eight. Whatever connects reads the catalogue of every part and index that
 * it asks, and plans for each: with hundreds of small databases a good share of what the tests take.
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

/** Of the same server (the embedded one's URL is `postgresql:///nearcrawl?host=…`). */
function urlOf(url: string, databaseName: string): string {
  return url.replace(/\/\/\/[^?]+/, `///${databaseName}`);
}

async function open(databaseUrl: string, schema: string, options: TestDatabaseOptions): Promise<Database> {
  return await openDatabase({ databaseUrl, home: inject("databaseHome"), schema, ...options });
}

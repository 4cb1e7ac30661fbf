/**
 * Migrates the database's schema to the newest version. The files db/migrations/NNNN-name.sql run in order, each in a
 * transaction, under an advisory lock, so that only one process migrates at a time. A schema of another program is left
 * alone (schema-state.ts), and so is one with running coordinators that a migration needs stopped.
 */
import type { PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { softwareVersion } from "#protocol/software-version";
import { coordinatorWords, runningCoordinators } from "./advisory-lock.ts";
import {
  foreignSchemaWords,
  foundation,
  isFromBeforeFoundationSql,
  type Migration,
  migrationsFolder,
  ownMigrations,
  ranMigrations,
  schemaStateOf,
} from "./schema-state.ts";
import { type Database, wordsOf } from "./server-database.ts";

/**
 * How often a migration is retried after a deadlock with readers of its tables. Postgres ends one of the two
 * transactions, and a migration that was ended leaves nothing behind.
 */
const mostAttempts = 5;
const deadlockDetected = "40P01";

interface MigrateOptions {
  readonly folder?: string;
}

/**
 * Creates the schema if necessary, runs the migrations that it lacks and returns their names. Throws a DatabaseError,
 * without changing anything, when the schema is not this program's or coordinators must stop first.
 */
export async function migrate(
  database: Database,
  { folder = migrationsFolder() }: MigrateOptions = {},
): Promise<{ applied: string[] }> {
  const namesIn = async () => (await ranMigrations(database.pool, database.schema)).map(({ name }) => name);
  const before = new Set(await namesIn());
  for (let attempt = 1; ; attempt++) {
    try {
      await runPending(database, folder);
      return { applied: (await namesIn()).filter((name) => !before.has(name)) };
    } catch (error) {
      if ((error as { code?: unknown }).code === deadlockDetected && attempt < mostAttempts) continue;
      if (error instanceof DatabaseError) throw error;
      throw new DatabaseError(
        `migration of schema ${database.schema} in ${database.description}: ${wordsOf(error)}`,
        { cause: error },
      );
    }
  }
}

async function runPending(database: Database, folder: string): Promise<void> {
  const { schema } = database;
  // Loaded on demand, because most importers of this module only read.
  const { PG_MIGRATE_LOCK_ID, runner } = await import("node-pg-migrate");
  const client = await database.pool.connect();
  const own = ownMigrations(folder);
  try {
    // Programs from before the foundation take the same lock, which is node-pg-migrate's own.
    await client.query(`select pg_advisory_lock(${PG_MIGRATE_LOCK_ID})`);
    const ran = await ranMigrations(client, schema);
    const state = schemaStateOf(ran, own);
    if (state.fault !== null) throw new DatabaseError(foreignSchemaWords(database, state.fault));
    await refuseWhereOthersRun(client, database, state.pending);
    await createSchema(client, schema);
    await prepareTable(client, schema);
    await client.query("select set_config('nearcrawl.version', $1, false)", [softwareVersion]);
    if (state.takesFoundationAsRun)
      await client.query(`insert into "${schema}".migration (name, run_on) values ($1, now())`, [foundation]);
    await runner({
      dbClient: client,
      dir: folder,
      direction: "up",
      migrationsTable: "migration",
      migrationsSchema: schema,
      schema: [schema, "public"],
      singleTransaction: false,
      noLock: true,
      checkOrder: false,
      logger: silent,
    });
    if (own.some(({ needsAllStopped }) => needsAllStopped))
      await client.query(`delete from "${schema}".migration where ${isFromBeforeFoundationSql}`);
  } finally {
    // A failed migration leaves a transaction and a lock, so the connection is closed instead of reused.
    client.release(true);
  }
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

async function refuseWhereOthersRun(
  client: PoolClient,
  { schema, description }: Database,
  pending: readonly Migration[],
): Promise<void> {
  const demanding = pending.find(({ needsAllStopped }) => needsAllStopped);
  if (demanding === undefined) return;
  const running = await runningCoordinators(client, schema);
  if (running.length === 0) return;
  throw new DatabaseError(
    `migration ${demanding.name} needs all coordinators stopped, and ` +
      `${running.length === 1 ? "one runs" : `${running.length} run`} on schema ${schema} of ` +
      `${description}: ${running.map(coordinatorWords).join(", ")}. Stop ` +
      `${running.length === 1 ? "it" : "them"}, then start this again. Nothing was touched.`,
  );
}

/** Creates node-pg-migrate's table. A session default records in each row which program version ran the migration. */
async function prepareTable(client: PoolClient, schema: string): Promise<void> {
  const table = `"${schema}".migration`;
  const version = "version text default current_setting('nearcrawl.version', true)";
  const { rows } = await client.query<{ there: boolean; says_version: boolean }>(
    `select to_regclass($1) is not null as there,
       exists (select from pg_attribute where attrelid = to_regclass($1) and attname = 'version') as says_version`,
    [table],
  );
  const { there, says_version: saysVersion } = rows[0]!;
  if (!there)
    await client.query(
      `create table ${table} (id serial primary key, name varchar(255) not null, run_on timestamp not null, ${version})`,
    );
  // Existing rows get an empty version, because the session has not set its default yet.
  else if (!saysVersion) await client.query(`alter table ${table} add column ${version}`);
}

/**
 * `create schema if not exists` needs a right on the database even when the schema exists, and fails with a duplicate
 * key (23505) when two sessions create the schema at once.
 */
async function createSchema(client: PoolClient, schema: string): Promise<void> {
  const found = await client.query("select from pg_namespace where nspname = $1", [schema]);
  if (found.rowCount !== 0) return;
  try {
    await client.query(`create schema if not exists "${schema}"`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "23505") throw error;
  }
}

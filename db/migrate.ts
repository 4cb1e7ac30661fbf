/**
 * Brings the database's schema to the newest migration. The files db/migrations/NNNN-name.sql run in
 * order, each in one transaction, under an advisory lock: two processes that start at once take turns.
 */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runner } from "node-pg-migrate";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { type Database, wordsOf } from "./server-database.ts";

/**
 * How often a migration starts over when whoever reads the tables meanwhile stands in its way: Postgres ends one of two
 * transactions that wait for each other, and nothing of the migration is left.
 */
const mostAttempts = 5;
const deadlockDetected = "40P01";

/** Creates the schema when it is not there and runs what it lacks; names the migrations that ran. */
export async function migrate(database: Database): Promise<{ applied: string[] }> {
  const before = new Set(await migrationsIn(database));
  for (let attempt = 1; ; attempt++) {
    try {
      await runPending(database);
      return { applied: (await migrationsIn(database)).filter((name) => !before.has(name)) };
    } catch (error) {
      if ((error as { code?: unknown }).code === deadlockDetected && attempt < mostAttempts) continue;
      throw new DatabaseError(
        `migration of schema ${database.schema} in ${database.description}: ${wordsOf(error)}`,
        { cause: error },
      );
    }
  }
}

/** In the order in which they ran; none where there is no schema yet. */
async function migrationsIn({ pool, schema }: Database): Promise<string[]> {
  const table = `"${schema}".migration`;
  const { rows: found } = await pool.query("select to_regclass($1) is not null as there", [table]);
  if (!found[0]?.there) return [];
  const { rows } = await pool.query<{ name: string }>(`select name from ${table} order by id`);
  return rows.map(({ name }) => name);
}

async function runPending(database: Database): Promise<void> {
  const client = await database.pool.connect();
  try {
    await createSchema(client, database.schema);
    await runner({
      dbClient: client,
      dir: migrationsFolder(),
      direction: "up",
      migrationsTable: "migration",
      migrationsSchema: database.schema,
      schema: [database.schema, "public"],
      singleTransaction: false,
      advisoryLockMode: "wait",
      logger: silent,
    });
  } finally {
    // Closed rather than reused: a failed migration leaves a transaction and a lock behind.
    client.release(true);
  }
}

/** Names of the migrations that this software has, in order. */
export function migrationNames(): string[] {
  return readdirSync(migrationsFolder())
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .sort();
}

/** Names of the migrations that this software has and the schema of this connection lacks, in order. */
export async function pendingMigrations(pool: Pick<Pool, "query">): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>("select name from migration");
  const ran = new Set(rows.map(({ name }) => name));
  return readdirSync(migrationsFolder())
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .filter((name) => !ran.has(name))
    .sort();
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * `create schema if not exists` asks for a right on the database even when the schema is there, and fails
 * with a duplicate key (23505) when two sessions create it at once.
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

/** The package's db/migrations: beside this file in the source, further up from dist/. */
function migrationsFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (true) {
    const candidate = join(folder, "db", "migrations");
    if (existsSync(candidate) && existsSync(join(folder, "package.json"))) return candidate;
    const parent = dirname(folder);
    if (parent === folder) throw new DatabaseError("the package's folder db/migrations is missing");
    folder = parent;
  }
}

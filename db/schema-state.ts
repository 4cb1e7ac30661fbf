/**
 * Compares a schema's migrations with this program's: which ones must run, and why a schema is not this program's.
 * Table `migration` has a row per migration, with the version of the program that ran it.
 *
 * 0065-foundation replaces the 55 unreleased migrations before it. A schema with all of them already has its result, so
 * its row is added to theirs. Older programs then still find their rows and can work beside new ones. The first
 * migration that excludes old programs removes the rows, since such a program refuses a schema that lacks its first
 * migration.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { softwareVersion } from "#protocol/software-version";
import type { Database } from "./server-database.ts";

export interface Migration {
  readonly name: string;
  /**
   * Set by the header `-- needs: all coordinators stopped`. Other migrations may run while coordinators of the last
   * release are running.
   */
  readonly needsAllStopped: boolean;
}

interface RanMigration {
  readonly name: string;
  /** The version of the program that ran it, or null when unknown. */
  readonly version: string | null;
}

interface SchemaState {
  readonly pending: readonly Migration[];
  /** True when the older migrations have already made everything that the foundation makes. */
  readonly takesFoundationAsRun: boolean;
  /** Why this program leaves the schema alone, in words that follow "schema … of …". Null when it does not. */
  readonly fault: string | null;
}

export const foundation = "0065-foundation";

const lastBeforeFoundation = "0065-held-urls";
const countBeforeFoundation = 55;

export const isFromBeforeFoundationSql = `name collate "C" < '0066' and name <> '${foundation}'`;

const isFromBeforeFoundation = ({ name }: RanMigration) => name < "0066" && name !== foundation;

export function schemaStateOf(ran: readonly RanMigration[], own: readonly Migration[]): SchemaState {
  const before = ran.filter(isFromBeforeFoundation);
  const names = new Set(ran.map(({ name }) => name));
  const isComplete = before.length === countBeforeFoundation && names.has(lastBeforeFoundation);
  const takesFoundationAsRun = !names.has(foundation) && isComplete;
  if (takesFoundationAsRun) names.add(foundation);
  const pending = own.filter(({ name }) => !names.has(name));
  const fault =
    unknownFault(ran, own) ??
    (before.length > 0 && !names.has(foundation) ? betweenFault(before) : null) ??
    orderFault(own, names);
  return { pending, takesFoundationAsRun, fault };
}

function unknownFault(ran: readonly RanMigration[], own: readonly Migration[]): string | null {
  const known = new Set(own.map(({ name }) => name));
  const newest = ran.filter((one) => !known.has(one.name) && !isFromBeforeFoundation(one)).at(-1);
  if (newest === undefined) return null;
  const { name, version } = newest;
  const isSame = version === softwareVersion;
  const by =
    version === null ? "a newer program" : isSame ? `a later build of ${version}` : `version ${version}`;
  const use = version === null || isSame ? "that one" : `version ${version} or a newer one`;
  return `was brought to migration ${name} by ${by}, and this program (${softwareVersion}) does not know it: use ${use}, or restore a backup from before`;
}

function betweenFault(before: readonly RanMigration[]): string {
  const newest = before
    .map(({ name }) => name)
    .sort()
    .at(-1);
  return (
    `stands at migration ${newest}, and this program (${softwareVersion}) begins with ${foundation}, ` +
    `which stands for all up to ${lastBeforeFoundation}: start the coordinator of a version that ` +
    `still has what comes after ${newest} once (its db/migrations ends with ` +
    `${lastBeforeFoundation}.sql), then this one`
  );
}

/** Migrations must run in order, because each builds on the earlier ones. */
function orderFault(own: readonly Migration[], names: ReadonlySet<string>): string | null {
  const skipped = own.find(
    ({ name }, at) => !names.has(name) && own.slice(at).some((one) => names.has(one.name)),
  );
  if (skipped === undefined) return null;
  const later = own.find(({ name }) => name > skipped.name && names.has(name))!;
  return (
    `has migration ${later.name} and lacks ${skipped.name}, which comes before it: builds of ` +
    "different branches have run on it; use the one that made it, or a backup"
  );
}

/** Lists this program's migrations in order. Throws for an invalid header. */
export function ownMigrations(folder = migrationsFolder()): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const needs = needsIn(text) ?? "nothing";
      if (needs !== "nothing" && needs !== "all coordinators stopped")
        throw new DatabaseError(
          `${join(folder, file)}: "-- needs: ${needs}" must be "nothing" or "all coordinators stopped"`,
        );
      return { name: file.slice(0, -".sql".length), needsAllStopped: needs !== "nothing" };
    });
}

const needsIn = (text: string): string | null =>
  /^-- needs: *(.*?) *$/m.exec(text.split("-- Up Migration", 1)[0] as string)?.[1] ?? null;

/** Finds db/migrations next to this file in the source, or further up from dist/. */
export function migrationsFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (true) {
    const candidate = join(folder, "db", "migrations");
    if (existsSync(candidate) && existsSync(join(folder, "package.json"))) return candidate;
    const parent = dirname(folder);
    if (parent === folder) throw new DatabaseError("the package's folder db/migrations is missing");
    folder = parent;
  }
}

export async function ranMigrations(
  client: Pick<Pool | PoolClient, "query">,
  schema: string,
): Promise<RanMigration[]> {
  const table = `"${schema}".migration`;
  const { rows: found } = await client.query<{ there: boolean }>(
    "select to_regclass($1) is not null as there",
    [table],
  );
  if (found[0]?.there !== true) return [];
  // Programs from before the foundation created the table without this column.
  const { rows } = await client.query<RanMigration>(
    `select name, nullif(to_jsonb(m) ->> 'version', '') as version from ${table} m order by id`,
  );
  return rows;
}

export async function readSchemaState(
  client: Pick<Pool | PoolClient, "query">,
  schema: string,
): Promise<SchemaState | null> {
  const ran = await ranMigrations(client, schema);
  return ran.length === 0 ? null : schemaStateOf(ran, ownMigrations());
}

/** Throws before anything is changed in a schema that this program must leave alone. */
export async function refuseForeignSchema(database: Database): Promise<void> {
  const { fault } = schemaStateOf(await ranMigrations(database.pool, database.schema), ownMigrations());
  if (fault !== null) throw new DatabaseError(foreignSchemaWords(database, fault));
}

export const foreignSchemaWords = ({ schema, description }: Database, fault: string): string =>
  `schema ${schema} of ${description} ${fault}. Nothing was touched.`;

export async function pendingMigrations(pool: Pick<Pool, "query">): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>("select name from migration order by id");
  const ran = rows.map(({ name }) => ({ name, version: null }));
  return schemaStateOf(ran, ownMigrations()).pending.map(({ name }) => name);
}

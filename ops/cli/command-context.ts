/**
 * What every command shares: where the project keeps its data, which database and schema it means, and how
 * it prints. The environment is read here and nowhere else in the commands.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parse } from "smol-toml";
import { z } from "zod";
import { ConfigError, UsageError } from "#core/errors";
import { placedFaults } from "#crawler/settings/settings-file";
import { keptAsideWords, openDatabase, type ServerEvent } from "#db/connect";
import { refuseForeignSchema } from "#db/schema-state";
import type { Database } from "#db/server-database";
import { readServerUrl } from "#db/server-url";
import { isJournaled, keepJournal } from "./audit-command-change.ts";

/** What the latest `nearcrawl up` or `coordinator` said of itself; how the other commands find it. */
export interface CurrentRun {
  readonly schema: string;
  readonly webUrl: string | null;
  readonly pid: number;
  /** DNS servers that the run uses, as `address:port`; empty: the system's. */
  readonly resolvers: readonly string[];
}

export interface CommandContext {
  readonly home: string;
  readonly databaseUrl: string | null;
  readonly schema: string;
  readonly currentRun: CurrentRun | null;
}

export interface ContextOptions {
  readonly home?: string;
  readonly databaseUrl?: string;
  readonly schema?: string;
}

/**
 * Options win over the environment, the environment over the home folder's settings file and the latest run, those over
 * the defaults. An empty variable counts as not set. Throws a ConfigError for a settings file that cannot be read.
 */
export function commandContext(
  options: ContextOptions,
  env: NodeJS.ProcessEnv = process.env,
): CommandContext {
  const home = resolve(options.home ?? (env.NEARCRAWL_HOME || defaultHome(env)));
  const currentRun = readCurrentRun(home);
  return {
    home,
    databaseUrl: options.databaseUrl ?? (env.DATABASE_URL || databaseUrlIn(home)),
    schema: options.schema ?? (env.NEARCRAWL_SCHEMA || (currentRun?.schema ?? "nearcrawl")),
    currentRun,
  };
}

/** Where the journals of a home's databases are (coordinator/journal). */
export const journalRootOf = (home: string) => join(home, "journal");

/** The coordinator's, which `nearcrawl init` writes. */
export const usualSettingsFile = (home: string) => join(home, "coordinator.toml");

/** As the home folder's settings state it; null: they do not. */
function databaseUrlIn(home: string): string | null {
  const file = usualSettingsFile(home);
  if (!existsSync(file)) return null;
  try {
    const { databaseUrl = null } = parse(readFileSync(file, "utf8"));
    if (typeof databaseUrl === "string") readServerUrl(databaseUrl);
    if (databaseUrl === null || typeof databaseUrl === "string") return databaseUrl;
  } catch (error) {
    if (error instanceof UsageError)
      throw placedFaults(new ConfigError([`databaseUrl: ${error.message}`]), file);
    throw new ConfigError([`${file}: ${(error as Error).message.split("\n", 1)[0]}`]);
  }
  throw new ConfigError([`${file}: databaseUrl: must be a text`]);
}

interface WithDatabaseOptions {
  /** Whatever migrations its schema has; left out, one of another program's is refused. */
  readonly anySchema?: boolean;
  /** What becomes of the embedded server. */
  readonly onServer?: (event: ServerEvent) => void;
}

/**
 * Opens the context's database (starting the embedded one where no server is named), runs, closes. Throws a DatabaseError
 * where the schema is none of this program's: a newer version has migrated it, or an older one stopped half-way.
 */
export async function withDatabase<T>(
  context: CommandContext,
  work: (database: Database) => Promise<T>,
  { anySchema = false, onServer }: WithDatabaseOptions = {},
): Promise<T> {
  const database = await openDatabase({
    databaseUrl: context.databaseUrl,
    home: context.home,
    schema: context.schema,
    onServer: onServer ?? sayKeptAside,
  });
  try {
    if (!anySchema) await refuseForeignSchema(database);
    const answer = await work(database);
    if (isJournaled(database.pool)) await keepJournal(database.pool, journalRootOf(context.home));
    return answer;
  } finally {
    await database.close();
  }
}

/** Whichever command starts the server first. */
function sayKeptAside(event: ServerEvent): void {
  if (event.type === "kept-aside") process.stderr.write(`nearcrawl: ${keptAsideWords(event.folder)}\n`);
}

/**
 * The header that lets an export into OpenSearch; null: none is set. Throws a ConfigError for one half of it, and for what no
 * header may hold.
 */
export function openSearchAuthorization(env: NodeJS.ProcessEnv = process.env): string | null {
  const whole = env.NEARCRAWL_OPENSEARCH_AUTHORIZATION ?? "";
  const user = env.NEARCRAWL_OPENSEARCH_USER ?? "";
  const password = env.NEARCRAWL_OPENSEARCH_PASSWORD ?? "";
  if (/[\r\n\0]/.test(whole)) throw new ConfigError(["NEARCRAWL_OPENSEARCH_AUTHORIZATION: must be one line"]);
  if (whole !== "" && user + password !== "")
    throw new ConfigError([
      "NEARCRAWL_OPENSEARCH_AUTHORIZATION: stands alone, without NEARCRAWL_OPENSEARCH_USER and NEARCRAWL_OPENSEARCH_PASSWORD",
    ]);
  if ((user === "") !== (password === ""))
    throw new ConfigError([
      `NEARCRAWL_OPENSEARCH_${user === "" ? "USER" : "PASSWORD"}: is not set, and the other one is`,
    ]);
  if (whole !== "") return whole;
  return user === "" ? null : `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

/** As root a system folder (another user has to reach it), else the user's data folder. */
export function defaultHome(env: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return "/var/lib/nearcrawl";
  return join(env.XDG_DATA_HOME || join(homedir(), ".local/share"), "nearcrawl");
}

const currentRunSchema = z.object({
  schema: z.string(),
  webUrl: z.string().nullable().catch(null),
  pid: z.number(),
  resolvers: z.array(z.string()).catch([]),
});

const currentRunFile = (home: string) => join(home, "current-run.json");

export function readCurrentRun(home: string): CurrentRun | null {
  const file = currentRunFile(home);
  if (!existsSync(file)) return null;
  try {
    return currentRunSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return null;
  }
}

export function writeCurrentRun(home: string, run: CurrentRun): void {
  mkdirSync(home, { recursive: true });
  const file = currentRunFile(home);
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

/** The context that commands share: data folder, database, schema and output. Commands read the environment only here. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { ConfigError, UsageError } from "#core/errors";
import { placedFaults, readSettingsFile } from "#crawler/settings/settings-file";
import { keptAsideWords, openDatabase, type ServerEvent } from "#db/connect";
import { refuseForeignSchema } from "#db/schema-state";
import type { Database } from "#db/server-database";
import { readServerUrl, withoutPassword } from "#db/server-url";
import { isJournaled, keepJournal } from "./audit-command-change.ts";

/** What the latest `nearcrawl up` or `coordinator` recorded for other commands. */
interface CurrentRun {
  readonly schema: string;
  readonly webUrl: string | null;
  readonly pid: number;
  /** The run's DNS servers as `address:port`. An empty list means the system's. */
  readonly resolvers: readonly string[];
  /** The file given with `--config`. */
  readonly settingsFile: string | null;
  /** The server's URL without its password. `null` means the embedded server. */
  readonly database: string | null;
}

export interface CommandContext {
  readonly home: string;
  /** The coordinator's settings file. `null` means that there is none, so that all defaults apply. */
  readonly settingsFile: string | null;
  readonly databaseUrl: string | null;
  readonly schema: string;
  readonly currentRun: CurrentRun | null;
}

export interface ContextOptions {
  readonly home?: string;
  readonly databaseUrl?: string;
  readonly schema?: string;
  readonly config?: string;
}

/**
 * Options win over the environment, the environment over the settings file and the latest run, and these over the defaults. The
 * settings file is the one named, else that of the latest run, else `coordinator.toml` in the home folder. An empty variable
 * counts as unset. Throws a ConfigError when the settings file cannot be read, or when the latest run used a server and no
 * database is named now, because the embedded database would be a different, empty one.
 */
export function commandContext(
  options: ContextOptions,
  env: NodeJS.ProcessEnv = process.env,
): CommandContext {
  const home = homeOf(options, env);
  const currentRun = readCurrentRun(home);
  const ranWith = currentRun?.settingsFile ?? null;
  const config = options.config ?? (ranWith !== null && existsSync(ranWith) ? ranWith : undefined);
  const context = contextOfStart({ ...options, ...(config !== undefined && { config }) }, env);
  if (context.databaseUrl === null && (currentRun?.database ?? null) !== null)
    throw new ConfigError([
      `${home}: the latest run used the database ${currentRun!.database}, and none is stated now: ` +
        `state it by --database-url, DATABASE_URL, or databaseUrl in ${usualSettingsFile(home)}`,
    ]);
  return context;
}

/** The same for a command that starts a run, and therefore ignores how the latest run was started. */
export function contextOfStart(
  options: ContextOptions,
  env: NodeJS.ProcessEnv = process.env,
): CommandContext {
  const home = homeOf(options, env);
  const usual = usualSettingsFile(home);
  const settingsFile = options.config ?? (existsSync(usual) ? usual : null);
  const currentRun = readCurrentRun(home);
  return {
    home,
    settingsFile,
    databaseUrl: options.databaseUrl ?? (env.DATABASE_URL || databaseUrlIn(settingsFile)),
    schema: options.schema ?? (env.NEARCRAWL_SCHEMA || (currentRun?.schema ?? "nearcrawl")),
    currentRun,
  };
}

/** Returns which setting names a different database than the one in use, or null. */
export function contradictedDatabase(
  { databaseUrl, settingsFile }: CommandContext,
  options: ContextOptions,
  env: NodeJS.ProcessEnv = process.env,
): string | null {
  const stated = [
    ["--database-url", options.databaseUrl],
    ["DATABASE_URL", env.DATABASE_URL || undefined],
    [`databaseUrl of ${settingsFile}`, databaseUrlIn(settingsFile) ?? undefined],
  ] as const;
  const [counts, ...others] = stated.filter(([, url]) => url !== undefined);
  const against = others.filter(([, url]) => url !== databaseUrl);
  if (counts === undefined || against.length === 0) return null;
  const named = against.map(([where, url]) => `${where} (${withoutPassword(url!)})`);
  return `${counts[0]} (${withoutPassword(counts[1]!)}) is used, and not ${named.join(", ")}`;
}

const homeOf = (options: ContextOptions, env: NodeJS.ProcessEnv) =>
  resolve(options.home ?? (env.NEARCRAWL_HOME || defaultHome(env)));

/** The folder of a home's database journals (coordinator/run/journal). */
export const journalRootOf = (home: string) => join(home, "journal");

/** The folder of the search's index. */
export const searchFolderOf = (home: string) => join(home, "search");

/** The socket at which a coordinator answers its owner's commands. */
export const socketPathOf = (home: string) => join(home, "coordinator.sock");

/** The file that `nearcrawl init` writes. */
export const usualSettingsFile = (home: string) => join(home, "coordinator.toml");

function databaseUrlIn(file: string | null): string | null {
  if (file === null) return null;
  const { databaseUrl = null } = readSettingsFile(file);
  if (databaseUrl === null) return null;
  const fault = (words: string) => placedFaults(new ConfigError([`databaseUrl: ${words}`]), file);
  if (typeof databaseUrl !== "string") throw fault("must be a text");
  try {
    readServerUrl(databaseUrl);
  } catch (error) {
    throw error instanceof UsageError ? fault(error.message) : error;
  }
  return databaseUrl;
}

interface WithDatabaseOptions {
  /** If true, accepts a schema with any migrations. By default, a schema of another version is refused. */
  readonly anySchema?: boolean;
  readonly onServer?: (event: ServerEvent) => void;
}

/**
 * Opens the context's database (starts the embedded one if no server is named), runs the work and closes it. Throws a
 * DatabaseError when the schema is not this program's: a newer version migrated it, or an older one stopped half-way.
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

/** Printed by whichever command starts the server. */
function sayKeptAside(event: ServerEvent): void {
  if (event.type === "kept-aside") process.stderr.write(`nearcrawl: ${keptAsideWords(event.folder)}\n`);
}

/**
 * The authorization header for OpenSearch, or null. Throws a ConfigError for an incomplete pair, and for characters that are
 * not allowed in headers.
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

/** For root a system folder, because another user must reach it. Otherwise the user's data folder. */
export function defaultHome(env: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return "/var/lib/nearcrawl";
  return join(env.XDG_DATA_HOME || join(homedir(), ".local/share"), "nearcrawl");
}

const currentRunSchema = z.object({
  schema: z.string(),
  webUrl: z.string().nullable().catch(null),
  pid: z.number(),
  resolvers: z.array(z.string()).catch([]),
  settingsFile: z.string().nullable().catch(null),
  database: z.string().nullable().catch(null),
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

export function writeCurrentRun(
  { home, databaseUrl }: Pick<CommandContext, "home" | "databaseUrl">,
  said: Omit<CurrentRun, "settingsFile" | "database"> & Partial<Pick<CurrentRun, "settingsFile">>,
): void {
  mkdirSync(home, { recursive: true });
  const file = currentRunFile(home);
  const database = databaseUrl === null ? null : withoutPassword(databaseUrl);
  const run: CurrentRun = { settingsFile: null, ...said, database };
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}

/** Options that the download commands share, and values derived from them. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { readSourceSettings, type SourceSettings } from "#rir-import/download/source-settings";
import { commandContext, withDatabase } from "../command-context.ts";
import type { DatabaseOptions } from "../read-database.ts";

export interface CacheOptions {
  readonly home?: string;
  readonly cache?: string;
  readonly sources?: string;
  readonly contact?: string;
  readonly json?: boolean;
}

export const sourcesFileHelp = `
Settings: --sources FILE, else registry-sources.json in the home folder where there is one. JSON, for example
  { "contact": "noc@example.org",
    "sources": { "arin-bulk": { "queryFiles": { "apikey": "/etc/nearcrawl/arin-api-key" } },
                 "lacnic-database": { "enabled": false },
                 "ripencc-inetnum": { "mirrors": ["https://mirror.example.org/ripe.db.inetnum.gz"] },
                 "our-feed": { "kind": "geofeed", "url": "https://example.org/geofeed.csv" } },
    "geofeeds": { "enabled": true, "most": 5000 } }
Secrets stand in files of their own, which the settings name.`;

export function withCacheOptions(command: Command): Command {
  return command
    .option("--cache <folder>", "where downloads are kept (default: registry-cache in the home folder)")
    .option("--sources <file>", "settings for sources, mirrors, proxy and limits")
    .option("--home <folder>", "where everything is kept")
    .option("--json", "print for programs");
}

export function cacheFolderOf(options: CacheOptions): string {
  return resolve(options.cache ?? join(commandContext(options).home, "registry-cache"));
}

/** The contact comes from the option, else from NEARCRAWL_CONTACT, else from the settings. */
export async function settingsOf(
  options: CacheOptions,
  env: NodeJS.ProcessEnv = process.env,
): Promise<SourceSettings> {
  const usual = join(commandContext(options).home, "registry-sources.json");
  const settings = await readSourceSettings(options.sources ?? (existsSync(usual) ? usual : null));
  const contact = options.contact ?? (env.NEARCRAWL_CONTACT || null);
  return contact === null ? settings : { ...settings, contact };
}

/** Aborts at the first SIGINT or SIGTERM. `release` stops listening for these signals. */
export function untilInterrupted(): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", abort).once("SIGTERM", abort);
  return {
    signal: controller.signal,
    release: () => process.off("SIGINT", abort).off("SIGTERM", abort),
  };
}

/** Opens the database, migrates its schema, runs the work and closes it. */
export function withMigrated<T>(
  options: DatabaseOptions,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  return withDatabase(commandContext(options), async (database) => {
    await migrate(database);
    return await work(database);
  });
}

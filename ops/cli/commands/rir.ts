/** `nearcrawl rir`: turns registry dumps into the IP tree. Each sub-command has a file in ../rir. */
import { Command } from "commander";
import { geofeedCopies, sourceRows } from "#rir-import/download/cache-manifest";
import { registryStatus } from "#rir-import/status";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { applyCommand, planCommand, rollbackCommand, rollforwardCommand } from "../rir/apply-command.ts";
import {
  type CacheOptions,
  cacheFolderOf,
  settingsOf,
  sourcesFileHelp,
  withCacheOptions,
  withMigrated,
} from "../rir/cache-options.ts";
import { fetchCommand, sourcesText } from "../rir/fetch-command.ts";
import { checkCommand, statusText } from "../rir/plan-text.ts";

const help = `
Sources are files or folders: RPSL dumps (RIPE, APNIC, AFRINIC, LACNIC), ARIN's bulk data (XML or text),
delegated statistics, IANA's registries; plain, gzip or ZIP, told by their first bytes.

Every quarter:
  nearcrawl rir fetch
  nearcrawl rir plan --cache
  nearcrawl rir apply --cache
  nearcrawl rir rollback          # if it was not right
  nearcrawl rir rollforward       # if it was right after all

Exit codes: 0 done, 1 failed, 2 a source that is not what it claims to be or wrong usage, 3 not found.`;

export function rirCommand(): Command {
  const command = new Command("rir")
    .description("the registries' data: fetch, check, plan, apply, roll back, look up")
    .addHelpText("after", help);
  for (const subcommand of [
    sourcesCommand,
    fetchCommand,
    checkCommand,
    planCommand,
    applyCommand,
    rollbackCommand,
    rollforwardCommand,
    statusCommand,
  ]) {
    command.addCommand(subcommand());
  }
  return command;
}

// `nearcrawl rir status`: shows the sources of the tree in force.

export function statusCommand(): Command {
  return withDatabaseOptions(new Command("status"))
    .description("what the tree in force was made from, and how old that is")
    .addHelpText("after", "\nExit code 3 before the first import.\n\nExample:\n  nearcrawl rir status --json")
    .action(async (options: DatabaseOptions) => {
      const status = await withMigrated(options, (database) => registryStatus(database, new Date()));
      printAnswer(options, status, statusText(status));
      if (status.generation === null) process.exitCode = exitCodes.notFound;
    });
}

// `nearcrawl rir sources`: shows the sources to fetch, and the age of our copies.

export function sourcesCommand(): Command {
  return withCacheOptions(new Command("sources"))
    .description("the registry files: where they are published, and how old our copies are")
    .addHelpText(
      "after",
      `${sourcesFileHelp}\n\nExamples:\n  nearcrawl rir sources\n  nearcrawl rir sources --json`,
    )
    .action(async (options: CacheOptions) => {
      const { sources } = await settingsOf(options);
      const cacheFolder = cacheFolderOf(options);
      const now = new Date();
      const rows = await sourceRows(sources, cacheFolder, now);
      const geofeeds = await geofeedCopies(cacheFolder, now);
      printAnswer(
        options,
        { cacheFolder, sources: rows, geofeeds },
        sourcesText(cacheFolder, rows, geofeeds),
      );
    });
}

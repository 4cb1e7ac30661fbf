/** `nearcrawl rir sources`: what would be fetched from where, and how old our copies are. */
import { Command } from "commander";
import { sourceRows } from "#rir-import/download/source-status";
import { printJson } from "../output.ts";
import {
  type CacheOptions,
  cacheFolderOf,
  settingsOf,
  sourcesFileHelp,
  withCacheOptions,
} from "./cache-options.ts";
import { sourcesText } from "./download-text.ts";

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
      const rows = await sourceRows(sources, cacheFolder, new Date());
      if (options.json) printJson({ cacheFolder, sources: rows });
      else process.stdout.write(`${sourcesText(cacheFolder, rows)}\n`);
    });
}

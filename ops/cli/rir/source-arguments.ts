/** The files of an import: named one by one, or those that `nearcrawl rir fetch` brought. */
import type { Command } from "commander";
import { UsageError } from "#core/errors";
import { cachedSourceFiles } from "#rir-import/download/cached-source-files";
import { cacheFolderOf } from "./cache-options.ts";
import type { DatabaseOptions } from "./database-options.ts";

export interface SourceOptions extends DatabaseOptions {
  /** True: the usual folder. */
  readonly cache?: string | true;
}

export function withSources(command: Command): Command {
  return command
    .argument("[source...]", "files or folders: all of them, every time; what they do not hold is removed")
    .option("--cache [folder]", "what `rir fetch` brought (default: registry-cache in the home folder)");
}

/** Throws UsageError unless files or the cache are named, and not both. */
export async function sourcesOf(
  sources: readonly string[],
  options: SourceOptions,
): Promise<readonly string[]> {
  if (options.cache === undefined) {
    if (sources.length > 0) return sources;
    throw new UsageError("name the files to import, or --cache for those that `nearcrawl rir fetch` brought");
  }
  if (sources.length > 0) throw new UsageError("name files or --cache, not both");
  const folder = cacheFolderOf({
    ...(options.home && { home: options.home }),
    ...(options.cache !== true && { cache: options.cache }),
  });
  const files = await cachedSourceFiles(folder);
  if (files.length === 0) throw new UsageError(`${folder} holds no fetched files: nearcrawl rir fetch`);
  return files;
}

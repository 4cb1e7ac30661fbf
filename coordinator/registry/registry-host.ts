/**
 * What the machine that a coordinator runs on gives the registry's pages: commands in processes of their own, and the
 * files that imports read. The entry point makes it, since it knows how the software was started.
 */
import type { SourceRow } from "#rir-import/download/source-status";
import type { RegistryCommands } from "./registry-job-ports.ts";

export interface CacheState {
  readonly folder: string;
  /** Told to the registries with each request; null: nobody is named. */
  readonly contact: string | null;
  readonly sources: readonly SourceRow[];
}

export interface RegistryHost {
  readonly commands: RegistryCommands;
  /** Throws a NearcrawlError, in words, when the settings or the cache's list cannot be read. */
  cache(now: Date): Promise<CacheState>;
  /** The folder of files that the settings allow, and the folders in it, by name; null: none is allowed. */
  filesFolder(): Promise<{ readonly path: string; readonly names: readonly string[] } | null>;
}

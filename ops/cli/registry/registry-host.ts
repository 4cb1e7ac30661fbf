/** The registry's jobs as this installation can do them: its own `nearcrawl rir` commands, its cache, its files. */
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { RegistryHost } from "#coordinator/registry/facts";
import type { FilesPlace, RegistryOrder } from "#coordinator/registry/jobs";
import { sourceRows } from "#rir-import/download/source-status";
import { cacheFolderOf, settingsOf } from "../rir/cache-options.ts";
import { askerVariables } from "../rir/job-asker.ts";
import { type CommandBounds, runCommand } from "./run-command.ts";

export interface RegistryHostSettings {
  /** How this software is started: its entry file, and Node's own arguments. */
  readonly own: { readonly entry: string; readonly execArgv: readonly string[] };
  readonly home: string;
  readonly schema: string;
  readonly databaseUrl: string;
  readonly filesFolder: string | null;
  readonly bounds: CommandBounds;
}

/** Folders that can be chosen; more are not listed. */
const mostFolders = 200;
/** Of each kind of change, that a plan's pages can show. */
const planSamples = 300;

export function registryHost(settings: RegistryHostSettings): RegistryHost {
  const { own, home, schema, databaseUrl, bounds } = settings;
  return {
    commands: {
      start: (order, asker, onStep) =>
        runCommand(
          {
            ...own,
            args: ["rir", ...wordsOf(order, settings), "--home", home, "--json"],
            // The URL may hold a password, and arguments are for every user of the machine to see.
            env: { DATABASE_URL: databaseUrl, NEARCRAWL_SCHEMA: schema, ...askerVariables(asker) },
            bounds,
          },
          onStep,
        ),
    },
    cache: async (now) => {
      const folder = cacheFolderOf({ home });
      const { sources, contact } = await settingsOf({ home });
      return { folder, contact, sources: await sourceRows(sources, folder, now) };
    },
    filesFolder: async () => {
      const path = settings.filesFolder;
      return path === null ? null : { path: resolve(path), names: await foldersIn(path) };
    },
  };
}

function wordsOf(order: RegistryOrder, settings: RegistryHostSettings): readonly string[] {
  switch (order.type) {
    case "fetch":
      return ["fetch", ...(order.acceptSmaller ? ["--accept-smaller"] : [])];
    case "plan":
      return ["plan", ...filesOf(order.files, settings), "--samples", String(planSamples)];
    case "apply":
      return ["apply", ...filesOf(order.files, settings), "--planned", order.fingerprint];
    case "rollback":
      return ["rollback", "--in-force", String(order.generation), ...(order.toEmpty ? ["--to-empty"] : [])];
    case "rollforward":
      return ["rollforward", String(order.generation)];
  }
}

/** The name is one of `foldersIn`: whoever asks was checked for that. */
function filesOf(place: FilesPlace, { filesFolder }: RegistryHostSettings): readonly string[] {
  if (place.from === "cache") return ["--cache"];
  if (filesFolder === null) throw new TypeError("no folder of files is allowed");
  return [join(resolve(filesFolder), place.name)];
}

/** Folders directly in it; no links, which may lead anywhere. None where it cannot be read. */
async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map(({ name }) => name)
    .sort()
    .slice(0, mostFolders);
}

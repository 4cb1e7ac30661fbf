/** The engine of a command beside which no coordinator runs. */
import { constants, copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "#core/log";
import type { Database } from "#db/server-database";
import { openFts5 } from "./engine/fts5-engine-store.ts";
import { openSearchPlace } from "./engine/opensearch-place-resolver.ts";
import { OpenSearchClient } from "./engine/opensearch-store.ts";
import type { SearchEngine } from "./engine/search-engine.ts";

export const indexFileIn = (folder: string, schema: string) => join(folder, `${schema}.sqlite`);

interface Ports {
  /** The folder with the index of a coordinator that does not run, or null. */
  readonly folder: string | null;
  /** For OpenSearch. */
  readonly authorization: string | null;
  readonly log: Log;
}

interface CommandEngine {
  readonly engine: SearchEngine;
  close(): void | Promise<void>;
}

/** `url` and `ca`: of the OpenSearch that the settings name. Nothing is sent there. */
export async function openCommandEngine(
  database: Database,
  { url, ca }: { readonly url: string | null; readonly ca: string | null },
  { folder, authorization, log }: Ports,
): Promise<CommandEngine> {
  if (url === null) return await openOwnIndex(database, folder);
  const place = openSearchPlace({ names: { url: "search.url", ca: "search.ca" }, url, ca, authorization });
  const engine = new OpenSearchClient({ ...database, place, leads: () => false, log });
  engine.start();
  return { engine, close: async () => await engine.stop() };
}

/**
 * An index that goes with the command. It begins as a copy of the coordinator's file, which only one process may open,
 * and reads from the database what has changed since; without such a file, it reads all pages.
 */
async function openOwnIndex({ pool, schema }: Database, folder: string | null): Promise<CommandEngine> {
  const own = mkdtempSync(join(tmpdir(), "nearcrawl-search-"));
  const file = indexFileIn(own, schema);
  for (const end of folder === null ? [] : ["", "-wal"]) {
    const from = indexFileIn(folder!, schema) + end;
    if (existsSync(from)) copyFileSync(from, file + end, constants.COPYFILE_FICLONE);
  }
  const engine = await openFts5(pool, file);
  const close = () => {
    engine.close();
    rmSync(own, { recursive: true, force: true });
  };
  try {
    await engine.catchUp();
  } catch (error) {
    close();
    throw error;
  }
  return { engine, close };
}

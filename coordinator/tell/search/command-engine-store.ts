/** The engine of a command beside which no coordinator runs. */
import { constants, copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "#db/server-database";
import { openFts5 } from "./engine/fts5-engine.ts";

export const indexFileIn = (folder: string, schema: string) => join(folder, `${schema}.sqlite`);

/**
 * An index that goes with the command. It begins as a copy of the coordinator's file, which only one process may open,
 * and reads from the database what has changed since; without such a file (`folder`: null), it reads all pages.
 */
export async function openCommandEngine({ pool, schema }: Database, folder: string | null) {
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

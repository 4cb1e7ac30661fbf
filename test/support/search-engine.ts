/** The search over a test's database: an index in memory, which has the pages as they are at the first question. */
import type { Pool } from "pg";
import { EngineOnDemand } from "#coordinator/tell/search/engine/engine-on-demand";
import { type Fts5Engine, openFts5 } from "#coordinator/tell/search/engine/fts5-engine-store";
import type { SearchOptions } from "#coordinator/tell/search/query";
import { searchPages } from "#coordinator/tell/search/search";
import { createSearchReads } from "#coordinator/tell/search/search-reads";

const engines = new WeakMap<Pool, EngineOnDemand<Fts5Engine>>();

/** One for each database; it ends with the test's process. */
export function engineOver(pool: Pool): EngineOnDemand<Fts5Engine> {
  const open = async () => {
    const engine = await openFts5(pool, ":memory:");
    await engine.catchUp();
    return { engine, close: () => engine.close() };
  };
  const engine = engines.get(pool) ?? new EngineOnDemand(open);
  engines.set(pool, engine);
  return engine;
}

/** Reads all pages again: tests change them without telling the change feed. */
export async function levelEngine(pool: Pool): Promise<void> {
  await (await engineOver(pool).opened()).catchUp({ full: true });
}

/** Asks the index as it is. */
export const searchOver = async (pool: Pool, words: string, now: Date, options: SearchOptions = {}) =>
  await searchPages(
    createSearchReads(pool, () => performance.now(), engineOver(pool)),
    words,
    options,
    now,
  );

/** Asks an index that has the pages as they are now. */
export async function searchNow(...asked: Parameters<typeof searchOver>) {
  await levelEngine(asked[0]);
  return await searchOver(...asked);
}

/** Scheduled work for the search: see search/index-upkeep-store.ts. */

import type { Pool } from "pg";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { keepSearch } from "./index-upkeep-store.ts";
import type { SearchIndex } from "./memory/index-answer.ts";
import { IndexKeeper, type IndexKeeperOptions } from "./memory/index-keeper-store.ts";
import { TouchedPages } from "./memory/index-page-reads.ts";
import { pageOperations } from "./page-ask.ts";
import { searchOperations } from "./search-ask.ts";
import { createSearchReads } from "./search-reads.ts";

const upkeepMs = 5000;
const forgetMs = 300_000;
/** At most 1/25 of a connection's time goes into this. */
const turnMs = 200;

interface SearchDutyPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly now: () => Date;
  /** A monotonic clock. */
  readonly nowMs: () => number;
}

/** The index in memory; nothing waits for it. */
export function searchIndex(options: IndexKeeperOptions): IndexKeeper {
  const keeper = new IndexKeeper(options);
  keeper.start();
  return keeper;
}

export function scheduleSearch(ports: SearchDutyPorts): void {
  const touched = new TouchedPages();
  ports.timekeeper.every("forget-touched-pages", forgetMs, async () =>
    touched.forgetOld(ports.pool, ports.now()),
  );
  ports.timekeeper.every("keep-search", upkeepMs, async () => await searchTurn(ports));
}

/** Does the work of one run and returns how many pages were checked. */
export async function searchTurn({ pool, now, nowMs }: Omit<SearchDutyPorts, "timekeeper">): Promise<number> {
  const endMs = nowMs() + turnMs;
  let pages = 0;
  for (;;) {
    const step = await keepSearch(pool, now());
    pages += step.pages;
    if (step.rests || nowMs() >= endMs) return pages;
  }
}

/** `searchIndex`: the one in memory, which searches ask first. */
export const searchPart = ({
  pool,
  searchIndex,
}: Pick<SearchDutyPorts, "pool"> & { readonly searchIndex?: SearchIndex }): WebPart =>
  addOperations(
    { ...searchOperations, ...pageOperations },
    createSearchReads(pool, () => performance.now(), searchIndex),
  );

/** The reads of the overview, `who` and the search over a test's database. */
import type { Pool } from "pg";
import { createOverviewReads } from "#coordinator/tell/overview/overview-reads";
import type { SearchIndex } from "#coordinator/tell/search/memory/index-answer";
import { createSearchReads } from "#coordinator/tell/search/search-reads";
import { whoReads } from "#coordinator/tell/who/reads";

/** `index`: the search index in memory. */
export const everyRead = (pool: Pool, nowMs: () => number, index?: SearchIndex) => ({
  ...whoReads(pool, nowMs),
  ...createOverviewReads(pool, nowMs),
  ...createSearchReads(pool, nowMs, index),
});

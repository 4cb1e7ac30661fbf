/** What the overview, `who` and the search read of a test's database, together. */
import type { Pool } from "pg";
import { createOverviewReads } from "#coordinator/overview/overview-reads";
import type { SearchIndex } from "#coordinator/search/memory/index-answer";
import { createSearchReads } from "#coordinator/search/search-reads";
import { whoReads } from "#coordinator/who/reads";

/** `index`: the one in memory. */
export const everyRead = (pool: Pool, nowMs: () => number, index?: SearchIndex) => ({
  ...whoReads(pool, nowMs),
  ...createOverviewReads(pool, nowMs),
  ...createSearchReads(pool, nowMs, index),
});

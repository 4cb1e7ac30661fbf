/** The reads of the overview and of `who` over a test's database. */
import type { Pool } from "pg";
import { createOverviewReads } from "#coordinator/tell/overview/overview-reads";
import { whoReads } from "#coordinator/tell/who/reads";

export const everyRead = (pool: Pool, nowMs: () => number) => ({
  ...whoReads(pool, nowMs),
  ...createOverviewReads(pool, nowMs),
});

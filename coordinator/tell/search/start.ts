/** The search's pages and API, over the pages' connections and an engine. */
import type { Pool } from "pg";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import type { SearchEngine } from "./engine/search-engine.ts";
import { pageOperations } from "./page-ask.ts";
import { searchOperations } from "./search-ask.ts";
import { createSearchReads } from "./search-reads.ts";

export const searchPart = ({
  pool,
  searchEngine,
}: {
  readonly pool: Pool;
  readonly searchEngine: SearchEngine;
}): WebPart =>
  addOperations(
    { ...searchOperations, ...pageOperations },
    createSearchReads(pool, () => performance.now(), searchEngine),
  );

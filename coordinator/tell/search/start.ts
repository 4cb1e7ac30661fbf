/** The search's engine, and its pages and API over the pages' connections and that engine. */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Database } from "#db/server-database";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import type { DatabaseFault } from "../../database/database-watch.ts";
import { indexFileIn } from "./command-engine-store.ts";
import { Fts5Client } from "./engine/fts5-client.ts";
import { openSearchPlace } from "./engine/opensearch-place-resolver.ts";
import { OpenSearchClient } from "./engine/opensearch-store.ts";
import type { SearchEngine } from "./engine/search-engine.ts";
import { pageOperations } from "./page-ask.ts";
import { searchOperations } from "./search-ask.ts";
import { createSearchReads } from "./search-reads.ts";

interface RunningEngine extends SearchEngine {
  start(): void;
  stop(): Promise<void>;
  /** Why searches lack what was crawled lately. */
  fault(): DatabaseFault | null;
}

interface EngineOptions {
  readonly database: Pick<Database, "url" | "schema" | "pool">;
  /** `search` of the settings. */
  readonly settings: { readonly url: string | null; readonly ca: string | null };
  /** Null: the index is in memory. */
  readonly folder: string | null;
  /** For OpenSearch. */
  readonly authorization: string | null;
  /** Whether this coordinator sends documents to the engine that all share. */
  readonly leads: () => boolean;
  readonly log: Log;
}

export function makeSearchEngine(options: EngineOptions): RunningEngine {
  const { database, folder, log, leads, authorization } = options;
  const { url, ca } = options.settings;
  if (url !== null) {
    const names = { url: "search.url", ca: "search.ca" };
    const place = openSearchPlace({ names, url, ca, authorization });
    return new OpenSearchClient({ ...database, place, leads, log });
  }
  const path = folder === null ? ":memory:" : indexFileIn(folder, database.schema);
  return new Fts5Client({ databaseUrl: database.url, path, leads, log });
}

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

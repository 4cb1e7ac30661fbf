/** The slices of a crawl whose shared tables a database has. */
import type { Database } from "#db/server-database";
import { createPool } from "#db/server-database";
import { oneSlice, type Slices } from "../database/slices.ts";

export interface OpenSlicesOptions {
  readonly maxConnections?: number;
  readonly statementTimeoutMs?: number;
}

export async function openSlices(
  database: Database,
  options?: OpenSlicesOptions,
): Promise<Slices & { close(): Promise<void> }> {
  if (options === undefined) return { ...oneSlice(database.pool), close: async () => {} };
  const pool = createPool(database.url, options.maxConnections, options.statementTimeoutMs);
  return { ...oneSlice(pool), close: async () => await pool.end() };
}

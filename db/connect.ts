/**
 * Opens the database: the server that a URL names, or the embedded Postgres in the home folder.
 * Every connection has the schema first in its search path, so that several worlds live side by side.
 */
import type { Pool } from "pg";

export interface Database {
  readonly pool: Pool;
  readonly schema: string;
  /** For people: "embedded Postgres in /var/lib/nearcrawl" or the server's URL without its password. */
  readonly description: string;
  /** A URL for psql and for child processes. */
  readonly url: string;
  close(): Promise<void>;
}

export interface OpenDatabaseOptions {
  /** A server to use; null: the embedded one. */
  readonly databaseUrl: string | null;
  /** The folder that holds everything the embedded one keeps. */
  readonly home: string;
  readonly schema: string;
  readonly maxConnections?: number;
}

export async function openDatabase(_options: OpenDatabaseOptions): Promise<Database> {
  throw new Error("being written");
}

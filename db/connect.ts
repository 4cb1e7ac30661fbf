/**
 * Opens the database: the server that a URL names, or the embedded Postgres in the home folder.
 * Every connection has the schema first in its search path, so that several worlds live side by side.
 */
import type { Pool } from "pg";
import { openEmbeddedDatabase } from "./embedded-database.ts";
import { openServerDatabase } from "./server-database.ts";

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

/**
 * Opens the database and makes sure that it answers. The embedded server is started when it is not
 * running, and attached to when it is. Throws DatabaseError, with the server's own words.
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  if (options.databaseUrl === null) return await openEmbeddedDatabase(options);
  return await openServerDatabase({ ...options, databaseUrl: options.databaseUrl });
}

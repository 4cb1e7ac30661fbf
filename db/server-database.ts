/** Opens the database of a server URL with a pool of connections. */
import { randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { DatabaseError, UsageError } from "#core/errors";
import { ServerPool } from "./server-pool.ts";
import { withoutPassword, withSearchPath } from "./server-url.ts";

export { isConnectionLost } from "./server-pool.ts";
export { withoutPassword, withSearchPath } from "./server-url.ts";

/** Default maximum of connections per process. A coordinator listens on five and holds its lock on one. */
const defaultMaxConnections = 16;

/** Opens the database and runs one query, so that a wrong URL is reported immediately. */
export async function openServerDatabase(options: {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly maxConnections?: number;
}): Promise<Database> {
  const url = withSearchPath(options.databaseUrl, options.schema);
  const description = withoutPassword(options.databaseUrl);
  const pool = createPool(url, options.maxConnections);
  try {
    await refuseTransactionPooling(pool, url, description);
  } catch (error) {
    await pool.end();
    if (error instanceof UsageError) throw error;
    throw new DatabaseError(`the database ${description} cannot be used: ${wordsOf(error)}`, {
      cause: error,
    });
  }
  return { pool, schema: options.schema, description, url, close: async () => await pool.end() };
}

/**
 * Returns a pool whose lost connections never end the process. The query fails with the reason, and the next query
 * opens a connection to the current primary of the URL.
 */
export function createPool(
  url: string,
  maxConnections: number = defaultMaxConnections,
  /** Longer statements are ended. 0 sets no limit. */
  statementTimeoutMs = 0,
): ServerPool {
  return new ServerPool({ url, maxConnections, statementTimeoutMs });
}

/**
 * Throws a UsageError if a pooler may give each transaction another session, which would silently lose a coordinator's
 * notices and locks. On a direct connection the server reports its process id, which poolers hide.
 */
async function refuseTransactionPooling(pool: Pool, url: string, description: string): Promise<void> {
  const one = await pool.connect();
  try {
    if ((await isDirect(one)) || (await keepsSession(one, url))) return;
  } finally {
    one.release();
  }
  throw new UsageError(
    `the pooler at ${description} gives each transaction another session, in which notices and locks ` +
      "are lost: nearcrawl needs session pooling (PgBouncer: pool_mode = session)",
  );
}

/** pg knows the process id of the server behind a connection, but its types lack the property. */
async function isDirect(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]!.pid === (client as PoolClient & { readonly processID: number }).processID;
}

/** Compares with another session of the same pooler, several times because other clients may interfere. */
async function keepsSession(one: PoolClient, url: string): Promise<boolean> {
  const others = createPool(url, 1);
  try {
    const other = await others.connect();
    try {
      for (let tried = 0; tried < 3; tried += 1) if (!(await keepsMark(one, other))) return false;
      return true;
    } finally {
      other.release(true);
    }
  } finally {
    await others.end();
  }
}

async function keepsMark(one: PoolClient, other: PoolClient): Promise<boolean> {
  const mark = randomUUID();
  await one.query("select set_config('nearcrawl.session', $1, false)", [mark]);
  try {
    await other.query("begin");
  } catch {
    // Poolers that pool single statements allow no transactions.
    return false;
  }
  const [ofOther, own] = [await markOf(other), await markOf(one)];
  await other.query("rollback");
  return ofOther !== mark && own === mark;
}

async function markOf(client: PoolClient): Promise<string | null> {
  const { rows } = await client.query<{ mark: string | null }>(
    "select current_setting('nearcrawl.session', true) as mark",
  );
  return rows[0]!.mark;
}

/** Returns the message of any error. An AggregateError, for example of a refused connection, has none of its own. */
export function wordsOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(wordsOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? error.name : error.message;
}

export interface Database {
  readonly pool: Pool;
  readonly schema: string;
  /** Example: "embedded Postgres in /var/lib/nearcrawl", or the URL without its password. */
  readonly description: string;
  /** A URL for psql and child processes. */
  readonly url: string;
  close(): Promise<void>;
}

export async function postgresVersion(pool: Pick<Pool, "query">): Promise<number> {
  const answer = await pool.query<{ server_version_num: string }>("show server_version_num");
  return Math.trunc(Number(answer.rows[0]!.server_version_num) / 10_000);
}

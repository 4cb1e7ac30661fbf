/**
 * The pool of connections to one server, and the database of a server that a URL names.
 */
import { Pool } from "pg";
import { DatabaseError, UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";

/** Connections of one process at most, when the caller does not say; a coordinator listens on five and holds its lock on one. */
const defaultMaxConnections = 16;

/** How long a connection may take before it counts as failed. */
const connectionTimeoutMs = 10_000;

/** A transaction in which nothing happens for so long is ended: it would hold back vacuum and other writers. */
const idleInTransactionMs = 600_000;

/** Opens the database on the server of `databaseUrl`, and asks it one question, so that a wrong URL shows here. */
export async function openServerDatabase(options: {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly maxConnections?: number;
}): Promise<Database> {
  const url = withSearchPath(options.databaseUrl, options.schema);
  const description = withoutPassword(options.databaseUrl);
  const pool = createPool(url, options.maxConnections);
  try {
    await pool.query("select 1");
  } catch (error) {
    await pool.end();
    throw new DatabaseError(`the database ${description} cannot be used: ${wordsOf(error)}`, {
      cause: error,
    });
  }
  return { pool, schema: options.schema, description, url, close: async () => await pool.end() };
}

/**
 * A pool whose lost connections never end the process: a connection that breaks is dropped, its query fails
 * with the reason, and the next query opens a new one.
 */
export function createPool(
  url: string,
  maxConnections: number = defaultMaxConnections,
  /** A statement that takes longer is ended; by default it may take its time. */
  statementTimeoutMs = 0,
): Pool {
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectionTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    statement_timeout: statementTimeoutMs,
    // A server that stands still ends nothing: its client does, a moment later.
    ...(statementTimeoutMs > 0 ? { query_timeout: statementTimeoutMs + 1000 } : {}),
    application_name: "nearcrawl",
    keepAlive: true,
  });
  // Idle connections report to the pool, those in use to their client; an error nobody hears ends the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** The URL with the schema first in the search path of every connection that it opens (psql's, too). */
export function withSearchPath(databaseUrl: string, schema: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new UsageError(
      `schema "${schema}": lower-case letters, digits and underscores, at most 63, not starting with a digit`,
    );
  }
  const parsed = parseDatabaseUrl(databaseUrl);
  const own = parsed.searchParams.get("options");
  parsed.searchParams.set("options", `${own === null ? "" : `${own} `}-c search_path=${schema},public`);
  // libpq reads %20, but not the "+" that searchParams writes for a space.
  parsed.search = parsed.search.replaceAll("+", "%20");
  return parsed.href;
}

/**
 * True when a query failed because the server, or the way to it, went away: it was killed, restarts or recovers. The same
 * query may succeed a moment later, whether or not it had any effect the first time.
 */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isConnectionLost);
  if (!(error instanceof Error)) return false;
  const { code = "" } = error as { code?: unknown };
  return (
    (typeof code === "string" && lostCodes.test(code)) ||
    lostWords.test(error.message) ||
    isConnectionLost(error.cause)
  );
}

/** SQLSTATE: class 08, and what a server says that ends or has not begun; of the system, a socket that leads nowhere. */
const lostCodes = /^(08...|57P0[123]|ECONNREFUSED|ECONNRESET|EPIPE|ENOTSOCK|ENOENT|ETIMEDOUT)$/;

/** Of pg's own errors, which have no code. */
const lostWords =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered|Client was closed)/;

/** What an error says, whatever it is: a refused connection may come as a bundle of errors without words. */
export function wordsOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(wordsOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? error.name : error.message;
}

/** Takes libpq's `user@/name?host=/folder`, too, which is no URL by the WHATWG's rules. */
function parseDatabaseUrl(databaseUrl: string): URL {
  const text = databaseUrl.replace(/^([^/]*\/\/[^/]*@)\//, "$1localhost/");
  if (!/^postgres(ql)?:\/\//.test(text) || !canParseUrl(text)) {
    throw new UsageError("the database URL is not of the form postgresql://user:password@host:port/name");
  }
  return new URL(text);
}

/** For people to read. */
export function withoutPassword(databaseUrl: string): string {
  const parsed = parseDatabaseUrl(databaseUrl);
  if (parsed.password !== "") parsed.password = "";
  parsed.searchParams.delete("password");
  return parsed.href;
}

export interface Database {
  readonly pool: Pool;
  readonly schema: string;
  /** For people: "embedded Postgres in /var/lib/nearcrawl" or the server's URL without its password. */
  readonly description: string;
  /** A URL for psql and for child processes. */
  readonly url: string;
  close(): Promise<void>;
}

// Which Postgres a database is on, for what differs between its versions.

/** The server's major version, such as 15. */
export async function postgresVersion(pool: Pick<Pool, "query">): Promise<number> {
  const answer = await pool.query<{ server_version_num: string }>("show server_version_num");
  return Math.trunc(Number(answer.rows[0]!.server_version_num) / 10_000);
}

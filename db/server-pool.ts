/**
 * A pool of connections to the primary of a URL's servers, for node-postgres knows one server. Each connection finds the
 * primary before it connects, and is set up before its first query: what would go as start-up parameters is set by SQL, since
 * PgBouncer refuses some of those, or drops them in silence.
 *
 *   ready ── the server ends it, or takes no writes any more ──► closed, and so are the idle ones beside it
 *
 * Where there are several servers, they are looked at all the time: one that lost its power says nothing, and a connection to
 * it would wait for a quarter of an hour.
 */
import { Client, Pool, type PoolClient, type PoolConfig } from "pg";
import { DatabaseError, Replaced } from "#core/errors";
import { coordinatorOfSession, isRegisteredSql } from "./coordinator-locks.ts";
import { PrimaryFinder } from "./primary.ts";
import { readServerUrl, type ServerPlace } from "./server-url.ts";
import { lostWords } from "./server-words.ts";

/** How long a connection may take before it counts as failed. */
const connectionTimeoutMs = 10_000;

/** A transaction in which nothing happens for so long is ended: it would hold back vacuum and other writers. */
const idleInTransactionMs = 600_000;

/**
 * The same for a coordinator, whose transactions are short: where another one may not end the sessions of one that is frozen
 * (it has another role), this is how long the rows stay locked.
 */
const coordinatorIdleMs = 30_000;

/** A machine that is gone is noticed after so long without a word, and some seconds; by the server as well (`greeting`). */
const keepAliveMs = 10_000;

const usualWatchMs = 5000;

interface ServerPoolOptions {
  readonly url: string;
  readonly maxConnections: number;
  /** A statement that takes longer is ended; 0: it may take its time. */
  readonly statementTimeoutMs: number;
  /** Between two looks at several servers; left out: 5 s. */
  readonly watchMs?: number;
}

export class ServerPool extends Pool {
  readonly #finder: PrimaryFinder;
  readonly #clients = new Set<ServerClient>();
  readonly #idle = new Set<ServerClient>();
  readonly #watchMs: number;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: ServerPoolOptions) {
    const { url, maxConnections, statementTimeoutMs, watchMs = usualWatchMs } = options;
    const serverUrl = readServerUrl(url);
    const finder = new PrimaryFinder(serverUrl);
    const { searchPath, wantsPrimary, sessionName } = serverUrl;
    const config: ClientConfig = {
      connectionString: serverUrl.connectionString(serverUrl.servers[0]!),
      max: maxConnections,
      connectionTimeoutMillis: connectionTimeoutMs,
      // A server that stands still ends nothing: its client does, a moment later.
      ...(statementTimeoutMs > 0 ? { query_timeout: statementTimeoutMs + 1000 } : {}),
      application_name: "nearcrawl",
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      finder,
      greeting: greeting({ searchPath, statementTimeoutMs, sessionName }),
      wantsPrimary,
      coordinator: coordinatorOfSession(sessionName),
    };
    // pg hands it the pool's own options; its types do not say so.
    super({ ...config, Client: ServerClient as unknown as NonNullable<PoolConfig["Client"]> });
    this.#finder = finder;
    this.#watchMs = watchMs;
    // Idle connections report to the pool, those in use to their client; an error nobody hears ends the process.
    this.on("error", () => {});
    this.on("connect", (client) => this.#note(client as unknown as ServerClient));
    this.on("acquire", (client) => this.#idle.delete(client as unknown as ServerClient));
    this.on("release", (_, client) => this.#idle.add(client as unknown as ServerClient));
    this.on("remove", (client) => this.#forget(client as unknown as ServerClient));
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: TakenCallback): void;
  override connect(callback?: TakenCallback): Promise<PoolClient> | undefined {
    const taken = this.#take();
    if (callback === undefined) return taken;
    taken.then(
      (client) => callback(undefined, client, client.release),
      (error: Error) => callback(error, undefined, () => {}),
    );
    return undefined;
  }

  /** Once more where the primary that is remembered is none any more. */
  async #take(): Promise<PoolClient> {
    try {
      return await super.connect();
    } catch (error) {
      if (!this.#finder.hasChoice || this.ending || !isConnectionLost(error)) throw error;
      return await super.connect();
    }
  }

  /** Whoever waits for an answer gets an error with these words, and the next query a new connection. */
  sever(words: string): void {
    for (const client of this.#clients) client.sever(words);
  }

  #note(client: ServerClient): void {
    this.#clients.add(client);
    client.onLost = (code) => this.#lost(client, code);
    if (!this.#finder.hasChoice || this.#watch !== undefined) return;
    this.#watch = setInterval(() => void this.#look(), this.#watchMs).unref();
  }

  #forget(client: ServerClient): void {
    this.#clients.delete(client);
    this.#idle.delete(client);
    if (this.#clients.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  /** What the server said to one connection holds for all. */
  #lost(client: ServerClient, code: string): void {
    const words = `Connection terminated: its server said ${code}`;
    for (const one of this.#idle) if (one.server === client.server) one.sever(words);
    // Whoever holds it is told the server's own words first.
    if (code === readOnlyCode) setImmediate(() => client.sever(words));
  }

  async #look(): Promise<void> {
    const primary = await this.#finder.look().catch(() => null);
    if (primary === null) return;
    for (const client of this.#clients)
      if (client.server !== primary)
        client.sever(`Connection terminated: ${primary.name} is the primary by now`);
  }
}

/** As pg's types have it: of its two forms, the latter. */
type TakenCallback = Parameters<Pool["connect"]>[0];

interface ClientConfig extends PoolConfig {
  readonly finder: PrimaryFinder;
  readonly greeting: string;
  readonly wantsPrimary: boolean;
  /** The number of the coordinator whose connection it is; null: it is none's. */
  readonly coordinator: number | null;
}

/** read_only_sql_transaction: the server was demoted, and the way to it survived that. */
const readOnlyCode = "25006";

/** One connection, to whichever server is the primary as it connects. */
class ServerClient extends Client {
  readonly #config: ClientConfig;
  #server: ServerPlace | null = null;
  /** The server ended it, or said that it takes no writes. */
  onLost: (code: string) => void = () => {};

  constructor(config: ClientConfig) {
    super(config);
    this.#config = config;
    // Between its parts of connecting nobody listens.
    this.on("error", () => this.#forgetServer());
    this.connection.on("errorMessage", ({ code = "" }: { readonly code?: string }) => {
      if (code !== readOnlyCode && !lostCodes.test(code)) return;
      this.#forgetServer();
      this.onLost(code);
    });
  }

  get server(): ServerPlace | null {
    return this.#server;
  }

  /** Whoever uses it is told so, as of a server that went away. */
  sever(words: string): void {
    this.connection.stream.destroy(new Error(words));
  }

  override connect(): Promise<Client>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<Client> | undefined {
    const connected = this.#connect();
    if (callback === undefined) return connected;
    connected.then(
      () => callback(null, this),
      (error: Error) => callback(error),
    );
    return undefined;
  }

  async #connect(): Promise<Client> {
    const server = await this.#config.finder.find();
    this.#server = server;
    if (server.host !== "") this.host = server.host;
    if (server.port !== null) this.port = server.port;
    try {
      await super.connect();
      await this.#greet(server);
      return this;
    } catch (error) {
      this.#forgetServer();
      this.sever("Connection terminated: it could not be set up");
      throw error;
    }
  }

  async #greet({ name }: ServerPlace): Promise<void> {
    const answer = (await super.query(this.#config.greeting)) as unknown as readonly {
      readonly rows: readonly { readonly is_read_only: boolean }[];
    }[];
    const { wantsPrimary, coordinator } = this.#config;
    if (coordinator !== null) {
      // After the session has its name, or who replaces this coordinator meanwhile would not find it (coordinator-locks).
      const { rowCount } = await super.query(isRegisteredSql(coordinator));
      if (rowCount === 0) throw new Replaced();
    }
    if (!wantsPrimary || answer.at(-1)?.rows[0]?.is_read_only === false) return;
    const cause = Object.assign(new Error("read-only"), { code: readOnlyCode });
    throw new DatabaseError(`${name} takes no writes: it is in recovery (a standby), or set to refuse them`, {
      cause,
    });
  }

  #forgetServer(): void {
    if (this.#server !== null) this.#config.finder.forget(this.#server);
  }
}

type ConnectCallback = ((error: Error) => void) & ((error: null, client: Client) => void);

function greeting({
  searchPath,
  statementTimeoutMs,
  sessionName,
}: {
  readonly searchPath: string | null;
  readonly statementTimeoutMs: number;
  readonly sessionName: string | null;
}): string {
  const isCoordinators = coordinatorOfSession(sessionName) !== null;
  return [
    // A list of plain names (server-url.ts).
    ...(searchPath === null ? [] : [`select set_config('search_path', '${searchPath}', false)`]),
    // Of plain characters (coordinator-locks.ts). A pooler may give the session of somebody else.
    ...(isCoordinators ? [`set application_name to '${sessionName}'`] : []),
    `set idle_in_transaction_session_timeout to ${isCoordinators ? coordinatorIdleMs : idleInTransactionMs}`,
    // The server's own look for clients that are gone without a word takes two hours otherwise.
    "set tcp_keepalives_idle to 10; set tcp_keepalives_interval to 2; set tcp_keepalives_count to 3",
    "set tcp_user_timeout to 15000",
    `set statement_timeout to ${statementTimeoutMs}`,
    "select current_setting('transaction_read_only') = 'on' as is_read_only",
  ].join("; ");
}

/**
 * True when a query failed because the server, or the way to it, went away: it was killed, restarts or recovers, or was
 * demoted to a standby. The same query may succeed a moment later, whether or not it had any effect the first time.
 */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isConnectionLost);
  if (!(error instanceof Error)) return false;
  const { code = "" } = error as { code?: unknown };
  return (
    code === readOnlyCode ||
    (typeof code === "string" && (lostCodes.test(code) || lostSystemCodes.test(code))) ||
    lostWords.test(error.message) ||
    isConnectionLost(error.cause)
  );
}

/** SQLSTATE: class 08, and what a server says that ends or has not begun. */
const lostCodes = /^(08...|57P0[123])$/;

/** Of the system: a socket that leads nowhere, a machine that does not answer. */
const lostSystemCodes =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ENOTSOCK|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/;

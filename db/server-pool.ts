/**
 * Pools connections to the primary among a URL's servers, since node-postgres supports only one server. Each connection
 * finds the primary first. It is then configured by SQL before its first query, because PgBouncer refuses or silently
 * drops some start-up parameters.
 *
 * ready ── the server ends it, or no longer accepts writes ──► closed, together with the idle ones
 *
 * Several servers are checked continuously: one that lost its power sends nothing, and a connection to it would hang
 * for a quarter of an hour.
 */
import { Client, Pool, type PoolClient, type PoolConfig } from "pg";
import { DatabaseError, Replaced } from "#core/errors";
import { coordinatorOfSession, isRegisteredSql } from "./advisory-lock.ts";
import { PrimaryFinder } from "./primary.ts";
import { readServerUrl, type ServerPlace } from "./server-url.ts";
import { lostWords } from "./server-words.ts";

/** A connection attempt that takes longer has failed. */
const connectionTimeoutMs = 10_000;

/** A transaction that is idle for longer is ended, because it would hold back vacuum and other writers. */
const idleInTransactionMs = 600_000;

/**
 * The limit for a coordinator, whose transactions are short. When another coordinator may not end a frozen one's
 * sessions (different role), rows stay locked this long.
 */
const coordinatorIdleMs = 30_000;

/** A dead machine is noticed after this long without traffic, plus a few seconds, on both sides (`greeting`). */
const keepAliveMs = 10_000;

const usualWatchMs = 5000;

interface ServerPoolOptions {
  readonly url: string;
  readonly maxConnections: number;
  /** Longer statements are ended. 0 sets no limit. */
  readonly statementTimeoutMs: number;
  /** The interval between checks of several servers. Default: 5 s. */
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
      // A frozen server cannot end the statement, so the client does, slightly later.
      ...(statementTimeoutMs > 0 ? { query_timeout: statementTimeoutMs + 1000 } : {}),
      application_name: "nearcrawl",
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      finder,
      greeting: greeting({ searchPath, statementTimeoutMs, sessionName }),
      wantsPrimary,
      coordinator: coordinatorOfSession(sessionName),
    };
    // pg passes the pool's own options to the client, but its types do not say so.
    super({ ...config, Client: ServerClient as unknown as NonNullable<PoolConfig["Client"]> });
    this.#finder = finder;
    this.#watchMs = watchMs;
    // Idle connections report errors to the pool, and connections in use to their client. An unhandled error would end
    // the process.
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

  /** Retries once when the cached server is no longer the primary. */
  async #take(): Promise<PoolClient> {
    try {
      return await super.connect();
    } catch (error) {
      if (!this.#finder.hasChoice || this.ending || !isConnectionLost(error)) throw error;
      return await super.connect();
    }
  }

  /** Fails pending queries with this message. The next query gets a new connection. */
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

  /** What the server told one connection applies to all, so the idle ones to the same server are closed too. */
  #lost(client: ServerClient, code: string): void {
    const words = `Connection terminated: its server said ${code}`;
    for (const one of this.#idle) if (one.server === client.server) one.sever(words);
    // Waits, so that the connection's user receives the server's own message first.
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

/** The callback of the last form of `connect`, which pg's types overload. */
type TakenCallback = Parameters<Pool["connect"]>[0];

interface ClientConfig extends PoolConfig {
  readonly finder: PrimaryFinder;
  readonly greeting: string;
  readonly wantsPrimary: boolean;
  /** The number of the coordinator that owns the connection, or null. */
  readonly coordinator: number | null;
}

/** read_only_sql_transaction: the server was demoted, but its connections survived. */
const readOnlyCode = "25006";

class ServerClient extends Client {
  readonly #config: ClientConfig;
  #server: ServerPlace | null = null;
  /** Called when the server ended the connection or no longer accepts writes. */
  onLost: (code: string) => void = () => {};

  constructor(config: ClientConfig) {
    super(config);
    this.#config = config;
    // Between the steps of connecting, nobody else handles errors.
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

  /** To the connection's user this looks like a lost server. */
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
      // Checked after the session has its name, because the successor finds sessions by name (advisory-lock.ts).
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
    // `searchPath` is a list of plain names (server-url.ts), so it needs no quoting.
    ...(searchPath === null ? [] : [`select set_config('search_path', '${searchPath}', false)`]),
    // The name has only plain characters (advisory-lock.ts). A pooler may reuse another client's session.
    ...(isCoordinators ? [`set application_name to '${sessionName}'`] : []),
    `set idle_in_transaction_session_timeout to ${isCoordinators ? coordinatorIdleMs : idleInTransactionMs}`,
    // By default a server takes two hours to notice clients that were lost silently.
    "set tcp_keepalives_idle to 10; set tcp_keepalives_interval to 2; set tcp_keepalives_count to 3",
    "set tcp_user_timeout to 15000",
    `set statement_timeout to ${statementTimeoutMs}`,
    "select current_setting('transaction_read_only') = 'on' as is_read_only",
  ].join("; ");
}

/**
 * True when a query failed because the server or the connection to it was lost: killed, restarting, recovering or
 * demoted. The query may succeed a moment later, whether or not it had an effect the first time.
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

/** SQLSTATE class 08, and the codes of a server that is shutting down or starting. */
const lostCodes = /^(08...|57P0[123])$/;

/** System errors for a dead socket or an unresponsive machine. */
const lostSystemCodes =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ENOTSOCK|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/;

/**
 * Opens the database: the server that a URL names, or the embedded Postgres in the home folder.
 * Every connection has the schema first in its search path, so that several worlds live side by side.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Client, type PoolClient } from "pg";
import { ClockError, DatabaseError } from "#core/errors";
import { impossibleTime } from "#core/own-clock";
import {
  logSince,
  passingVisitor,
  readPidFile,
  serverCrashed,
  serverIsAlive,
  startEmbeddedPostgres,
  stopEmbeddedPostgres,
} from "./embedded-postgres.ts";
import { mostRestarts, noteRestart, restartMinutes, restartsOf } from "./embedded-restarts.ts";
import { type Database, openServerDatabase } from "./server-database.ts";

/** The embedded server has died: it was started again, for the n-th time lately, or dies too often. */
export type ServerEvent =
  /** A folder that other programs' processes could reach was copied, and is kept there. */
  | { readonly type: "kept-aside"; readonly folder: string }
  | { readonly type: "restarted"; readonly times: number }
  | { readonly type: "given-up"; readonly error: DatabaseError };

/** For people. */
export function restartWords(times: number): string {
  return `the embedded Postgres had died and was started again (${times} of at most ${mostRestarts} times in ${restartMinutes} minutes)`;
}

/** For people. */
export function keptAsideWords(folder: string): string {
  return (
    "the database's folder belonged to nobody, which other programs run under: it was copied for an " +
    `account of its own, and the old one is kept in ${folder} (rm -r when all is well)`
  );
}

export interface OpenDatabaseOptions {
  /** A server to use; null: the embedded one. */
  readonly databaseUrl: string | null;
  /** The folder that holds everything the embedded one keeps. */
  readonly home: string;
  readonly schema: string;
  readonly maxConnections?: number;
  /** What becomes of the embedded server while it is open, where it dies. */
  readonly onServer?: (event: ServerEvent) => void;
}

/**
 * Opens the database and makes sure that it answers. The embedded server is started when it is not
 * running, and attached to when it is. Throws DatabaseError, with the server's own words, and ClockError before anything is
 * touched where the machine's clock shows what cannot be.
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const impossible = impossibleTime(new Date());
  if (impossible !== null) throw new ClockError(impossible);
  if (options.databaseUrl === null) return await openEmbeddedDatabase(options);
  return await openServerDatabase({ ...options, databaseUrl: options.databaseUrl });
}

// The database on the embedded server, for as long as this process uses it. One connection of its own marks
// the presence: it tells the server's other users that somebody is here, and tells us when the server dies.

/**
 * Starts or attaches. `close` stops the server when this call started it and nobody else is connected;
 * otherwise it stays for the others.
 */
async function openEmbeddedDatabase({
  onServer = () => {},
  ...options
}: Omit<OpenDatabaseOptions, "databaseUrl">): Promise<Database> {
  const onKeptAside = (folder: string) => onServer({ type: "kept-aside", folder });
  const server = await startEmbeddedPostgres(options.home, { onKeptAside });
  const presence = new Presence(server.home, server.url, onServer);
  const ownBackends = new Set<number>();
  const leave = async (): Promise<void> => {
    await presence.settle();
    const isOurs = server.started || presence.restarted;
    const isFree = isOurs && (await presence.isAlone(ownBackends));
    await presence.end();
    if (isFree) await stopEmbeddedPostgres(server.home);
  };
  try {
    await presence.begin();
    const opened = await openServerDatabase({ ...options, databaseUrl: server.url });
    opened.pool.on("acquire", (client) => ownBackends.add(backendOf(client)));
    const close = async (): Promise<void> => {
      await opened.close();
      await leave();
    };
    return { ...opened, description: `embedded Postgres in ${server.home}`, close };
  } catch (error) {
    await leave();
    throw error;
  }
}

/** The server's process behind a connection: pg has it, its types don't. */
function backendOf(client: PoolClient): number {
  return (client as PoolClient & { readonly processID: number }).processID;
}

/**
 * One idle connection. When it breaks and the server is found dead without having been stopped, the server
 * is started again: queries fail in between, and the pool finds it at the same socket afterwards. One that keeps dying is
 * left alone, until somebody opens it anew.
 */
class Presence {
  readonly #home: string;
  readonly #url: string;
  readonly #onServer: (event: ServerEvent) => void;
  #client: Client | null = null;
  /** Of the server that it is connected to. */
  #pid: number | undefined;
  #ended = false;
  #recovery: Promise<void> = Promise.resolve();
  /** True when it was we who brought the server back. */
  restarted = false;

  constructor(home: string, url: string, onServer: (event: ServerEvent) => void) {
    this.#home = home;
    this.#url = url;
    this.#onServer = onServer;
  }

  async begin(): Promise<void> {
    const client = new Client({
      connectionString: this.#url,
      application_name: "nearcrawl presence",
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    });
    client.on("error", () => {});
    await client.connect();
    this.#client = client;
    this.#pid = readPidFile(this.#home)?.pid;
    client.once("end", () => {
      if (!this.#ended) this.#recovery = this.#lost();
    });
  }

  /** From now on a loss is nobody's business; a recovery that is under way comes to its end first. */
  async settle(): Promise<void> {
    this.#ended = true;
    await this.#recovery;
    if (this.#client === null && serverIsAlive(this.#home)) await this.begin().catch(() => {});
  }

  /**
   * True when the server has no other client. What others closed a moment ago still shows for a while, longer
   * on a busy machine: it looks again for a second. False when the server cannot be asked.
   */
  async isAlone(ownBackends: ReadonlySet<number>): Promise<boolean> {
    for (let attempt = 0; attempt < 50; attempt++) {
      if (attempt > 0) await delay(20);
      const found = await this.#client
        ?.query<{ others: number }>(
          `select count(*)::int as others
           from pg_stat_activity
           where backend_type = 'client backend'
             and pid <> pg_backend_pid()
             and pid <> all($1::int[])
             and application_name <> $2`,
          [[...ownBackends], passingVisitor],
        )
        .catch(() => undefined);
      if (found === undefined) return false;
      if (found.rows[0]?.others === 0) return true;
    }
    return false;
  }

  async end(): Promise<void> {
    await this.#client?.end().catch(() => {});
  }

  /** A server that was stopped on purpose is not started again, but found when somebody else starts it. */
  async #lost(): Promise<void> {
    this.#client = null;
    const pid = this.#pid ?? 0;
    while (!this.#ended && this.#client === null) {
      await delay(200);
      try {
        if (serverCrashed(this.#home)) {
          if (!noteRestart(this.#home)) return await this.#giveUp();
          const { started } = await startEmbeddedPostgres(this.#home);
          this.restarted ||= started;
        }
        if (serverIsAlive(this.#home)) await this.begin();
      } catch {
        // The next turn looks again; queries meanwhile fail with the server's own words.
      }
    }
    const restarts = restartsOf(this.#home);
    if (restarts.includes(pid)) this.#onServer({ type: "restarted", times: restarts.length });
  }

  async #giveUp(): Promise<void> {
    const log = await logSince(this.#home, 0).catch(() => "");
    const words =
      `the embedded Postgres in ${this.#home} died ${mostRestarts + 1} times within ${restartMinutes} ` +
      `minutes, and is not started again by itself; the end of its log: ${log}`;
    this.#onServer({ type: "given-up", error: new DatabaseError(words) });
  }
}

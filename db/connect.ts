/**
 * Opens the database: the server of a URL, or the embedded Postgres in the home folder. On every connection the schema
 * comes first in the search path, so several worlds can share a database.
 */

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
import { type Database, openServerDatabase } from "./server-database.ts";

/** `restarted`: the embedded server died and was restarted, `times` times recently. `given-up`: it dies too often. */
export type ServerEvent =
  /** A folder that other programs' processes could reach was copied, and the original was kept there. */
  | { readonly type: "kept-aside"; readonly folder: string }
  | { readonly type: "restarted"; readonly times: number }
  | { readonly type: "given-up"; readonly error: DatabaseError };

export function restartWords(times: number): string {
  return `the embedded Postgres had died and was started again (${times} of at most ${mostRestarts} times in ${restartMinutes} minutes)`;
}

export function keptAsideWords(folder: string): string {
  return (
    "the database's folder belonged to nobody, which other programs run under: it was copied for an " +
    `account of its own, and the old one is kept in ${folder} (rm -r when all is well)`
  );
}

export interface OpenDatabaseOptions {
  readonly databaseUrl: string | null;
  readonly home: string;
  readonly schema: string;
  readonly maxConnections?: number;
  readonly onServer?: (event: ServerEvent) => void;
}

/**
 * Opens the database and checks that it answers. Starts the embedded server, or attaches to it when it is running.
 * Throws DatabaseError with the server's own message. Throws ClockError, before anything is changed, when the machine's
 * clock is impossible.
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const impossible = impossibleTime(new Date());
  if (impossible !== null) throw new ClockError(impossible);
  if (options.databaseUrl === null) return await openEmbeddedDatabase(options);
  return await openServerDatabase({ ...options, databaseUrl: options.databaseUrl });
}

// Uses the embedded server's database. One connection marks our presence: it shows other users that somebody is
// connected, and its loss shows us that the server died.

/** Starts the server or attaches to it. `close` stops it only if this call started it and nobody else is connected. */
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

/** pg knows the process id of the server behind a connection, but its types lack the property. */
function backendOf(client: PoolClient): number {
  return (client as PoolClient & { readonly processID: number }).processID;
}

/**
 * Holds one idle connection. When it breaks because the server died without being stopped, restarts the server. Until
 * then queries fail. Afterwards the pool finds the server at the same socket. A server that dies too often is left
 * alone until it is opened again.
 */
class Presence {
  readonly #home: string;
  readonly #url: string;
  readonly #onServer: (event: ServerEvent) => void;
  #client: Client | null = null;
  #pid: number | undefined;
  #ended = false;
  #recovery: Promise<void> = Promise.resolve();
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

  /** Ignores connections lost from now on and completes a recovery that is under way. */
  async settle(): Promise<void> {
    this.#ended = true;
    await this.#recovery;
    if (this.#client === null && serverIsAlive(this.#home)) await this.begin().catch(() => {});
  }

  /**
   * Returns true when the server has no other client. Recently closed connections remain visible for a while, so it
   * checks for a second. Returns false when the server cannot be queried.
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

  /** Does not restart a server that was stopped on purpose, but finds it again when somebody else starts it. */
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
        // The next attempt checks again. Until then queries fail with the server's own message.
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

/** A server that dies more often has a cause that restarting does not fix. */
const mostRestarts = 3;
const restartMinutes = 10;

const mostLines = 100;

const fileOf = (home: string) => join(home, "postgres-restarts");

function restartsOf(home: string): readonly number[] {
  const sinceMs = Date.now() - restartMinutes * 60_000;
  const recent = linesOf(home).filter(({ atMs }) => atMs >= sinceMs && atMs <= Date.now());
  return [...new Set(recent.map(({ pid }) => pid))];
}

/** Returns false when the server died too often and must stay down. */
function noteRestart(home: string): boolean {
  const pid = readPidFile(home)?.pid;
  if (pid === undefined) return true;
  const others = restartsOf(home).filter((one) => one !== pid);
  if (others.length >= mostRestarts) return false;
  try {
    const lines = linesOf(home);
    if (lines.length >= mostLines)
      writeFileSync(fileOf(home), lines.slice(-mostRestarts).map(lineOf).join(""));
    if (!restartsOf(home).includes(pid)) appendFileSync(fileOf(home), lineOf({ pid, atMs: Date.now() }));
  } catch {
    // A full disk must not prevent the restart.
  }
  return true;
}

interface Line {
  readonly pid: number;
  readonly atMs: number;
}

const lineOf = ({ pid, atMs }: Line) => `${pid} ${new Date(atMs).toISOString()}\n`;

function linesOf(home: string): readonly Line[] {
  let text = "";
  try {
    text = readFileSync(fileOf(home), "utf8");
  } catch {
    return [];
  }
  return text.split("\n").flatMap((line) => {
    const [, pid, at] = /^(\d+) (\S+)$/.exec(line) ?? [];
    const atMs = Date.parse(at ?? "");
    return Number.isNaN(atMs) ? [] : [{ pid: Number(pid), atMs }];
  });
}

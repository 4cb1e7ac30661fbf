/**
 * Watches whether the database answers and can be written, on connections of its own, so that it never waits for a busy pool.
 * The result is kept in memory, because during a fault nobody can ask the database for it.
 *
 *   answers     Every two seconds it asks for the time. A query without an answer is left open, since a suspended server answers
 *               it when it resumes. After ten seconds the query is sent again on a new connection.
 *   is written  It writes every half minute, and at once after an error that suggests a disk fault, because the first failure
 *               of a job becomes an alert of its own a moment later.
 */
import { randomBytes } from "node:crypto";
import { stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { type Log, silentLog } from "#core/log";
import { within } from "#core/timer-ms";
import { createPool, isConnectionLost, wordsOf } from "#db/server-database";
import { fullDiskWords, timeoutWords, usedUpWords } from "#db/server-words";

export interface DatabaseFault {
  /** Anybody can read this text, so it holds no names and no addresses. */
  readonly words: string;
  readonly since: Date;
}

export interface DatabaseState {
  /** Null while the database answers. */
  readonly silent: DatabaseFault | null;
  /** Null while writes work, as far as is known. */
  readonly unwritable: DatabaseFault | null;
  /** Set if a connection was refused within the last minute because all are in use. */
  readonly usedUp: DatabaseFault | null;
  /** Set if a local server's data folder has disappeared. The server may still answer for a minute. */
  readonly gone: DatabaseFault | null;
}

/** Maximum time for which a caller waits. */
export const lookMs = 1000;

const pingEveryMs = 2000;
const writeEveryMs = 30_000;
/** How long a write check is valid, because several balancers and monitors ask every few seconds. */
const writeKeptMs = 10_000;
const noteAgainMs = 1000;
/** A write that takes longer counts as failed. Under load, even a small one may wait for the disk. */
const mostWriteMs = 10_000;
const askAnewMs = 10_000;

/** A refused client retries within this time. */
const refusedMs = 60_000;

const closeMs = 500;
const ownConnections = 3;
const usualConnectMs = 5000;

interface WatchOptions {
  readonly now: () => Date;
  readonly nowMs: () => number;
  readonly log?: Pick<Log, "warn" | "info">;
  readonly connectMs?: number;
  /** Receives the database's time in ms since 1970 and how long the answer took. */
  readonly onTime?: (atMs: number, tookMs: number) => void;
}

export class DatabaseWatch {
  /** The watch's own connections, also used by other readiness queries. */
  readonly pool: Pool;
  readonly #now: () => Date;
  readonly #log: Pick<Log, "warn" | "info">;
  readonly #nowMs: () => number;
  readonly #onTime: (atMs: number, tookMs: number) => void;
  readonly #ping: Question;
  readonly #write: Question;
  #silent: DatabaseFault | null = null;
  #unwritable: DatabaseFault | null = null;
  #usedUp: DatabaseFault | null = null;
  #refusedAtMs = Number.NEGATIVE_INFINITY;
  #gone: DatabaseFault | null = null;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #isSuspect = false;
  #notedAtMs = Number.NEGATIVE_INFINITY;
  /** The data folder of a server on this machine, if the server reports one. */
  #folder: string | null = null;
  #folderWasThere = false;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** `nowMs` is monotonic. `connectMs` is the time limit for connecting. */
  constructor(
    url: string,
    { now, nowMs, log = silentLog, connectMs = usualConnectMs, onTime = () => {} }: WatchOptions,
  ) {
    this.#now = now;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#onTime = onTime;
    this.pool = createPool(url, ownConnections);
    this.pool.options.connectionTimeoutMillis = connectMs;
    // Without it, a silently cut network path would block a connection for ever.
    this.pool.options.query_timeout = askAnewMs;
    this.#ping = new Question(this.pool, async (client) => await this.#askSimplest(client));
    this.#write = new Question(this.pool, writeAndTakeBack);
  }

  get state(): DatabaseState {
    if (this.#nowMs() - this.#refusedAtMs > refusedMs) this.#usedUp = null;
    return { silent: this.#silent, unwritable: this.#unwritable, usedUp: this.#usedUp, gone: this.#gone };
  }

  start(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      void this.#turn(this.#isSuspect ? 0 : writeEveryMs).finally(() => this.start());
    }, pingEveryMs).unref();
  }

  /** Returns the current state after at most `lookMs`. Writing is checked at most every ten seconds. */
  async look(): Promise<DatabaseState> {
    await this.#turn(writeKeptMs);
    return this.state;
  }

  /** Checks the database at once if the error suggests that the database caused it. */
  note(error: unknown): void {
    if (this.#closed) return;
    if (isRefusedConnection(error)) this.#sayUsedUp(error);
    if (isConnectionLost(error)) this.#ping.anew();
    else if (!readsLikeDisk(error)) return;
    this.#isSuspect = true;
    // When hundreds fail within a second, one check is enough.
    if (this.#nowMs() - this.#notedAtMs < noteAgainMs) return;
    this.#notedAtMs = this.#nowMs();
    void this.#turn(0);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#ping.anew();
    this.#write.anew();
    // A hanging server never confirms the close. Waiting queries end by themselves after ten seconds.
    await within(closeMs, this.pool.end());
  }

  async #turn(writeOlderMs: number): Promise<void> {
    if (this.#closed) return;
    await this.#lookAtFolder();
    const isDue = this.#unwritable !== null || this.#nowMs() - this.#writtenAtMs >= writeOlderMs;
    await Promise.all([this.#lookIfAnswers(), isDue ? this.#lookIfWritten() : null]);
  }

  /** A server that lost its files keeps answering from memory until it checks its lock file (every minute). */
  async #lookAtFolder(): Promise<void> {
    if (!this.#folder) return;
    const answer = await answerOf(folderState(this.#folder), diskMs);
    if (answer === "there") {
      this.#folderWasThere = true;
      this.#gone = null;
    } else if (answer === "gone" && this.#folderWasThere && this.#gone === null) {
      this.#log.warn({ words: goneWords }, "the database's data folder is gone");
      this.#gone = { words: goneWords, since: this.#now() };
    }
  }

  async #askSimplest(client: PoolClient): Promise<void> {
    const askedMs = this.#nowMs();
    const time = "(extract(epoch from clock_timestamp()) * 1000)::float8 as time";
    const folder = `(
      select setting from pg_settings where name = 'data_directory' and inet_server_addr() is null
    ) as folder`;
    const { rows } = await client.query<{ time: number; folder?: string | null }>(
      this.#folder === null ? `select ${time}, ${folder}` : `select ${time}`,
    );
    this.#folder ??= rows[0]!.folder ?? "";
    this.#onTime(rows[0]!.time, this.#nowMs() - askedMs);
  }

  async #lookIfAnswers(): Promise<void> {
    // A caller that joins a running query waits only for the rest of its time.
    const leftMs = Math.max(0, lookMs - this.#ping.waitedMs);
    const answer = await answerOf(this.#ping.ask(), leftMs);
    if (answer === askedAnew) return;
    if (answer === tooLate) {
      this.#saySilent(this.#silent?.words ?? lateWords);
      void this.#ping.asked?.then((answered) => {
        if (answered === null) this.#answers();
      });
      if (this.#ping.waitedMs > askAnewMs) {
        this.#ping.anew();
        this.#write.anew();
      }
    } else if (answer === null) this.#answers();
    else {
      if (isRefusedConnection(answer)) this.#sayUsedUp(answer);
      this.#saySilent(silentWords(answer));
    }
    // A server that cannot write its log ends and does not start again, without mentioning the disk to clients.
    if (this.#silent === null || !this.#folder) return;
    const isFull = await answerOf(isDiskFull(this.#folder), diskMs);
    if (isFull === true) this.#sayUnwritable(fullWords);
    else this.#sayWritable();
  }

  #saySilent(words: string): void {
    if (this.#silent === null) this.#log.warn({ words }, "the database does not answer");
    this.#silent = { words, since: this.#silent?.since ?? this.#now() };
  }

  /** Called when the server answers again: a slow write meanwhile waited for the server, not for its disk. */
  #answers(): void {
    if (this.#silent === null) return;
    this.#log.info({ since: this.#silent.since }, "the database answers again");
    this.#write.anew();
    this.#silent = null;
  }

  async #lookIfWritten(): Promise<void> {
    const answer = await answerOf(this.#write.ask(), lookMs);
    if (answer === askedAnew) return;
    if (answer === tooLate) {
      if (this.#write.waitedMs < mostWriteMs || this.#silent !== null) return;
      this.#sayUnwritable(
        `the database cannot be written: a small write has taken over ${mostWriteMs / 1000} s`,
      );
      this.#write.anew();
      return;
    }
    this.#writtenAtMs = this.#nowMs();
    this.#isSuspect = false;
    if (isRefusedConnection(answer)) return this.#sayUsedUp(answer);
    const words = answer === null ? null : writeFaultWords(answer);
    if (words === null) {
      // A lost connection says nothing about the disk.
      if (answer === null || !isConnectionLost(answer)) this.#sayWritable();
    } else this.#sayUnwritable(words);
  }

  #sayUsedUp(error: unknown): void {
    const words = `the database has no connection left: ${wordsOf(error)}`;
    if (this.state.usedUp === null) this.#log.warn({ words }, "the database has no connection left");
    this.#usedUp = { words, since: this.#usedUp?.since ?? this.#now() };
    this.#refusedAtMs = this.#nowMs();
  }

  #sayWritable(): void {
    if (this.#unwritable === null) return;
    this.#log.info({ since: this.#unwritable.since }, "the database is no longer known to take no writes");
    this.#unwritable = null;
  }

  #sayUnwritable(words: string): void {
    if (this.#unwritable === null) this.#log.warn({ words }, "the database cannot be written");
    this.#unwritable = { words, since: this.#unwritable?.since ?? this.#now() };
  }
}

const tooLate: unique symbol = Symbol("too late");
/** The answer of a query that was abandoned, which says nothing about the database. */
const askedAnew: unique symbol = Symbol("asked anew");
/** Maximum wait for a disk that hangs. */
const diskMs = 200;

/** After a blockage, the event loop runs timers first, so data that already arrived is read before the answer counts as late. */
async function answerOf<T>(asked: Promise<T>, mostMs: number): Promise<T | typeof tooLate> {
  const answered = new AbortController();
  const late = delay(mostMs, undefined, { signal: answered.signal }).then(
    async (): Promise<typeof tooLate> => {
      for (let turns = 0; turns < 3; turns += 1) await nextTurn();
      return tooLate;
    },
    (): typeof tooLate => tooLate,
  );
  try {
    return await Promise.race([asked, late]);
  } finally {
    answered.abort();
  }
}

/** One query on a kept connection; concurrent callers share its answer. */
class Question {
  readonly #pool: Pool;
  readonly #put: (client: PoolClient) => Promise<void>;
  #client: PoolClient | null = null;
  #askedAtMs = 0;
  #turn = 0;
  asked: Promise<unknown> | null = null;

  constructor(pool: Pool, put: (client: PoolClient) => Promise<void>) {
    this.#pool = pool;
    this.#put = put;
  }

  get waitedMs(): number {
    return this.asked === null ? 0 : performance.now() - this.#askedAtMs;
  }

  ask(): Promise<unknown> {
    if (this.asked !== null) return this.asked;
    this.#askedAtMs = performance.now();
    const turn = this.#turn;
    const asked = this.#ask(turn).finally(() => {
      if (turn === this.#turn) this.asked = null;
    });
    this.asked = asked;
    return asked;
  }

  anew(): void {
    this.#turn += 1;
    const client = this.#client;
    this.#client = null;
    this.asked = null;
    client?.release(true);
  }

  async #ask(turn: number): Promise<unknown> {
    let client = this.#client;
    try {
      if (client === null) {
        client = await this.#pool.connect();
        if (turn !== this.#turn) {
          client.release(true);
          return askedAnew;
        }
        this.#client = client;
      }
      await this.#put(client);
      return turn === this.#turn ? null : askedAnew;
    } catch (error) {
      if (turn !== this.#turn) return askedAnew;
      this.#client = null;
      client?.release(true);
      return error;
    }
  }
}

const lateWords = `the database does not answer within ${lookMs / 1000} s`;

function silentWords(error: unknown): string {
  const code = codeOf(error);
  if (code === null && timeoutWords.test(wordsOf(error))) return lateWords;
  if (code === "57P03") return "the database does not answer: it starts, stops or recovers";
  if (code === "53300") return "the database does not answer: it has no connection left";
  if (code !== null && !isSqlState(code)) return `the database does not answer (${code})`;
  if (code !== null && /^28/.test(code)) return `the database lets nobody in (SQLSTATE ${code})`;
  return code === null ? "the database does not answer" : `the database does not answer (SQLSTATE ${code})`;
}

/**
 * Writes a table of nine blocks, removes it and commits the surrounding transaction, in one statement. A full disk still
 * accepts rows in existing blocks and preallocated log files, but no new blocks. The table is unlogged, so that its blocks do
 * not go to a standby. Nobody else sees the table, and nothing remains of it.
 */
async function writeAndTakeBack(client: PoolClient): Promise<void> {
  const name = `ready_${randomBytes(6).toString("hex")}`;
  await client.query(
    `do $$
     begin
       create unlogged table ${name} (number bigint);
       insert into ${name} select generate_series(1, 2000);
       raise sqlstate '${takenBack}';
     exception
       when sqlstate '${takenBack}' then null;
     end
     $$`,
  );
}

const fullWords = "the database cannot be written: its disk is full";

/** The text names no path, because everybody may read /ready. `nearcrawl alerts` on the machine says what to do. */
const goneWords =
  "the data folder is gone: restore it (nearcrawl database backups, then nearcrawl database restore)";

async function folderState(folder: string): Promise<"there" | "gone" | "unknown"> {
  return await stat(join(folder, "PG_VERSION")).then(
    () => "there",
    // A folder that is not readable does not count as gone.
    (error: unknown) => (/^(ENOENT|ENOTDIR)$/.test(codeOf(error) ?? "") ? "gone" : "unknown"),
  );
}

/** With less free space than this, no further file of the server's log fits. */
const leastLogBytes = 16 * 2 ** 20;

async function isDiskFull(folder: string): Promise<boolean> {
  return await statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize < leastLogBytes,
    () => false,
  );
}

/** Returns null when the error says nothing about whether the database can be written. */
function writeFaultWords(error: unknown): string | null {
  const code = codeOf(error);
  if (code === readOnly) return "the database cannot be written: it is read-only";
  // The error proves nothing if, for example, the role has no right to create tables.
  if (code === null || code === insufficientPrivilege || !isSqlState(code) || isConnectionLost(error))
    return null;
  if (code === diskFull) return fullWords;
  return `the database cannot be written (SQLSTATE ${code}): its log says why`;
}

/** The code `too_many_connections` of the server, a database or a role. PgBouncer has no code for it. */
const isRefusedConnection = (error: unknown): boolean =>
  codeOf(error) === "53300" || usedUpWords.test(wordsOf(error));

/** Whether the code means a full, read-only or broken disk, or is one of the server's generic codes. */
const readsLikeDisk = (error: unknown) =>
  /^(53(?!300)[0-9A-Z]{3}|25006|58[0-9A-Z]{3}|XX00[012])$/.test(codeOf(error) ?? "") ||
  fullDiskWords.test(wordsOf(error));

const codeOf = (error: unknown): string | null => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : null;
};

/** Excludes system codes such as EPIPE. */
const isSqlState = (code: string) => /^(?=.*\d)[0-9A-Z]{5}$/.test(code);

/** An error code of a class that Postgres leaves to applications. */
const takenBack = "NC001";

const insufficientPrivilege = "42501";
const diskFull = "53100";
const readOnly = "25006";

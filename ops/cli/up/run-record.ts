/**
 * The table `run` has the parameters of the run and whether it completed. The next `up` with the same parameters resumes an
 * interrupted run, while other parameters start from an empty schema. A schema just restored from a backup is never emptied:
 * its run continues, complete or not, and other parameters are refused.
 */
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { PoolClient } from "pg";
import {
  currentEpoch,
  forgetDatabases,
  refuseOtherDatabase,
  serverState,
} from "#coordinator/run/journal/epoch-store";
import { UsageError } from "#core/errors";
import { type OpenDatabaseOptions, openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { refuseForeignSchema } from "#db/schema-state";
import type { Database } from "#db/server-database";
import { journalRootOf } from "../command-context.ts";
import type { ThroughOutages } from "./follow-run.ts";

/** The SQLSTATE that follows a `lock_timeout`. */
const LOCK_NOT_AVAILABLE = "55P03";

export interface OpenedRun {
  readonly database: Database;
  readonly runId: number;
  /** True when an earlier run with the same parameters continues. */
  readonly resumed: boolean;
  finish(summary: unknown): Promise<void>;
  close(): Promise<void>;
}

export interface OpenRunOptions {
  readonly database: OpenDatabaseOptions;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The folder of the run's data (spools, registry files). It is removed when the run starts again. */
  readonly folder: string;
  /** Forces a new start. Never used on the real web, whose data is kept. */
  readonly fresh: boolean;
  /** True for a demonstration, where other parameters empty the schema. */
  readonly disposable: boolean;
  /** Waits for a server that stops while tables are being created. */
  readonly throughOutages: ThroughOutages;
  /** Receives a line after each outage of the database, and one when an earlier run's data is removed. */
  readonly note: (words: string) => void;
}

export async function openRun(options: OpenRunOptions): Promise<OpenedRun> {
  const database = await openDatabase(options.database);
  const lock = new SchemaLock(database, options.note);
  try {
    await lock.take();
    if (!options.fresh) await refuseForeignSchema(database);
    const unfinished = await options.throughOutages(async () => {
      const found = options.disposable ? await unfinishedRun(database, options) : null;
      if (found === null && options.disposable) {
        if (await hasRun(database)) options.note(removedWords);
        await database.pool.query(`drop schema if exists "${database.schema}" cascade`);
        rmSync(options.folder, { recursive: true, force: true });
        await forgetDatabases(journalRootOf(options.database.home), database.schema);
      }
      await refuseOtherDatabase(database, journalRootOf(options.database.home));
      await migrate(database);
      return found;
    });
    const runId = unfinished ?? (await startRun(database, options.parameters));
    return {
      database,
      runId,
      resumed: unfinished !== null,
      finish: async (summary) => {
        const text = "update run set finished_at = now(), summary = $2 where run_id = $1";
        await database.pool.query(text, [runId, JSON.stringify(summary)]);
      },
      close: async () => {
        await lock.release();
        await database.close();
      },
    };
  } catch (error) {
    await lock.release();
    await database.close();
    throw error;
  }
}

/** An ended run may still hold its lock this long, because the server notices a closed connection late. */
const lockWaitMs = 1000;
const lockAgainMs = 200;

/**
 * Allows one run per schema by an advisory lock. Its connection ends with this process in any case. After a restart of the
 * server the lock is taken again.
 */
class SchemaLock {
  readonly #database: Database;
  readonly #note: (words: string) => void;
  #client: PoolClient | null = null;
  #isReleased = false;

  constructor(database: Database, note: (words: string) => void) {
    this.#database = database;
    this.#note = note;
  }

  /** Throws a UsageError while another run holds the lock. */
  async take(): Promise<void> {
    const client = await this.#database.pool.connect();
    const key = `nearcrawl up ${this.#database.schema}`;
    try {
      await client.query(`set lock_timeout = ${lockWaitMs}`);
      await client.query("select pg_advisory_lock(hashtextextended($1, 0))", [key]);
      await client.query("reset lock_timeout");
    } catch (error) {
      client.release(true);
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      throw new UsageError(
        `a run is under way in this database already (schema ${this.#database.schema}): stop it first, or give this one a --home of its own`,
      );
    }
    this.#client = client;
    client.once("end", () => void this.#lost(client));
  }

  /** Releases the lock before the connection ends, so that a successor need not wait for the server to notice the end. */
  async release(): Promise<void> {
    this.#isReleased = true;
    await this.#client?.query("select pg_advisory_unlock_all()").catch(() => undefined);
    this.#client?.release(true);
    this.#client = null;
  }

  async #lost(client: PoolClient): Promise<void> {
    if (this.#isReleased) return;
    this.#client = null;
    client.release(true);
    const lostMs = performance.now();
    while (!this.#isReleased) {
      await delay(lockAgainMs);
      const isBack = await this.take().then(
        () => true,
        () => false,
      );
      if (!isBack) continue;
      if (this.#isReleased) return await this.release();
      const seconds = ((performance.now() - lostMs) / 1000).toFixed(1);
      this.#note(`the database went away, and is back after ${seconds} s: the run goes on`);
      return;
    }
  }
}

const removedWords = "a new emulated Internet begins, and the data of the run before is removed";

async function hasRun({ pool, schema }: Database): Promise<boolean> {
  const { rows } = await pool.query("select to_regclass($1) as run", [`"${schema}".run`]);
  return rows[0]?.run !== null;
}

async function unfinishedRun(database: Database, options: OpenRunOptions): Promise<number | null> {
  if (options.fresh) return null;
  if (!(await hasRun(database))) return null;
  const { rows } = await database.pool.query<{ run_id: number; parameters: unknown; finished: boolean }>(
    "select run_id, parameters, finished_at is not null as finished from run order by run_id desc limit 1",
  );
  const [latest] = rows;
  if (latest === undefined) return null;
  const isSame = isDeepStrictEqual(latest.parameters, { ...options.parameters });
  if (!(await isRestored(database))) return isSame && !latest.finished ? latest.run_id : null;
  if (!isSame)
    throw new UsageError(
      "the database was restored, and its run had other parameters " +
        `(${JSON.stringify(latest.parameters).slice(0, 300)}): give the same ones, or --fresh to ` +
        "empty it",
    );
  await database.pool.query("update run set finished_at = null, summary = null where run_id = $1", [
    latest.run_id,
  ]);
  return latest.run_id;
}

/** True when the server's timeline or identity has changed since a coordinator last used it. */
async function isRestored({ pool }: Database): Promise<boolean> {
  const [epoch, server] = [await currentEpoch(pool), await serverState(pool)];
  const differs = <Value>(known: Value | null, now: Value | null) =>
    known !== null && now !== null && known !== now;
  return differs(epoch.timeline, server.timeline) || differs(epoch.systemIdentifier, server.systemIdentifier);
}

async function startRun(database: Database, parameters: unknown): Promise<number> {
  const { rows } = await database.pool.query<{ run_id: number }>(
    "insert into run (parameters) values ($1) returning run_id",
    [JSON.stringify(parameters)],
  );
  return rows[0]!.run_id;
}

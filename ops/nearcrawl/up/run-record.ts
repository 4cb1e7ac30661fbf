/**
 * The table `run`: what was asked for and whether it came to its end. A run that was broken off is taken up
 * again by the next `up` with the same parameters; one with others starts from an empty schema.
 */
import { rmSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { PoolClient } from "pg";
import { UsageError } from "#core/errors";
import { type Database, type OpenDatabaseOptions, openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";

/** The SQLSTATE of a lock that was not given within `lock_timeout`. */
const LOCK_NOT_AVAILABLE = "55P03";

export interface OpenedRun {
  readonly database: Database;
  readonly runId: number;
  /** True when an earlier run with the same parameters goes on. */
  readonly resumed: boolean;
  finish(summary: unknown): Promise<void>;
  close(): Promise<void>;
}

export interface OpenRunOptions {
  readonly database: OpenDatabaseOptions;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Folders that belong to the run's data (spools, registry files): removed when it starts anew. */
  readonly folder: string;
  /** Start anew in any case. Never used for the real web, whose data is kept. */
  readonly fresh: boolean;
  /** True for a demonstration: other parameters empty the schema. */
  readonly disposable: boolean;
}

export async function openRun(options: OpenRunOptions): Promise<OpenedRun> {
  const database = await openDatabase(options.database);
  let lock: PoolClient | null = null;
  try {
    lock = await lockSchema(database);
    const unfinished = options.disposable ? await unfinishedRun(database, options) : null;
    if (unfinished === null && options.disposable) {
      await database.pool.query(`drop schema if exists "${database.schema}" cascade`);
      rmSync(options.folder, { recursive: true, force: true });
    }
    await migrate(database);
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
        await unlock(lock);
        await database.close();
      },
    };
  } catch (error) {
    await unlock(lock);
    await database.close();
    throw error;
  }
}

/** Gives the lock back before the connection ends: who comes next need not wait until the server notices that. */
async function unlock(lock: PoolClient | null): Promise<void> {
  await lock?.query("select pg_advisory_unlock_all()").catch(() => undefined);
  lock?.release(true);
}

/** How long a run that has just ended may still hold its lock: the server notices a closed connection a little later. */
const LOCK_WAIT_MS = 1000;

/** One run a schema: an advisory lock, held by a connection that ends with this process, however it ends. */
async function lockSchema(database: Database): Promise<PoolClient> {
  const client = await database.pool.connect();
  const key = `nearcrawl up ${database.schema}`;
  try {
    await client.query(`set lock_timeout = ${LOCK_WAIT_MS}`);
    await client.query("select pg_advisory_lock(hashtextextended($1, 0))", [key]);
    await client.query("reset lock_timeout");
    return client;
  } catch (error) {
    client.release(true);
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new UsageError(
      `a run is under way in this database already (schema ${database.schema}): stop it first, or give this one a --home of its own`,
    );
  }
}

async function unfinishedRun(database: Database, options: OpenRunOptions): Promise<number | null> {
  if (options.fresh) return null;
  const { rows: found } = await database.pool.query("select to_regclass($1) as run", [
    `"${database.schema}".run`,
  ]);
  if (found[0]?.run === null) return null;
  const { rows } = await database.pool.query<{ run_id: number; parameters: unknown; finished: boolean }>(
    "select run_id, parameters, finished_at is not null as finished from run order by run_id desc limit 1",
  );
  const [latest] = rows;
  const same = latest && !latest.finished && isDeepStrictEqual(latest.parameters, { ...options.parameters });
  return same ? latest.run_id : null;
}

async function startRun(database: Database, parameters: unknown): Promise<number> {
  const { rows } = await database.pool.query<{ run_id: number }>(
    "insert into run (parameters) values ($1) returning run_id",
    [JSON.stringify(parameters)],
  );
  return rows[0]!.run_id;
}

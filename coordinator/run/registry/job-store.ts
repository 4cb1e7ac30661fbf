/** Table registry_job, and the lock that lets one job run at a time and distinguishes a running job from an aborted one. */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { isAdvisoryLockHeld, releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import { clean } from "../../database/transaction.ts";
import type {
  Asker,
  HeldJob,
  JobEnd,
  JobProgress,
  RegistryJob,
  RegistryJobStore,
  RegistryJobWithResult,
  RegistryOrder,
} from "./jobs.ts";

const lockName = "nearcrawl registry-job";
const mostKept = 100;
const mostWords = 4000;

interface RegistryJobPlace {
  readonly pool: Pool;
  readonly schema: string;
  /** One of its connections holds the lock while a job runs; it is closed with the store. */
  readonly lockPool: Pool;
}

export function createRegistryJobStore(place: RegistryJobPlace): RegistryJobStore {
  return {
    ...createRegistryJobReads(place),
    begin: async (order, asker, now) => await begin(place, { order, asker, now }),
    askCancel: async (jobId, by) => {
      const { rowCount } = await place.pool.query(
        `update registry_job set cancel_asked_by = coalesce(cancel_asked_by, $2)
         where job_id = $1 and state = 'running'`,
        [jobId, clean(by)],
      );
      return rowCount === 1;
    },
    close: async () => await place.lockPool.end(),
  };
}

function createRegistryJobReads(
  place: Pick<RegistryJobPlace, "pool" | "schema">,
): Pick<RegistryJobStore, "list" | "find"> {
  return {
    list: async (limit) => (await read(place, { where: "true", result: "null", limit })).map(withoutResult),
    find: async (jobId) =>
      (await read(place, { where: "job_id = $2", result: "result", limit: 1, jobId }))[0] ?? null,
  };
}

interface NewJob {
  readonly order: RegistryOrder;
  readonly asker: Asker;
  readonly now: Date;
}

async function begin(place: RegistryJobPlace, job: NewJob) {
  const client = await place.lockPool.connect();
  try {
    if (await tryAdvisoryLock(client, lockName, place.schema)) {
      return { held: heldJob(place, client, await insert(client, job)) };
    }
    client.release();
  } catch (error) {
    // Closing the connection releases the lock.
    client.release(true);
    throw error;
  }
  return { running: await whoRuns(place) };
}

/** The lock's holder writes its row in a moment, or has just written its end. */
async function whoRuns(place: RegistryJobPlace): Promise<RegistryJob> {
  for (let tried = 0; tried < 20; tried += 1) {
    const [running] = await read(place, { where: "state = 'running'", result: "null", limit: 1 });
    if (running) return withoutResult(running);
    await delay(50);
  }
  throw new DatabaseError("a registry job is about to begin or to end; try again");
}

async function insert(client: PoolClient, { order, asker, now }: NewJob): Promise<number> {
  // The lock's holder runs the only job, so any other running one was aborted.
  await client.query(
    `update registry_job
     set state = 'broken-off', ended_at = seen_at, words = 'the coordinator that ran it is gone'
     where state = 'running'`,
  );
  const { type, ...asked } = order;
  const { rows } = await client.query<{ job_id: number }>(
    `insert into registry_job (kind, asked, asked_by, via, state, started_at, seen_at, progress)
     values ($1, $2, $3, $4, 'running', $5, $5, '{"text": "starting", "share": null, "lines": []}')
     returning job_id`,
    [type, JSON.stringify(asked), clean(asker.by), asker.via, now],
  );
  const jobId = rows[0]!.job_id;
  await client.query("delete from registry_job where job_id <= $1", [jobId - mostKept]);
  return jobId;
}

function heldJob({ schema }: RegistryJobPlace, client: PoolClient, jobId: number): HeldJob {
  return {
    jobId,
    note: async (progress, now) => await note(client, { jobId, progress, now }),
    end: async (end, now) => {
      try {
        await writeEnd(client, { jobId, end, now });
        await releaseAdvisoryLock(client, lockName, schema);
      } finally {
        // The connection is closed instead of returned to the pool, so that the lock is released in any state.
        client.release(true);
      }
    },
  };
}

async function note(
  client: PoolClient,
  { jobId, progress, now }: { jobId: number; progress: JobProgress; now: Date },
): Promise<string | null> {
  const { rows } = await client.query<{ cancel_asked_by: string | null }>(
    `update registry_job set progress = $2, seen_at = $3
     where job_id = $1 and state = 'running'
     returning cancel_asked_by`,
    [jobId, jsonOf(progress), now],
  );
  if (rows[0] === undefined) throw new Error(`registry job ${jobId} was taken for broken off`);
  return rows[0].cancel_asked_by;
}

async function writeEnd(
  client: PoolClient,
  { jobId, end, now }: { jobId: number; end: JobEnd; now: Date },
): Promise<void> {
  const { state, exitCode, words, result } = end;
  await client.query(
    `update registry_job
     set state = $2, exit_code = $3, words = $4, result = $5, ended_at = $6, seen_at = $6
     where job_id = $1 and state = 'running'`,
    [
      jobId,
      state,
      exitCode,
      words === null ? null : clean(words.slice(0, mostWords)),
      result === null ? null : jsonOf(result),
      now,
    ],
  );
}

/** Postgres' jsonb holds neither NUL nor unpaired surrogates. */
function jsonOf(value: unknown): string {
  return JSON.stringify(value).replace(/\\u0000|\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd");
}

type JobRow = Omit<RegistryJobWithResult, "order" | "startedAt" | "endedAt"> & {
  readonly kind: RegistryOrder["type"];
  readonly asked: Readonly<Record<string, unknown>>;
  readonly startedAt: Date;
  readonly seenAt: Date;
  readonly endedAt: Date | null;
};

async function read(
  { pool, schema }: Pick<RegistryJobPlace, "pool" | "schema">,
  asked: {
    readonly where: string;
    readonly result: "null" | "result";
    readonly limit: number;
    readonly jobId?: number;
  },
): Promise<readonly RegistryJobWithResult[]> {
  const read = async () => {
    const { rows } = await pool.query<JobRow>(
      `select job_id as "jobId", kind, asked, asked_by as "askedBy", via, state, started_at as "startedAt",
         seen_at as "seenAt", ended_at as "endedAt", progress, cancel_asked_by as "cancelAskedBy",
         exit_code as "exitCode", words, ${asked.result} as result
       from registry_job
       where ${asked.where}
       order by job_id desc
       limit $1`,
      [asked.limit, ...(asked.jobId === undefined ? [] : [asked.jobId])],
    );
    return rows;
  };
  const rows = await read();
  const running = new Set(rows.filter(({ state }) => state === "running").map(({ jobId }) => jobId));
  if (running.size === 0 || (await isAdvisoryLockHeld(pool, lockName, schema))) return rows.map(jobOf);
  // A job marked as running was aborted if it ran before the lock was free.
  const isBrokenOff = (row: JobRow) => row.state === "running" && running.has(row.jobId);
  return (await read()).map((row) => jobOf(isBrokenOff(row) ? asBrokenOff(row) : row));
}

const asBrokenOff = (row: JobRow): JobRow => ({
  ...row,
  state: "broken-off",
  endedAt: row.seenAt,
  words: "the coordinator that ran it is gone",
});

function jobOf({ kind, asked, startedAt, seenAt: _, endedAt, ...row }: JobRow): RegistryJobWithResult {
  return {
    ...row,
    order: { type: kind, ...asked } as RegistryOrder,
    startedAt: startedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  };
}

function withoutResult({ result: _, ...job }: RegistryJobWithResult): RegistryJob {
  return job;
}

/**
 * Table registry_job, and the lock that lets one job run at a time and distinguishes running jobs from those that broke off.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { isAdvisoryLockHeld, releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import { toldRows } from "../../database/cached-read.ts";
import { clean } from "../../database/transaction.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import type { registryJob } from "./registry-api.ts";

export type RegistryJob = ToldOf<typeof registryJob> & { readonly askedBy: string };

/** `result` is the JSON that the command printed, or null. */
export type RegistryJobWithResult = RegistryJob & { readonly result: unknown };

export type Asker = Pick<RegistryJob, "via"> & { readonly by: string };

export type JobEnd = Pick<RegistryJobWithResult, "exitCode" | "words" | "result"> & {
  readonly state: Exclude<RegistryJob["state"], "running">;
};

export type RegistryJobStore = ReturnType<typeof createRegistryJobStore>;
export type HeldJob = ReturnType<typeof heldJob>;

const lockName = "nearcrawl registry-job";
const mostKept = 100;
const mostWords = 4000;
const gone = "the coordinator that ran it is gone";

/** One connection of `lockPool` holds the lock while a job runs. The pool is closed with the store. */
export function createRegistryJobStore({
  pool,
  schema,
  lockPool,
}: {
  readonly pool: Pool;
  readonly schema: string;
  readonly lockPool: Pool;
}) {
  async function read(
    where: string,
    values: readonly unknown[],
    result: "null" | "result" = "null",
  ): Promise<RegistryJobWithResult[]> {
    const ask = async () =>
      await toldRows<RegistryJobWithResult & { readonly seenAt: string }>(
        pool,
        `select job_id as "jobId", jsonb_build_object('type', kind) || asked as "order", asked_by as "askedBy", via, state,
           started_at as "startedAt", ended_at as "endedAt", progress, cancel_asked_by as "cancelAskedBy",
           exit_code as "exitCode", words, ${result} as result, seen_at as "seenAt"
         from registry_job
         where ${where}
         order by job_id desc
         limit $1`,
        values,
      );
    const rows = await ask();
    const running = new Set(rows.filter(({ state }) => state === "running").map(({ jobId }) => jobId));
    const isCertain = running.size === 0 || (await isAdvisoryLockHeld(pool, lockName, schema));
    // A job that was running before the lock was free, and is still marked as running afterwards, broke off.
    return (isCertain ? rows : await ask()).map(({ seenAt, ...job }) =>
      !isCertain && job.state === "running" && running.has(job.jobId)
        ? { ...job, state: "broken-off", endedAt: seenAt, words: gone }
        : job,
    );
  }
  const list = async (limit: number): Promise<RegistryJob[]> =>
    (await read("true", [limit])).map(({ result: _, ...job }) => job);

  return {
    list,
    find: async (jobId: number) => (await read("job_id = $2", [1, jobId], "result"))[0] ?? null,
    /** Returns the job that is running, if there is one. Also records which jobs broke off. */
    async begin(
      order: RegistryJob["order"],
      asker: Asker,
      now: Date,
    ): Promise<{ readonly held: HeldJob } | { readonly running: RegistryJob }> {
      const client = await lockPool.connect();
      let jobId: number | null;
      try {
        const isOurs = await tryAdvisoryLock(client, lockName, schema);
        jobId = isOurs ? await insert(client, order, asker, now) : null;
      } catch (error) {
        // Closing the connection releases the lock.
        client.release(true);
        throw error;
      }
      if (jobId !== null) return { held: heldJob(client, schema, jobId) };
      client.release();
      // The lock's holder is about to insert its job's row, or has just recorded that the job ended.
      for (let tried = 0; tried < 20; tried += 1) {
        const [running] = await read("state = 'running'", [1]);
        if (running) return { running };
        await delay(50);
      }
      throw new DatabaseError("a registry job is about to begin or to end; try again");
    },
    /** Returns false if the job is not running. */
    async askCancel(jobId: number, by: string): Promise<boolean> {
      const { rowCount } = await pool.query(
        `update registry_job set cancel_asked_by = coalesce(cancel_asked_by, $2)
         where job_id = $1 and state = 'running'`,
        [jobId, clean(by)],
      );
      return rowCount === 1;
    },
    close: async () => await lockPool.end(),
  };
}

async function insert(
  client: PoolClient,
  order: RegistryJob["order"],
  asker: Asker,
  now: Date,
): Promise<number> {
  // The lock's holder runs the only job, so any other job marked as running broke off.
  await client.query(
    `update registry_job set state = 'broken-off', ended_at = seen_at, words = '${gone}' where state = 'running'`,
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

/** A job of this coordinator. The lock is held until the job or the coordinator ends. */
function heldJob(client: PoolClient, schema: string, jobId: number) {
  return {
    jobId,
    /** Returns who has requested the job's end, or null. Rejects if the lock was lost with its connection. */
    async note(progress: RegistryJob["progress"], now: Date): Promise<string | null> {
      const { rows } = await client.query<{ cancel_asked_by: string | null }>(
        `update registry_job set progress = $2, seen_at = $3
         where job_id = $1 and state = 'running'
         returning cancel_asked_by`,
        [jobId, jsonOf(progress), now],
      );
      if (rows[0] === undefined) throw new Error(`registry job ${jobId} was taken for broken off`);
      return rows[0].cancel_asked_by;
    },
    async end({ state, exitCode, words, result }: JobEnd, now: Date): Promise<void> {
      const said = words === null ? null : clean(words.slice(0, mostWords));
      try {
        await client.query(
          `update registry_job
           set state = $2, exit_code = $3, words = $4, result = $5, ended_at = $6, seen_at = $6
           where job_id = $1 and state = 'running'`,
          [jobId, state, exitCode, said, result === null ? null : jsonOf(result), now],
        );
        await releaseAdvisoryLock(client, lockName, schema);
      } finally {
        // Closes the connection instead of returning it to the pool, so that the lock is released in any state.
        client.release(true);
      }
    },
  };
}

/** Postgres' jsonb accepts neither NUL nor unpaired surrogates. */
const jsonOf = (value: unknown): string =>
  JSON.stringify(value).replace(/\\u0000|\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd");

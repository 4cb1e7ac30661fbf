/** The registry's jobs over a real database: one at a time, followed to their end, whoever asked and whichever process died. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRegistryJobStore } from "#coordinator/run/registry/job-store";
import { RegistryJobs } from "#coordinator/run/registry/jobs";
import { silentLog } from "#core/log";
import { createPool } from "#db/server-database";
import { CommandInHand } from "../support/command-in-hand.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";

const at = new Date("2026-03-01T12:00:00Z");
const anna = { by: "anna", via: "page" } as const;
const fetchAll = { type: "fetch", acceptSmaller: false } as const;
const undo = { type: "rollback", generation: 3, toEmpty: false } as const;

const database = await forThisFile(testDatabase());

function coordinator() {
  const lockPool = createPool(database.url, 2);
  const store = createRegistryJobStore({ pool: database.pool, schema: database.schema, lockPool });
  const commands = new CommandInHand();
  const jobs = new RegistryJobs({ store, commands, log: silentLog, now: () => at, noteMs: 10 });
  return { store, commands, jobs, lockPool };
}

let one: ReturnType<typeof coordinator>;
let other: ReturnType<typeof coordinator>;
beforeEach(() => {
  one = coordinator();
  other = coordinator();
});
afterEach(async () => {
  await Promise.all([one.jobs.stop(), other.jobs.stop()]);
});

async function started(order: typeof fetchAll | typeof undo = fetchAll): Promise<number> {
  const begun = await one.jobs.start(order, anna);
  if (!("jobId" in begun)) throw new Error("another job runs");
  return begun.jobId;
}

const stateOf = async (jobId: number) => (await other.store.find(jobId))?.state;
const ended = async (jobId: number) => await until(async () => (await stateOf(jobId)) !== "running", 5000);

describe("a job", () => {
  it("is reported with its progress while it runs, and with its answer when it has ended", async () => {
    const jobId = await started();
    one.commands.onStep({ text: "reading 10 %", share: 0.1, done: null });
    one.commands.onStep({ text: "writing 5 %", share: 0.05, done: "reading 100 %" });
    await until(async () => (await other.store.find(jobId))?.progress.share === 0.05, 5000);

    expect(await other.store.find(jobId)).toMatchObject({
      state: "running",
      order: fetchAll,
      askedBy: "anna",
      via: "page",
      progress: { text: "writing 5 %", lines: ["reading 100 %"] },
    });
    one.commands.end({ result: { fetched: "half a pair \ud800 and \0" } });
    await ended(jobId);
    expect(await other.store.find(jobId)).toMatchObject({
      state: "done",
      exitCode: 0,
      result: { fetched: "half a pair \ufffd and \ufffd" },
    });
  });

  it("that fails keeps its last message", async () => {
    const jobId = await started();
    one.commands.end({ exitCode: 2, words: "no plan's fingerprint" });
    await ended(jobId);

    expect(await other.store.find(jobId)).toMatchObject({ state: "failed", words: "no plan's fingerprint" });
  });

  it("keeps a bounded number of lines, each of bounded length", async () => {
    const jobId = await started();
    for (let step = 0; step < 500; step += 1) {
      one.commands.onStep({ text: "x".repeat(9999), share: null, done: `${step} ${"y".repeat(9999)}` });
    }
    one.commands.end({});
    await ended(jobId);

    const { text, lines } = (await other.store.find(jobId))!.progress;
    expect([text.length, lines.length, lines[59]?.slice(0, 4), lines[59]?.length]).toEqual([
      400,
      60,
      "499 ",
      400,
    ]);
  });
});

describe("over all coordinators", () => {
  it("one job runs at a time: of twenty that are started at once nineteen hear which one runs", async () => {
    const begun = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? one : other).jobs.start(undo, anna)),
    );
    const [winner] = begun.flatMap((answer) => ("jobId" in answer ? answer.jobId : []));

    expect(begun.filter((answer) => "jobId" in answer)).toHaveLength(1);
    expect(begun.flatMap((answer) => ("running" in answer ? answer.running.jobId : []))).toEqual(
      Array.from({ length: 19 }, () => winner),
    );
    one.commands.end({});
    other.commands.end({});
  });

  it("any of them may request its end", async () => {
    const jobId = await started();

    expect(await other.store.askCancel(jobId, "ben")).toBe(true);
    await ended(jobId);
    expect(one.commands.stops).toBe(1);
    expect(await other.store.find(jobId)).toMatchObject({ state: "cancelled", words: "cancelled by ben" });
    expect(await other.store.askCancel(jobId, "ben")).toBe(false);
  });

  it("a job that was done before a requested end is done", async () => {
    const jobId = await started();
    one.commands.end({});
    await other.store.askCancel(jobId, "ben");
    await ended(jobId);

    expect(await stateOf(jobId)).toBe("done");
  });

  it("a coordinator that stops interrupts its job, and another may start the next", async () => {
    const jobId = await started();
    await one.jobs.stop();
    one = coordinator();

    expect(await stateOf(jobId)).toBe("broken-off");
    expect(await other.jobs.start(fetchAll, anna)).toHaveProperty("jobId");
    other.commands.end({});
  });

  it("one that dies leaves no lock: its job is shown as interrupted, its process is stopped, the next may start", async () => {
    const jobId = await started();
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_locks
       where locktype = 'advisory' and classid::bigint = hashtext('nearcrawl registry-job')::bigint & 4294967295
         and objid::bigint = hashtext($1)::bigint & 4294967295`,
      [database.schema],
    );
    await until(async () => (await stateOf(jobId)) === "broken-off", 5000);
    await until(() => one.commands.stops === 1, 5000);

    const [endedAt, words] = [at.toISOString(), "the coordinator that ran it is gone"];
    expect(await other.store.find(jobId)).toMatchObject({ endedAt, words });
    const next = await other.jobs.start(fetchAll, anna);
    expect(next).toEqual({ jobId: jobId + 1 });
    expect((await other.store.list(2)).map(({ state }) => state)).toEqual(["running", "broken-off"]);
    other.commands.end({});
  });
});

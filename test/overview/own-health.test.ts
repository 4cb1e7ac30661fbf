/** What a coordinator knows of itself: jobs that fail or hang, a late process. */
import { afterEach, expect, it } from "vitest";
import { AlertsInTime, OwnHealth } from "#coordinator/tell/overview/own-health";
import { EventLoopWatch } from "#core/clock";
import { silentLog } from "#core/log";
import { Timekeeper } from "#core/scheduler";
import { makeGate } from "../support/gate.ts";
import { until } from "../support/until.ts";

const running: Timekeeper[] = [];
let gate = makeGate();
afterEach(async () => {
  gate.open();
  gate = makeGate();
  await Promise.all(running.splice(0).map((timekeeper) => timekeeper.stop()));
});

const well = { silent: null, unwritable: null, usedUp: null, gone: null };
let aheadMs = 0;

function healthWith(state = well) {
  const noted: unknown[] = [];
  const timekeeper = new Timekeeper(
    silentLog,
    () => true,
    (error) => noted.push(error),
  );
  running.push(timekeeper);
  const health = new OwnHealth({
    database: { state, look: async () => state },
    now: () => new Date(Date.now() + aheadMs),
    nowMs: () => performance.now() + aheadMs,
    jobs: () => timekeeper.reports(),
  });
  return { timekeeper, health, noted };
}

const names = (health: OwnHealth) => health.alerts().map(({ name }) => name);

it("a job that fails three times in a row is an alert with its last error until it succeeds; /ready keeps the error private", async () => {
  const { timekeeper, health, noted } = healthWith();
  let isBroken = true;
  timekeeper.every("apply-links", 1, async () => {
    if (isBroken) throw Object.assign(new Error("could not extend file"), { code: "53100" });
  });
  await until(() => names(health).length > 0, 20_000);

  expect(health.alerts()[0]).toMatchObject({
    name: "job-failing",
    words: expect.stringMatching(/apply-links \(\d+ times: could not extend file, 53100\)\.$/),
  });
  expect(noted.length).toBeGreaterThan(2);
  expect(await health.look()).toMatchObject([
    {
      ...{ code: "job-failing", isInTheWay: false, since: expect.any(Date) },
      words: "a job fails whenever it runs; /alerts names it",
    },
  ]);
  isBroken = false;
  await until(() => names(health).length === 0, 20_000);
});

it("a hanging job is overdue after ten minutes; most frequent jobs hanging for a minute prevent readiness", async () => {
  const { timekeeper, health } = healthWith();
  for (const name of ["apply-links", "resolve-hosts"]) timekeeper.every(name, 1, () => gate.opened);
  timekeeper.every("observe", 1, async () => {});
  await until(
    () => timekeeper.reports().filter(({ runningSinceMs }) => runningSinceMs !== null).length >= 2,
    20_000,
  );

  const inTime = await health.look();
  aheadMs = 61_000;
  const standing = await health.look();
  aheadMs = 601_000;
  const overdue = names(health);
  aheadMs = 0;

  expect(inTime).toEqual([]);
  expect(standing).toMatchObject([
    {
      code: "jobs-stand-still",
      words: "2 of the 3 jobs that run every few seconds have not ended for over 60 s",
      isInTheWay: true,
    },
  ]);
  expect(overdue).toEqual(["job-overdue"]);
});

it("a blocked event loop is late by the time of the block", async () => {
  const watch = new EventLoopWatch();
  try {
    // Waits for its first turn.
    await new Promise((resolve) => setTimeout(resolve, 60));
    const beganMs = performance.now();
    while (performance.now() - beganMs < 300) Math.sqrt(beganMs);
    await until(() => watch.delay.mostMs > 200, 20_000);

    expect(watch.delay.mostMs).toBeGreaterThan(200);
    expect(watch.delay.p99Ms).toBe(0);
  } finally {
    watch.close();
  }
});

it("without the database the alerts are those known in memory, and say so", async () => {
  const silent = { words: "the database does not answer (ECONNREFUSED)", since: new Date(Date.now() - 5000) };
  const { health } = healthWith({ ...well, silent } as never);
  const alerts = new AlertsInTime({ alertFacts: () => Promise.reject(new Error("away")) }, health);

  expect(await alerts.list(new Date())).toMatchObject({
    alerts: [{ name: "database-does-not-answer" }],
    incomplete: "the database does not answer (ECONNREFUSED)",
  });
});

it("knows when it started", () => {
  const before = Date.now();
  const { health } = healthWith();
  const after = Date.now();
  aheadMs = 60_000;
  const { startedAtMs } = health.facts();
  aheadMs = 0;

  expect(startedAtMs).toBeGreaterThanOrEqual(before);
  expect(startedAtMs).toBeLessThanOrEqual(after);
});

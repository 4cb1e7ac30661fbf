/** Periodic flows on a manual clock. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Log, silentLog } from "#core/log";
import { Timekeeper } from "#core/scheduler";
import { makeGate } from "../support/gate.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function newTimekeeper() {
  const errors: { fields: object; message: string }[] = [];
  const log: Log = { ...silentLog, error: (fields, message) => errors.push({ fields, message }) };
  return { timekeeper: new Timekeeper(log), errors };
}

const pass = async (ms: number) => await vi.advanceTimersByTimeAsync(ms);

it("runs a flow after each interval", async () => {
  const { timekeeper } = newTimekeeper();
  let runs = 0;
  timekeeper.every("count", 1000, async () => ++runs);

  await pass(999);
  expect(runs).toBe(0);
  await pass(2001);
  expect(runs).toBe(3);
});

it("never overlaps a flow with itself: the next turn counts from the end of the last", async () => {
  const { timekeeper } = newTimekeeper();
  const gate = makeGate();
  let started = 0;
  timekeeper.every("slow", 1000, async () => {
    started += 1;
    await gate.opened;
  });

  await pass(10_000);
  expect(started).toBe(1);
  gate.open();
  await pass(999);
  expect(started).toBe(1);
  await pass(1);
  expect(started).toBe(2);
});

it("runs a flow that is hurried during its run once more, the given delay after its end", async () => {
  const { timekeeper } = newTimekeeper();
  const starts: number[] = [];
  timekeeper.every("look", 5000, async () => {
    starts.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, 100));
  });

  // A request every 10 ms for a run within a second.
  for (let times = 0; times < 400; times += 1) {
    timekeeper.hurry("look", 1000);
    await pass(10);
  }
  await pass(10_000);

  const from = starts[0]!;
  expect(starts.map((startMs) => startMs - from)).toEqual([0, 1100, 2200, 3300, 8400]);
});

it("does not delay other flows while one runs", async () => {
  const { timekeeper } = newTimekeeper();
  const gate = makeGate();
  let others = 0;
  timekeeper.every("slow", 1000, async () => await gate.opened);
  timekeeper.every("other", 1000, async () => ++others);

  await pass(5000);

  expect(others).toBe(5);
  gate.open();
});

it("logs a flow that throws, at once or later, and runs it again", async () => {
  const { timekeeper, errors } = newTimekeeper();
  let runs = 0;
  timekeeper.every("later", 1000, async () => {
    runs += 1;
    throw new Error("away");
  });
  timekeeper.every("at once", 1000, () => {
    runs += 1;
    throw new Error("away");
  });

  await pass(3000);

  expect(runs).toBe(6);
  expect(errors).toHaveLength(6);
  expect(errors[0]).toMatchObject({
    fields: { flow: "later", error: { message: "away" } },
    message: "flow failed, will run again",
  });
});

it("hurries a flow to now, and only once", async () => {
  const { timekeeper } = newTimekeeper();
  let runs = 0;
  timekeeper.every("flow", 1000, async () => ++runs);

  timekeeper.hurry("flow");
  timekeeper.hurry("flow");
  await pass(0);
  expect(runs).toBe(1);
  await pass(999);
  expect(runs).toBe(1);
  await pass(1);
  expect(runs).toBe(2);
});

it("hurries a flow within a delay, and never makes it later", async () => {
  const { timekeeper } = newTimekeeper();
  let runs = 0;
  timekeeper.every("flow", 1000, async () => ++runs);

  timekeeper.hurry("flow", 300);
  timekeeper.hurry("flow", 900);
  timekeeper.hurry("flow", 5000);
  await pass(299);
  expect(runs).toBe(0);
  await pass(1);
  expect(runs).toBe(1);
});

it("runs a flow that is hurried to now during its run once more right after", async () => {
  const { timekeeper } = newTimekeeper();
  let gate = makeGate();
  let runs = 0;
  timekeeper.every("flow", 1000, async () => {
    runs += 1;
    await gate.opened;
  });
  await pass(1000);

  timekeeper.hurry("flow");
  timekeeper.hurry("flow");
  expect(runs).toBe(1);
  const first = gate;
  gate = makeGate();
  first.open();
  await pass(0);
  expect(runs).toBe(2);
  gate.open();
  await pass(999);
  expect(runs).toBe(2);
});

it("skips a turn that is another coordinator's, or that a doubted clock may not decide, unless its rule allows it", async () => {
  const clock = { isRight: () => false, mayForget: () => true };
  const timekeeper = new Timekeeper(
    silentLog,
    () => false,
    () => {},
    clock,
  );
  const ran: string[] = [];
  const run = (name: string) => async () => void ran.push(name);
  timekeeper.every("the leader's", 1000, run("the leader's"), { whateverTheClock: true });
  timekeeper.every("by time", 1000, run("by time"), { onEach: true });
  timekeeper.every("always", 1000, run("always"), { onEach: true, whateverTheClock: true });

  await pass(1000);

  expect(ran).toEqual(["always"]);
});

it("ignores a flow that was never set", () => {
  const { timekeeper } = newTimekeeper();

  expect(() => timekeeper.hurry("nothing")).not.toThrow();
});

it("waits for running flows when it is stopped, and starts nothing more", async () => {
  const { timekeeper } = newTimekeeper();
  const gate = makeGate();
  let runs = 0;
  let stopped = false;
  timekeeper.every("slow", 1000, async () => {
    runs += 1;
    await gate.opened;
  });
  timekeeper.every("idle", 5000, async () => ++runs);
  await pass(1000);

  timekeeper.hurry("slow");
  const stopping = timekeeper.stop().then(() => {
    stopped = true;
  });
  await pass(10_000);
  expect(stopped).toBe(false);
  gate.open();
  await stopping;
  timekeeper.hurry("idle");
  await pass(10_000);

  expect(runs).toBe(1);
});

it("a changed interval applies to the pending turn, and hurried turns stay", async () => {
  const { timekeeper } = newTimekeeper();
  const settings = { everyMs: 10_000 };
  const runs = { followed: 0, hurried: 0 };
  timekeeper.every(
    "followed",
    () => settings.everyMs,
    async () => ++runs.followed,
  );
  timekeeper.every(
    "hurried",
    () => settings.everyMs,
    async () => ++runs.hurried,
  );

  await pass(2000);
  timekeeper.hurry("hurried", 500);
  settings.everyMs = 3000;
  timekeeper.retime();
  await pass(500);
  expect(runs).toEqual({ followed: 0, hurried: 1 });
  await pass(500);
  expect(runs.followed).toBe(1);
  settings.everyMs = 100_000;
  timekeeper.retime();
  await pass(99_999);
  expect(runs.followed).toBe(1);
  await pass(1);
  expect(runs.followed).toBe(2);
  await timekeeper.stop();
});

// Issue 41: Node ends a timer of more than 2^31 ms at once.
it("does not run a flow of every 40 days at once, nor one whose interval is NaN repeatedly", async () => {
  vi.useRealTimers();
  const { timekeeper } = newTimekeeper();
  const ran: string[] = [];
  timekeeper.every("rare", 40 * 86_400_000, async () => void ran.push("rare"));
  timekeeper.every("odd", Number.NaN, async () => void ran.push("odd"));

  await new Promise<void>((resolve) => {
    timekeeper.every("often", 5, async () => {
      ran.push("often");
      if (ran.length >= 5) resolve();
    });
  });
  await timekeeper.stop();

  expect(new Set(ran)).toEqual(new Set(["often"]));
});

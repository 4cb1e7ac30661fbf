/** The precedence when a whole fleet arrives: connections, arriving crawlers, connected crawlers. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { AcceptPressure, ArrivalsFirst, afterResults } from "#coordinator/run/gateway/arrivals-first";
import { LoopTurns } from "#core/clock";

describe("work of connected crawlers", () => {
  test("waits while many arrive, and continues when they are in", async () => {
    let isCrowded = true;
    const arrivals = new ArrivalsFirst(
      () => isCrowded,
      () => performance.now(),
    );
    let isDone = false;
    const work = arrivals.turn().then(() => {
      isDone = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isDone).toBe(false);

    isCrowded = false;
    await work;
    expect(isDone).toBe(true);
  });

  test("is held up for 45 s in one go, and for a third of the time by a fleet that never stops arriving", () => {
    let nowMs = 0;
    const arrivals = new ArrivalsFirst(
      () => true,
      () => nowMs,
    );
    const heldMs = (seconds: number) => {
      let held = 0;
      for (const untilMs = nowMs + seconds * 1000; nowMs < untilMs; nowMs += 200)
        if (arrivals.holds()) held += 200;
      return held;
    };

    expect(arrivals.holds()).toBe(true);
    const firstMs = heldMs(60);
    const laterShare = heldMs(3600) / 3_600_000;

    expect(firstMs).toBeGreaterThan(44_000);
    expect(firstMs).toBeLessThan(46_000);
    expect(laterShare).toBeGreaterThan(0.3);
    expect(laterShare).toBeLessThan(0.36);
  });
});

test("requests for work wait while many results do, and for ten seconds at most", async () => {
  const waitedMs = async (waiting: (afterMs: number) => number) => {
    let passedMs = 0;
    await afterResults(
      () => waiting(passedMs),
      async (ms) => {
        passedMs += ms;
      },
    );
    return passedMs;
  };

  expect(await waitedMs(() => 32)).toBe(0);
  expect(await waitedMs((afterMs) => (afterMs < 3000 ? 33 : 32))).toBe(3000);
  expect(await waitedMs(() => 1000)).toBe(10_000);
});

describe("connections that wait to be accepted", () => {
  test("are noticed when turn after turn of the loop has one, until a turn has none", async () => {
    const pressure = new AcceptPressure();
    for (let turns = 0; turns < 10; turns += 1) {
      pressure.accepted();
      await nextTurn();
    }
    expect(pressure.isPressing).toBe(false);
    for (let turns = 0; turns < 10; turns += 1) {
      pressure.accepted();
      await nextTurn();
    }
    expect([pressure.isPressing, pressure.isLasting]).toEqual([true, false]);

    await nextTurn();
    await nextTurn();
    expect(pressure.isPressing).toBe(false);
  });

  test("leave a fifth of the time to the hellos of those that were accepted, however long turns are", async () => {
    const share = async (isPreceded: boolean) => {
      let nowMs = 0;
      const turns = new LoopTurns(
        1,
        () => isPreceded,
        () => nowMs,
      );
      let helloMs = 0;
      const hello = () => {
        nowMs += 0.5;
        helloMs += 0.5;
      };
      for (let count = 0; count < 400; count += 1) turns.take(hello);
      let otherMs = 0;
      for (let count = 0; count < 20; count += 1) {
        nowMs += 8;
        otherMs += 8;
        await nextTurn();
      }
      const part = helloMs / (helloMs + otherMs);
      while (turns.waiting > 0) await nextTurn();
      return part;
    };

    const [first, preceded] = [await share(false), await share(true)];

    expect(first).toBeCloseTo(0.5, 1);
    expect(preceded).toBeCloseTo(0.2, 1);
  });
});

/** How many measurements a crawler admits, whoever asks, with a manual clock. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ProbeBudget } from "#coordinator/place/delegation/probe-pacing";
import { asCrawlerId } from "#core/ids";
import { type ProbeErrand, ProbeGate } from "#crawler/limits/probe-gate";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const gateOf = (limits: object, waitMs = 0) =>
  new ProbeGate({
    limits: () => ({ probesPerSecond: 50, concurrentHosts: 32, ...limits }),
    waitMs: () => waitMs,
  });
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Outcomes when all are requested at once, may wait 900 ms and last this long. */
async function flood(gate: ProbeGate, errands: readonly ProbeErrand[], lastsMs = 0) {
  const enter = async (errand: ProbeErrand) => {
    const end = await gate.enter(errand, 900);
    if (typeof end === "string") return end;
    await pass(lastsMs);
    end();
    return "let out";
  };
  const answers = Promise.all(errands.map(enter));
  await vi.advanceTimersByTimeAsync(10_000);
  return {
    out: (await answers).filter((answer) => answer === "let out").length,
    last: (await answers).at(-1),
  };
}

const many = (count: number, errand: Partial<ProbeErrand> = {}): ProbeErrand[] =>
  Array.from({ length: count }, (_, at) => ({ address: `127.9.0.${at % 255}`, tries: 1, ...errand }));
const address = "192.0.2.1";

it.each([
  ["three to one address", many(500, { address }), {}, 3],
  ["three to one /64", [1, 2, 3, 4].map((at) => ({ address: `2001:db8::${at}`, tries: 1 })), {}, 3],
  ["twenty tries to one address", many(3, { address, tries: 15 }), {}, 1],
  ["as many as the partner allows", many(200), { probesPerSecond: 10 }, 10],
  ["none where the partner allows none", many(1), { probesPerSecond: 0 }, 0],
  ["six tries for each of those", many(200, { tries: 20 }), { probesPerSecond: 10 }, 3],
])("in a second: %s", async (_what, errands, limits, out) => {
  expect(await flood(gateOf(limits), errands)).toMatchObject({ out });
});

it.each([
  ["sixteen", many(40), {}, 16],
  ["no more than there are places for hosts", many(40), { concurrentHosts: 4 }, 4],
  ["two to one address", many(3, { address }), {}, 2],
  ["eight pings", many(40, { pings: true }), {}, 8],
])("at a time: %s", async (_what, errands, limits, out) => {
  expect(await flood(gateOf(limits), errands, 2000)).toMatchObject({ out });
});

it("waits for the rate, and rejects at once those behind a thousand that wait", async () => {
  const gate = gateOf({}, 50);

  expect(await flood(gate, many(1001))).toEqual({ out: 0, last: "1000 probes wait already" });
  expect(gate.mayGoOn()).toBe(false);
});

it("admits all probes of an honest coordinator: eight at a time, twenty a second, six tries", async () => {
  const gate = gateOf({});
  const budget = new ProbeBudget({
    ...{ perCrawlerAtOnce: 8, perCrawlerPerSecond: 20, perTargetPerSecond: 3 },
    ...{ perNetworkPerSecond: 1000, atOnce: 256, perSecond: 500 },
  });
  const outcomes: string[] = [];

  const all = many(60).map(({ address }) =>
    budget.run({ crawlerId: asCrawlerId(1), address }, async () => {
      const end = await gate.enter({ address, tries: 6 }, 1500);
      outcomes.push(typeof end);
      await pass(100);
      if (typeof end === "function") end();
    }),
  );
  await vi.advanceTimersByTimeAsync(60_000);
  await Promise.all(all);

  expect(outcomes).toEqual(Array(60).fill("function"));
});

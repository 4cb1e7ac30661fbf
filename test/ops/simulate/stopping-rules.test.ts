/** Risks on rounds that can be followed by hand, and on those of a generated world. */
import { describe, expect, it } from "vitest";
import { simulateDelegation } from "#coordinator/delegation/simulation/simulation";
import { worldInstance } from "#ops/simulate/repeat-policies";
import {
  bestFixedStop,
  canStillPay,
  hindsightStop,
  independentSearch,
  ownStop,
  reservationValue,
  riskOf,
  stoppedAfter,
} from "#ops/simulate/stopping-rules";
import { generateWorld } from "#ops/world/generate-world";

/** Excess after one, two, three and four probes: 40, 10, 10, 0 ms. */
const long = { rttsMs: [50, 20, 30, 10], asked: 3, bestRttMs: 10 };
/** The first is the best. */
const short = { rttsMs: [5, 8], asked: 2, bestRttMs: 5 };

describe("the risk of a round", () => {
  it("is the mean excess and the probes, each at λ", () => {
    expect(riskOf([long, short].map(ownStop), 2)).toEqual({ excessMs: 5, probes: 2.5, riskMs: 10 });
    expect(riskOf([], 2)).toEqual({ excessMs: 0, probes: 0, riskMs: 0 });
  });

  it("of a round that is stopped beyond its order is that of the whole order", () => {
    expect(stoppedAfter(long, 2)).toEqual({ excessMs: 10, probes: 2 });
    expect(stoppedAfter(short, 9)).toEqual({ excessMs: 0, probes: 2 });
  });

  it("is least, in hindsight, where another probe stops paying", () => {
    expect(hindsightStop(long, 1)).toEqual({ excessMs: 0, probes: 4 });
    expect(hindsightStop(long, 8)).toEqual({ excessMs: 10, probes: 2 });
    expect(hindsightStop(long, 100)).toEqual({ excessMs: 40, probes: 1 });
    expect(hindsightStop(short, 0.1)).toEqual({ excessMs: 0, probes: 1 });
  });

  it("has one best number of probes for all rounds", () => {
    const fixed = bestFixedStop([long, short], { lambdaMs: 4, most: 4 });

    // One probe: 20 + 4; two: 5 + 8; three: 5 + 4 × 2.5; four: 0 + 4 × 3.
    expect(fixed).toEqual({ stopAfter: 4, excessMs: 0, probes: 3, riskMs: 12 });
    expect(bestFixedStop([long, short], { lambdaMs: 4, most: 2 }).riskMs).toBe(13);
  });

  it("can still fall while the probes alone cost less than the best stop so far", () => {
    const begun = { ...long, rttsMs: [50, 20] };

    expect(canStillPay(begun, { lambdaMs: 1, mostFixed: 1 })).toBe(true);
    expect(canStillPay(begun, { lambdaMs: 10, mostFixed: 1 })).toBe(false);
    expect(canStillPay(begun, { lambdaMs: 10, mostFixed: 3 })).toBe(true);
    expect(canStillPay(long, { lambdaMs: 0.1, mostFixed: 1 })).toBe(false);
  });
});

describe("hindsight", () => {
  it.each([0.25, 2, 16])("is below every rule that asks in the same order (λ %d ms)", (lambdaMs) => {
    const instance = worldInstance(generateWorld({ crawlers: 10, sites: 200, seed: 5 }));
    const { orders, probes } = simulateDelegation(instance, {
      policy: "nearest",
      parameters: { lambdaMs },
      asksFurther: (order) => canStillPay(order, { lambdaMs, mostFixed: 10 }),
    });
    const rounds = orders.filter((order) => order !== null);

    const least = riskOf(
      rounds.map((order) => hindsightStop(order, lambdaMs)),
      lambdaMs,
    ).riskMs;
    const own = riskOf(rounds.map(ownStop), lambdaMs);

    expect(rounds.length).toBeGreaterThan(100);
    expect(own.probes * rounds.length).toBeCloseTo(probes.reduce((sum, one) => sum + one, 0));
    expect(least).toBeLessThanOrEqual(own.riskMs);
    for (let stop = 1; stop <= 10; stop++) {
      const fixed = riskOf(
        rounds.map((order) => stoppedAfter(order, stop)),
        lambdaMs,
      );
      expect(least).toBeLessThanOrEqual(fixed.riskMs);
    }
    expect(least).toBeGreaterThanOrEqual(lambdaMs);
  });
});

describe("a search among independent crawlers", () => {
  it("has the reservation value that a probe is just worth", () => {
    // At z = 14: (14 − 10) + (14 − 12) over three targets.
    expect(reservationValue([30, 10, 12], 2)).toBe(14);
    expect(reservationValue([10], 3)).toBe(13);
    expect(reservationValue([10, 10], 50)).toBe(60);
  });

  it("asks from the least value up, and stops where the answer is no slower than the next value", () => {
    // Values at λ = 2: 9 for the first, 11 for the second, 102 for the third.
    const rows = [
      [5, 30, 100],
      [40, 7, 100],
    ];

    expect(independentSearch(rows, 2)).toEqual([
      { excessMs: 0, probes: 1 },
      { excessMs: 0, probes: 2 },
    ]);
  });

  it("asks the first alone where a probe costs more than it could save", () => {
    expect(independentSearch([[5, 4]], 10)).toEqual([{ excessMs: 0, probes: 1 }]);
    expect(
      independentSearch(
        [
          [5, 9],
          [6, 4],
        ],
        10,
      ).map(({ probes }) => probes),
    ).toEqual([1, 1]);
  });
});

import { describe, expect, it } from "vitest";
import type { BalanceInput, Move } from "#coordinator/place/balance/plan";
import { planByVarianceRule } from "#coordinator/place/balance/rebalance";
import { planByMinCostFlow } from "#coordinator/place/balance/successors";
import { seededRandom } from "#core/random";
import {
  balanceInput,
  bruteForceCost,
  costOf,
  loadsAfter,
  randomInput,
  type TinyWorld,
} from "./tiny-worlds.ts";

/** By hand: capacities, and of each subnet its owner, load and RTTs. */
const world = (capacities: readonly number[], ...subnets: TinyWorld["subnets"][number][]) =>
  balanceInput({ capacities, subnets });
const placesOf = (input: BalanceInput) => planByMinCostFlow(input).map(({ subnetId, to }) => [subnetId, to]);

describe("the cheapest set of moves", () => {
  it.each([
    [
      "is none while nobody is overloaded, even where another crawler is nearer",
      world([2, 2], [1, 1, [50, 10]], [1, 1, [10, 50]]),
      [],
    ],
    // Subnet 1 alone would go to 2 (cost 1), but subnet 2 can go nowhere else: so 1 goes to 3 (cost 3).
    [
      "takes back a move that a later one makes dear",
      world([0, 1, 1], [1, 1, [10, 11, 13]], [1, 1, [10, 12, 200]]),
      [
        [1, 3],
        [2, 2],
      ],
    ],
    // Subnet 1 goes to 2 first (1 ms); then 2 to where 1 was (2 ms) and 1 on to 3 (10 ms) beat anything else (100 ms).
    [
      "hands a subnet on that it has only just handed over",
      world([1, 1, 1], [1, 1, [10, 11, 21]], [1, 1, [10, 12, 210]], [1, 1, [10, 110, 110]]),
      [
        [1, 3],
        [2, 2],
      ],
    ],
    [
      "leaves a subnet alone that would be as near elsewhere",
      world([9, 9, 0], [2, 1, [10, 10, 10]], [3, 1, [30, 20, 10]]),
      [[2, 2]],
    ],
    [
      "empties a crawler that departed, of subnets without load too",
      world([0, 5], [1, 1, [10, 20]], [1, 0, [10, 30]]),
      [
        [1, 2],
        [2, 2],
      ],
    ],
    ["empties a crawler that is not listed", world([5, 5], [9, 1, [10, 20]]), [[1, 1]]],
    ["is none when no crawler has any capacity", world([0, 0], [1, 1, [10, 20]]), []],
    ["is none where there are no crawlers", world([], [1, 1, [10]]), []],
    ["is none where there is nothing", world([]), []],
  ])("%s", (_, input, expected) => {
    expect(placesOf(input)).toEqual(expected);
  });

  it("gives up the subnet that loses least", () => {
    expect(planByMinCostFlow(world([1, 5], [1, 1, [10, 90]], [1, 1, [10, 25]]))).toEqual([
      { subnetId: 2, from: 1, to: 2, addedRttMs: 15, predicted: false },
    ]);
  });

  it("goes through a full neighbour when that is cheaper: 1 → 2 costs 5, 2 → 3 costs 6, 1 → 3 costs 100", () => {
    const input = world([1, 1, 1], [1, 1, [10, 90, 110]], [1, 1, [10, 15, 110]], [2, 1, [90, 10, 16]]);

    expect(planByMinCostFlow(input)).toEqual([
      { subnetId: 2, from: 1, to: 2, addedRttMs: 5, predicted: false },
      { subnetId: 3, from: 2, to: 3, addedRttMs: 6, predicted: false },
    ]);
  });

  it("predicts an RTT that nobody measured from the crawlers' distance, and says so", () => {
    // 30 ms from crawler 1, crawlers 80 ms apart: between 50 and 110, taken as 80.
    const input = balanceInput({ capacities: [0, 1], subnets: [[1, 1, [30, null]]], apartMs: 80 });

    expect(planByMinCostFlow(input)).toEqual([
      { subnetId: 1, from: 1, to: 2, addedRttMs: 50, predicted: true },
    ]);
  });

  it("shares the overload by capacity when the fleet cannot carry everything", () => {
    const input = world([1, 2, 0], ...Array.from({ length: 9 }, () => [3, 1, [10, 10, 5]] as const));

    expect([...loadsAfter(planByMinCostFlow(input), input).values()]).toEqual([3, 6, 0]);
  });
});

/** Nobody has more than it may take. */
const fits = (moves: readonly Move[], input: BalanceInput, beyond = 0) => {
  const loads = loadsAfter(moves, input);
  return input.crawlers.every((one) => loads.get(one.crawlerId)! <= one.capacityPagesPerDay + beyond);
};

it.each(Array.from({ length: 40 }, (_, index) => 31 * index + 1))(
  "with unit loads the cost is the least there is, by brute force, seed %i",
  (seed) => {
    const shape = { crawlers: 2 + (seed % 3), subnets: 4 + (seed % 4) };
    const input = randomInput({ seed, ...shape, unitLoads: true, tightness: 1 });

    const moves = planByMinCostFlow(input);

    expect(costOf(moves, input)).toBeCloseTo(bruteForceCost(input), 6);
    expect(fits(moves, input)).toBe(true);
  },
);

it.each(Array.from({ length: 40 }, (_, index) => 13 * index + 5))(
  "so it is where RTTs follow no geometry and owners no sense, seed %i",
  (seed) => {
    const random = seededRandom(seed);
    const rtt = () => 1 + Math.floor(random() * 60);
    const owned = Array.from(
      { length: 6 },
      () => [1 + Math.floor(random() * 4), 1, [rtt(), rtt(), rtt(), rtt()]] as const,
    );
    const input = world([0, 3, 1, 2], ...owned.slice(1), [1, 1, [rtt(), rtt(), rtt(), rtt()]]);

    const moves = planByMinCostFlow(input);

    expect(costOf(moves, input)).toBeCloseTo(bruteForceCost(input), 6);
    expect([...loadsAfter(moves, input).values()]).toEqual([0, 3, 1, 2]);
  },
);

describe("with unequal loads", () => {
  it("is within 5 % of the least cost over 40 random tiny worlds together, and nobody is over by as much as one subnet", () => {
    const inputs = Array.from({ length: 40 }, (_, index) =>
      randomInput({ seed: 17 * index + 3, crawlers: 3, subnets: 8, unitLoads: false, tightness: 1.25 }),
    );

    const plans = inputs.map((input) => ({ input, moves: planByMinCostFlow(input) }));

    let ours = 0;
    let least = 0;
    for (const { input, moves } of plans) {
      const largest = Math.max(...input.subnets.map(({ loadPagesPerDay }) => loadPagesPerDay));
      expect(fits(moves, input, largest - 1e-9)).toBe(true);
      if (!fits(moves, input)) continue;
      ours += costOf(moves, input);
      least += bruteForceCost(input);
    }
    expect(ours).toBeLessThan(1.05 * least);
  });

  it.each([101, 102, 103])(
    "it is cheaper than the paper's rule on 12 crawlers and 600 subnets, and keeps to the capacities, seed %i",
    (seed) => {
      const input = randomInput({ seed, crawlers: 12, subnets: 600, unitLoads: false, tightness: 1.25 });

      const moves = planByMinCostFlow(input);

      expect(costOf(moves, input)).toBeLessThan(costOf(planByVarianceRule(input), input));
      expect(fits(moves, input)).toBe(true);
    },
  );
});

it("the same input gives the same moves", () => {
  const input = randomInput({ seed: 5, crawlers: 6, subnets: 80, unitLoads: false, tightness: 1.1 });
  const reversed = {
    ...input,
    crawlers: [...input.crawlers].reverse(),
    subnets: [...input.subnets].reverse(),
  };

  expect(planByMinCostFlow(input)).toEqual(planByMinCostFlow(input));
  expect(planByMinCostFlow(reversed)).toEqual(planByMinCostFlow(input));
});

import { describe, expect, it } from "vitest";
import { planByVarianceRule } from "#coordinator/balance/rebalance";
import { planByMinCostFlow } from "#coordinator/balance/successors";
import { seededRandom } from "#core/random";
import { balanceInput, bruteForceCost, costOf, loadsAfter, randomInput } from "./tiny-worlds.ts";

describe("the cheapest set of moves", () => {
  it("is none while nobody is overloaded, even where another crawler is nearer", () => {
    const input = balanceInput({
      capacities: [2, 2],
      subnets: [
        [1, 1, [50, 10]],
        [1, 1, [10, 50]],
      ],
    });

    expect(planByMinCostFlow(input)).toEqual([]);
  });

  it("gives up the subnet that loses least", () => {
    const input = balanceInput({
      capacities: [1, 5],
      subnets: [
        [1, 1, [10, 90]],
        [1, 1, [10, 25]],
      ],
    });

    expect(planByMinCostFlow(input)).toEqual([
      { subnetId: 2, from: 1, to: 2, addedRttMs: 15, predicted: false },
    ]);
  });

  it("goes through a full neighbour when that is cheaper: 1 → 2 costs 5, 2 → 3 costs 6, 1 → 3 costs 100", () => {
    const input = balanceInput({
      capacities: [1, 1, 1],
      subnets: [
        [1, 1, [10, 90, 110]],
        [1, 1, [10, 15, 110]],
        [2, 1, [90, 10, 16]],
      ],
    });

    expect(planByMinCostFlow(input)).toEqual([
      { subnetId: 2, from: 1, to: 2, addedRttMs: 5, predicted: false },
      { subnetId: 3, from: 2, to: 3, addedRttMs: 6, predicted: false },
    ]);
  });

  it("takes back a move that a later one makes dear", () => {
    // Subnet 1 alone would go to 2 (cost 1), but subnet 2 can go nowhere else: so 1 goes to 3 (cost 3).
    const input = balanceInput({
      capacities: [0, 1, 1],
      subnets: [
        [1, 1, [10, 11, 13]],
        [1, 1, [10, 12, 200]],
      ],
    });

    expect(planByMinCostFlow(input).map(({ subnetId, to }) => [subnetId, to])).toEqual([
      [1, 3],
      [2, 2],
    ]);
  });

  it("hands a subnet on that it has only just handed over", () => {
    // Subnet 1 goes to 2 first (1 ms); then 2 to where 1 was (2 ms) and 1 on to 3 (10 ms) beat anything else (100 ms).
    const input = balanceInput({
      capacities: [1, 1, 1],
      subnets: [
        [1, 1, [10, 11, 21]],
        [1, 1, [10, 12, 210]],
        [1, 1, [10, 110, 110]],
      ],
    });

    expect(planByMinCostFlow(input).map(({ subnetId, to }) => [subnetId, to])).toEqual([
      [1, 3],
      [2, 2],
    ]);
  });

  it("leaves a subnet alone that would be as near elsewhere", () => {
    const input = balanceInput({
      capacities: [9, 9, 0],
      subnets: [
        [2, 1, [10, 10, 10]],
        [3, 1, [30, 20, 10]],
      ],
    });

    expect(planByMinCostFlow(input).map(({ subnetId, to }) => [subnetId, to])).toEqual([[2, 2]]);
  });

  it("predicts an RTT that nobody measured from the crawlers' distance, and says so", () => {
    // 30 ms from crawler 1, crawlers 80 ms apart: between 50 and 110, taken as 80.
    const input = balanceInput({ capacities: [0, 1], subnets: [[1, 1, [30, null]]], apartMs: 80 });

    expect(planByMinCostFlow(input)).toEqual([
      { subnetId: 1, from: 1, to: 2, addedRttMs: 50, predicted: true },
    ]);
  });

  it("empties a crawler that departed or is not listed, of subnets without load too", () => {
    const departed = balanceInput({
      capacities: [0, 5],
      subnets: [
        [1, 1, [10, 20]],
        [1, 0, [10, 30]],
      ],
    });
    const unlisted = balanceInput({ capacities: [5, 5], subnets: [[9, 1, [10, 20]]] });

    expect(planByMinCostFlow(departed).map(({ subnetId, to }) => [subnetId, to])).toEqual([
      [1, 2],
      [2, 2],
    ]);
    expect(planByMinCostFlow(unlisted).map(({ from, to }) => [from, to])).toEqual([[9, 1]]);
  });

  it("shares the overload by capacity when the fleet cannot carry everything", () => {
    const input = balanceInput({
      capacities: [1, 2, 0],
      subnets: Array.from({ length: 9 }, () => [3, 1, [10, 10, 5]] as const),
    });

    expect([...loadsAfter(planByMinCostFlow(input), input)]).toEqual([
      [1, 3],
      [2, 6],
      [3, 0],
    ]);
  });

  it("has no moves when no crawler has any capacity", () => {
    expect(planByMinCostFlow(balanceInput({ capacities: [0, 0], subnets: [[1, 1, [10, 20]]] }))).toEqual([]);
    expect(planByMinCostFlow(balanceInput({ capacities: [], subnets: [[1, 1, [10]]] }))).toEqual([]);
    expect(planByMinCostFlow(balanceInput({ capacities: [], subnets: [] }))).toEqual([]);
  });
});

describe("against brute force, with unit loads", () => {
  it.each(Array.from({ length: 40 }, (_, index) => 31 * index + 1))(
    "the cost is the least there is, seed %i",
    (seed) => {
      const shape = { crawlers: 2 + (seed % 3), subnets: 4 + (seed % 4) };
      const input = randomInput({ seed, ...shape, unitLoads: true, tightness: 1 });

      const moves = planByMinCostFlow(input);

      expect(costOf(moves, input)).toBeCloseTo(bruteForceCost(input), 6);
      for (const { crawlerId, capacityPagesPerDay } of input.crawlers) {
        expect(loadsAfter(moves, input).get(crawlerId)).toBeLessThanOrEqual(capacityPagesPerDay);
      }
    },
  );
});

describe("against brute force, where RTTs follow no geometry and owners no sense", () => {
  it.each(Array.from({ length: 40 }, (_, index) => 13 * index + 5))(
    "the cost is the least there is, seed %i",
    (seed) => {
      const random = seededRandom(seed);
      const rtt = () => 1 + Math.floor(random() * 60);
      const owned = Array.from(
        { length: 6 },
        () => [1 + Math.floor(random() * 4), 1, [rtt(), rtt(), rtt(), rtt()]] as const,
      );
      const input = balanceInput({
        capacities: [0, 3, 1, 2],
        subnets: [...owned.slice(1), [1, 1, [rtt(), rtt(), rtt(), rtt()]]],
      });

      const moves = planByMinCostFlow(input);

      expect(costOf(moves, input)).toBeCloseTo(bruteForceCost(input), 6);
      expect([...loadsAfter(moves, input).values()]).toEqual([0, 3, 1, 2]);
    },
  );
});

describe("with unequal loads", () => {
  it("is within 5 % of the least cost over 40 random tiny worlds together, and nobody is over by as much as one subnet", () => {
    const inputs = Array.from({ length: 40 }, (_, index) =>
      randomInput({ seed: 17 * index + 3, crawlers: 3, subnets: 8, unitLoads: false, tightness: 1.25 }),
    );

    const plans = inputs.map((input) => ({ input, moves: planByMinCostFlow(input) }));

    let ours = 0;
    let least = 0;
    for (const { input, moves } of plans) {
      const loads = loadsAfter(moves, input);
      const fits = input.crawlers.every(
        ({ crawlerId, capacityPagesPerDay }) => (loads.get(crawlerId) as number) <= capacityPagesPerDay,
      );
      const largest = Math.max(...input.subnets.map(({ loadPagesPerDay }) => loadPagesPerDay));
      expect(
        input.crawlers.every(
          ({ crawlerId, capacityPagesPerDay }) =>
            (loads.get(crawlerId) as number) < capacityPagesPerDay + largest,
        ),
      ).toBe(true);
      if (!fits) continue;
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
      for (const { crawlerId, capacityPagesPerDay } of input.crawlers) {
        expect(loadsAfter(moves, input).get(crawlerId)).toBeLessThanOrEqual(capacityPagesPerDay);
      }
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

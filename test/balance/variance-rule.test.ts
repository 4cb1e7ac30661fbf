import { describe, expect, it } from "vitest";
import type { BalanceSubnet } from "#coordinator/place/balance/plan";
import { planByVarianceRule, probingVariance } from "#coordinator/place/balance/rebalance";
import { balanceInput, loadsAfter, randomInput } from "./tiny-worlds.ts";

// Paper section 4.4: the subnets with the lowest variance in their probing results go to the next-best crawler.
describe("the paper's rule", () => {
  it("gives up the subnet with the lowest variance first, to the next-best crawler", () => {
    const input = balanceInput({
      capacities: [1, 5, 5],
      subnets: [
        [1, 1, [10, 90, 80]],
        [1, 1, [10, 30, 20]],
      ],
    });

    expect(planByVarianceRule(input)).toEqual([
      { subnetId: 2, from: 1, to: 3, addedRttMs: 10, predicted: false },
    ]);
  });

  it("stops as soon as the crawler is no longer over", () => {
    const input = balanceInput({
      capacities: [2, 9],
      subnets: [1, 2, 3, 4].map((spread) => [1, 1, [10, 10 + spread]] as const),
    });

    expect(planByVarianceRule(input).map(({ subnetId }) => subnetId)).toEqual([1, 2]);
  });

  it("passes over crawlers without room for the whole subnet", () => {
    const input = balanceInput({
      capacities: [4, 2, 5],
      subnets: [
        [1, 3, [10, 20, 30]],
        [1, 3, [10, 90, 95]],
      ],
    });

    expect(planByVarianceRule(input).map(({ subnetId, to }) => [subnetId, to])).toEqual([[1, 3]]);
  });

  it("takes subnets that fewer than two crawlers measured last", () => {
    const input = balanceInput({
      capacities: [1, 5],
      subnets: [
        [1, 1, [10, null]],
        [1, 1, [10, 200]],
      ],
      apartMs: 5,
    });

    expect(planByVarianceRule(input).map(({ subnetId }) => subnetId)).toEqual([2]);
  });

  it("keeps a subnet that nobody has room for, unless its crawler departed", () => {
    const tight = {
      subnets: [
        [1, 3, [10, 20, 30]],
        [2, 1, [10, 10, 10]],
        [3, 1, [10, 10, 10]],
      ] as const,
    };

    expect(planByVarianceRule(balanceInput({ ...tight, capacities: [2, 2, 2] }))).toEqual([]);
    expect(planByVarianceRule(balanceInput({ ...tight, capacities: [0, 3, 3] })).map(({ to }) => to)).toEqual(
      [2],
    );
  });

  it("has no moves while nobody is overloaded", () => {
    expect(planByVarianceRule(balanceInput({ capacities: [2, 2], subnets: [[1, 1, [50, 10]]] }))).toEqual([]);
  });

  it("leaves nobody over capacity where there is room enough for all", () => {
    const input = randomInput({ seed: 77, crawlers: 8, subnets: 300, unitLoads: true, tightness: 1.25 });

    const loads = loadsAfter(planByVarianceRule(input), input);

    for (const { crawlerId, capacityPagesPerDay } of input.crawlers) {
      expect(loads.get(crawlerId)).toBeLessThanOrEqual(capacityPagesPerDay);
    }
  });
});

it("the variance is the population variance of what was measured", () => {
  const subnet = (rtts: readonly (number | null)[]) =>
    balanceInput({ capacities: [1], subnets: [[1, 1, rtts]] }).subnets[0] as BalanceSubnet;

  expect(probingVariance(subnet([10, 20, 30]))).toBeCloseTo(200 / 3);
  expect(probingVariance(subnet([10, null, 10]))).toBe(0);
  expect(probingVariance(subnet([10, null]))).toBe(Number.POSITIVE_INFINITY);
});

import { describe, expect, it } from "vitest";
import { solveFlow } from "#coordinator/balance/crawler-flow";
import type { FlowProblem } from "#coordinator/balance/problem";
import { seededRandom } from "#core/random";

/** Crawlers and subnets on a plane, most of the subnets around a few crawlers. */
function plane(shape: { seed: number; crawlers: number; subnets: number; unitLoads: boolean }) {
  const random = seededRandom(shape.seed);
  const spots = Array.from({ length: shape.crawlers }, () => [250 * random(), 150 * random()] as const);
  const places = Array.from({ length: shape.subnets }, () => {
    const [x, y] = spots[Math.floor(shape.crawlers * random() ** 2)]!;
    return [x + 60 * random() - 30, y + 60 * random() - 30] as const;
  });
  const loads = Float64Array.from(places, () => (shape.unitLoads ? 1 : Math.ceil(1 / (1 - random()))));
  const total = loads.reduce((sum, load) => sum + load, 0);
  const capacities = new Float64Array(shape.crawlers).fill(Math.ceil((1.2 * total) / shape.crawlers));
  const costsInto = (subnet: number, costs: Float64Array) => {
    const [x, y] = places[subnet]!;
    spots.forEach(([a, b], crawler) => {
      costs[crawler] = Math.hypot(a - x, b - y);
    });
  };
  const problem: FlowProblem = {
    capacities,
    subnets: shape.subnets,
    isGone: () => false,
    loadOf: (subnet) => loads[subnet]!,
    costsInto,
  };
  return { problem, loads, total };
}

/** Load × cost of the flow, and the least that any flow can cost at its prices: equal only for a cheapest flow. */
function costAndBound({ problem, loads }: ReturnType<typeof plane>) {
  const flow = solveFlow(problem);
  const row = new Float64Array(problem.capacities.length);
  const room = flow.prices.at(-1)!;
  let [cost, bound] = [0, 0];
  loads.forEach((load, subnet) => {
    problem.costsInto(subnet, row);
    for (const [crawler, amount] of flow.holdings.partsOf(subnet)) cost += amount * row[crawler]!;
    bound += load * Math.min(...row.map((ms, crawler) => ms + Math.max(0, flow.prices[crawler]! - room)));
  });
  problem.capacities.forEach((capacity, crawler) => {
    bound -= capacity * Math.max(0, flow.prices[crawler]! - room);
  });
  return { flow, cost, bound };
}

describe("the flow", () => {
  it.each([1, 2, 3])(
    "is the cheapest where everybody is a candidate: no flow costs less at its prices, seed %i",
    (seed) => {
      const { cost, bound } = costAndBound(
        plane({ seed, crawlers: 12, subnets: 700, unitLoads: seed !== 3 }),
      );

      expect(cost / bound).toBeCloseTo(1, 9);
    },
  );

  it.each([
    { seed: 4, crawlers: 30, subnets: 12_000, unitLoads: true },
    { seed: 5, crawlers: 30, subnets: 12_000, unitLoads: false },
    { seed: 6, crawlers: 60, subnets: 9_000, unitLoads: false },
  ])("is proven the cheapest by its own prices where samples and few candidates were used: %o", (shape) => {
    const world = plane(shape);

    const { flow, cost, bound } = costAndBound(world);

    expect(flow.arcs.reachMs).toBeLessThan(Number.POSITIVE_INFINITY);
    expect(cost / bound).toBeCloseTo(1, 9);
    flow.loads.forEach((load, crawler) => {
      expect(load).toBeLessThan(world.problem.capacities[crawler]! + 1e-6);
    });
  });

  it("divides fewer subnets than there are crawlers, and none with equal loads", () => {
    const unequal = solveFlow(plane({ seed: 7, crawlers: 20, subnets: 3_000, unitLoads: false }).problem);
    const equal = solveFlow(plane({ seed: 7, crawlers: 20, subnets: 3_000, unitLoads: true }).problem);

    expect(unequal.holdings.split.length).toBeLessThan(20);
    expect(equal.holdings.split).toEqual([]);
  });
});

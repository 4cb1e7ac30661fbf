import { describe, expect, it } from "vitest";
import { type BalanceInput, defaultBalanceSettings, noHysteresis } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import { LikelyCrawlers, RttTable } from "#coordinator/balance/rtt-table";
import { WayFinder } from "#coordinator/balance/shortest-path";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { churnDay } from "../lab/balance/churn-day.ts";
import { type Plane, plane } from "../lab/balance/plane.ts";

const likelyOnly = 0;
const exact = Number.POSITIVE_INFINITY;

function planned(world: BalanceInput, exactPairs: number) {
  const planner = new BalancePlanner(world.crawlerRttMs, noHysteresis, exactPairs);
  planner.note(world);
  return { planner, places: placesAfter(world, planner.plan().moves) };
}

/** None so large that it cannot be placed whole. */
function withLoadsUpTo(most: number, world: Plane): Plane {
  const subnets = world.subnets.map((subnet) => ({
    ...subnet,
    loadPagesPerDay: Math.min(most, subnet.loadPagesPerDay),
  }));
  const total = subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  const capacityPagesPerDay = (1.25 * total) / world.crawlers.length;
  return { ...world, subnets, crawlers: world.crawlers.map((one) => ({ ...one, capacityPagesPerDay })) };
}

function placesAfter(world: BalanceInput, moves: readonly { subnetId: number; to: CrawlerId }[]) {
  const moved = new Map(moves.map(({ subnetId, to }) => [subnetId, to]));
  return world.subnets.map(({ subnetId, crawlerId }) => moved.get(subnetId) ?? crawlerId);
}

function overfull(world: BalanceInput, places: readonly CrawlerId[]): number[] {
  const loads = new Map<CrawlerId, number>();
  world.subnets.forEach(({ loadPagesPerDay }, at) => {
    loads.set(places[at]!, (loads.get(places[at]!) ?? 0) + loadPagesPerDay);
  });
  return world.crawlers
    .filter(({ crawlerId, capacityPagesPerDay }) => (loads.get(crawlerId) ?? 0) > capacityPagesPerDay + 1e-6)
    .map(({ crawlerId }) => crawlerId);
}

/** As the planner's own table predicts it. */
function meanMs(world: BalanceInput, places: readonly CrawlerId[]): number {
  const table = tableOf(world);
  const load = world.subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  const cost = world.subnets.reduce(
    (sum, { loadPagesPerDay }, row) => sum + loadPagesPerDay * table.rttMs(row, table.indexOf(places[row]!)),
    0,
  );
  return cost / load;
}

function tableOf(world: BalanceInput): RttTable {
  const table = new RttTable(world.crawlerRttMs);
  for (const { crawlerId } of world.crawlers) table.indexOf(crawlerId);
  for (const subnet of world.subnets) table.add(subnet);
  table.learn(world.subnets.keys());
  return table;
}

describe("a plan over the likely crawlers of each subnet", () => {
  it.each([true, false])(
    "keeps to every capacity and costs hardly more than the exact one (equal loads: %s)",
    (unitLoads) => {
      const world = withLoadsUpTo(200, plane({ crawlers: 100, subnets: 3_000, unitLoads }));

      const likely = planned(world, likelyOnly).places;

      expect(overfull(world, likely)).toEqual([]);
      expect(meanMs(world, likely) / meanMs(world, planned(world, exact).places)).toBeLessThan(1.03);
    },
  );

  it("goes on from the plan before when crawlers leave and come back", () => {
    const world = plane({ crawlers: 100, subnets: 3_000, unitLoads: true });
    const { planner } = planned(world, likelyOnly);
    const left = world.crawlers.slice(0, 5).map((one) => ({ ...one, capacityPagesPerDay: 0 }));

    const without = placesAfter(world, planner.update({ crawlers: left }).moves);
    const again = placesAfter(world, planner.update({ crawlers: world.crawlers.slice(0, 5) }).moves);

    expect(without.filter((crawlerId) => crawlerId <= 5)).toEqual([]);
    expect(overfull(world, without)).toEqual([]);
    expect(overfull(world, again)).toEqual([]);
    expect(meanMs(world, again)).toBeLessThan(1.03 * meanMs(world, planned(world, exact).places));
  });

  it("finds room far beyond the likely ones: all load lies at one end of the fleet", () => {
    const crawlers = 100;
    const world: BalanceInput = {
      crawlers: Array.from({ length: crawlers }, (_, at) => ({
        crawlerId: asCrawlerId(at + 1),
        capacityPagesPerDay: 10,
      })),
      subnets: plane({ crawlers, subnets: 1_000, unitLoads: true }).subnets.map((subnet) => ({
        ...subnet,
        crawlerId: asCrawlerId(1),
        loadPagesPerDay: 1,
        rttMs: new Map([[asCrawlerId(1), 5]]),
      })),
      crawlerRttMs: (a, b) => 10 * Math.abs(a - b),
    };

    expect(overfull(world, planned(world, likelyOnly).places)).toEqual([]);
  });

  it("plans where no distance between crawlers is known", () => {
    const known = plane({ crawlers: 100, subnets: 2_000, unitLoads: true });
    const world = { ...known, crawlerRttMs: () => undefined };

    expect(overfull(world, planned(world, likelyOnly).places)).toEqual([]);
  });
});

describe("likely crawlers", () => {
  it("have the RTTs that the whole row has, each once", () => {
    const world = plane({ crawlers: 80, subnets: 400, unitLoads: true });
    const table = tableOf(world);
    const all = new Float64Array(80);
    const likely = new LikelyCrawlers();

    for (const row of world.subnets.keys()) {
      table.rttsInto(row, all);
      table.likelyInto(row, 10, likely);
      const { count, crawlers, costsMs } = likely;
      expect(new Set(crawlers.subarray(0, count)).size).toBe(count);
      for (let at = 0; at < count; at++) expect(costsMs[at]).toBeCloseTo(all[crawlers[at]!]!, 9);
    }
  });
});

describe("the way of load", () => {
  it("leads a subnet straight on where it would go through a crawler, so that rounding makes no detour", () => {
    const leastMs = Float64Array.from([
      Infinity,
      0.1,
      0.31,
      Infinity,
      Infinity,
      0.2,
      Infinity,
      Infinity,
      Infinity,
    ]);
    const finder = new WayFinder({
      prices: new Float64Array(4),
      excess: Float64Array.from([5, 0, -5, 0]),
      carried: Float64Array.from([1, 1, 1, 0]),
      capacities: Float64Array.from([1, 1, 1]),
      dust: 1e-9,
      rates: {
        makeFor: () => {},
        neighboursOf: (crawler) => [[1, 2], [2], []][crawler]!,
        leastMs,
        subnetFor: () => 7,
      },
    });

    expect(finder.find(0)).toEqual({ nodes: [0, 2], subnets: [7] });
  });
});

describe("a day of churn", () => {
  it("makes few moves with hysteresis, and hardly a subnet flaps", () => {
    const world = plane({ crawlers: 20, subnets: 600, unitLoads: true });

    const calm = churnDay(world, { settings: defaultBalanceSettings, seed: 3 });
    const restless = churnDay(world, { settings: noHysteresis, seed: 3 });

    expect(calm.moves).toBeLessThan(restless.moves);
    expect(calm.flaps).toBeLessThan(restless.flaps / 4);
  });
});

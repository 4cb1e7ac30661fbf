import { describe, expect, it } from "vitest";
import { planPlacement } from "#coordinator/place/balance/placement";
import {
  type BalanceInput,
  type BalanceSettings,
  type Move,
  noHysteresis,
} from "#coordinator/place/balance/plan";
import { RttTable } from "#coordinator/place/distances/predicted-rtts";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { plane } from "./plane.ts";
import { balanceInput } from "./tiny-worlds.ts";

const movesOf = (moves: readonly Move[]) => moves.map(({ subnetId, to }) => [subnetId, to]);
const plan = (input: BalanceInput, settings: BalanceSettings = noHysteresis) =>
  planPlacement(input, settings);

describe("probes before moves", () => {
  const world = balanceInput({
    capacities: [1, 9, 9],
    subnets: [
      [1, 1, [10, null, 80]],
      [1, 1, [10, 90, 95]],
    ],
    apartMs: 40,
  });

  it("are wanted where a move relies on a prediction", () => {
    const { moves, probes } = plan(world);

    expect(moves).toEqual([expect.objectContaining({ subnetId: 1, to: 2, predicted: true })]);
    expect(probes[0]).toEqual({ subnetId: 1, crawlerId: 2, expectedGain: Number.POSITIVE_INFINITY });
  });

  it("change the plan by what they found", () => {
    const [first, second] = world.subnets;
    const rttMs = new Map(first!.rttMs).set(asCrawlerId(2), 95);
    const { moves, probes } = plan({ ...world, subnets: [{ ...first!, rttMs }, second!] });

    expect(moves).toEqual([{ subnetId: 1, from: 1, to: 3, addedRttMs: 70, predicted: false }]);
    expect(probes).toEqual([]);
  });
});

describe("a subnet with more load than anybody may carry", () => {
  it("stays, and what else its crawler has goes", () => {
    const input = balanceInput({
      capacities: [10, 20],
      subnets: [
        [1, 25, [10, 15]],
        [1, 3, [10, 50]],
      ],
    });

    expect(movesOf(plan(input).moves)).toEqual([[2, 2]]);
  });
});

describe("hysteresis", () => {
  const settings = { leastSavingMs: 5, leastSavingMsPagesPerDay: 0, deadBandShare: 0.05 };
  const moved = (capacities: readonly number[], rtts: readonly number[], load = 100) =>
    movesOf(plan(balanceInput({ capacities, subnets: [[1, load, rtts]] }), settings).moves);

  it("lets a subnet go home for more than the threshold, and not for less", () => {
    expect(moved([500, 500], [20, 16])).toEqual([]);
    expect(moved([500, 500], [20, 14])).toEqual([[1, 2]]);
  });

  it("weighs the load: a subnet of few pages moves for more", () => {
    const perDay = { ...settings, leastSavingMs: 0, leastSavingMsPagesPerDay: 64 };
    const moves = (load: number) =>
      movesOf(plan(balanceInput({ capacities: [500, 500], subnets: [[1, load, [20, 16]]] }), perDay).moves);

    // 4 ms × 8 pages are 32 a day, 4 ms × 32 pages are 128.
    expect(moves(8)).toEqual([]);
    expect(moves(32)).toEqual([[1, 2]]);
  });

  it("does not keep an overloaded crawler from giving up what loses least", () => {
    expect(moved([90, 500], [10, 60])).toEqual([[1, 2]]);
  });

  it("goes on with relief until the crawler is a little under, and fills nobody beyond that", () => {
    const subnets = [
      ...Array.from({ length: 103 }, () => [1, 1, [10, 30, 40]] as const),
      ...Array.from({ length: 93 }, () => [2, 1, [50, 10, 40]] as const),
    ];
    const { moves } = plan(balanceInput({ capacities: [100, 100, 100], subnets }), settings);

    expect(moves.filter(({ to }) => to === 2)).toHaveLength(2);
    expect(moves.filter(({ to }) => to === 3)).toHaveLength(6);
    expect(moves.every(({ from }) => from === 1)).toBe(true);
  });
});

describe("a plan over the likely crawlers of each subnet", () => {
  function placesAfter(world: BalanceInput): CrawlerId[] {
    const moved = new Map(plan(world).moves.map(({ subnetId, to }) => [subnetId, to]));
    return world.subnets.map(({ subnetId, crawlerId }) => moved.get(subnetId) ?? crawlerId);
  }

  function overfull(world: BalanceInput, places: readonly CrawlerId[]): CrawlerId[] {
    const loads = new Map<CrawlerId, number>();
    world.subnets.forEach(({ loadPagesPerDay }, at) => {
      loads.set(places[at]!, (loads.get(places[at]!) ?? 0) + loadPagesPerDay);
    });
    return world.crawlers
      .filter(
        ({ crawlerId, capacityPagesPerDay }) => (loads.get(crawlerId) ?? 0) > capacityPagesPerDay + 1e-6,
      )
      .map(({ crawlerId }) => crawlerId);
  }

  /** What a page is further away than with the nearest, as predicted. */
  function addedMs(world: BalanceInput, places: readonly CrawlerId[]): number {
    const table = new RttTable(world.crawlerRttMs);
    for (const { crawlerId } of world.crawlers) table.indexOf(crawlerId);
    for (const subnet of world.subnets) table.add(subnet);
    let [added, pages] = [0, 0];
    for (const [row, { crawlerId, loadPagesPerDay }] of world.subnets.entries()) {
      const before = table.rttMs(row, table.indexOf(crawlerId));
      added += loadPagesPerDay * (table.rttMs(row, table.indexOf(places[row]!)) - before);
      pages += loadPagesPerDay;
    }
    return added / pages;
  }

  it.each([
    [true, 1.6],
    [false, 2.1],
  ])("keeps to every capacity at what the cheapest flow cost (equal loads: %s)", (unitLoads, mostMs) => {
    const world = plane({ crawlers: 100, subnets: 3_000, unitLoads, mostPages: 200 });

    const places = placesAfter(world);

    expect(overfull(world, places)).toEqual([]);
    expect(addedMs(world, places)).toBeLessThan(mostMs);
  });

  it("finds room far beyond the likely ones: all load lies at one end of the fleet", () => {
    const world: BalanceInput = {
      crawlers: Array.from({ length: 100 }, (_, at) => ({
        crawlerId: asCrawlerId(at + 1),
        capacityPagesPerDay: 10,
      })),
      subnets: Array.from({ length: 1_000 }, (_, at) => ({
        subnetId: asSubnetId(at + 1),
        crawlerId: asCrawlerId(1),
        loadPagesPerDay: 1,
        rttMs: new Map([[asCrawlerId(1), 5]]),
      })),
      crawlerRttMs: (a, b) => 10 * Math.abs(a - b),
    };

    expect(overfull(world, placesAfter(world))).toEqual([]);
  });

  it("plans where no distance between crawlers is known", () => {
    const world = {
      ...plane({ crawlers: 100, subnets: 2_000, unitLoads: true }),
      crawlerRttMs: () => undefined,
    };

    expect(overfull(world, placesAfter(world))).toEqual([]);
  });
});

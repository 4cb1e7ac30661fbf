/** The plans of both policies, on worlds that can be followed in the head or solved by brute force. */
import { describe, expect, it } from "vitest";
import { planPlacement } from "#coordinator/place/balance/placement";
import {
  type BalanceInput,
  type Burden,
  burdensOf,
  defaultHysteresis,
  type Move,
  noHysteresis,
  overloads,
  plannedCapacities,
  unlisted,
  wholeUnits,
} from "#coordinator/place/balance/plan";
import { planByVarianceRule, probingVariance } from "#coordinator/place/balance/variance-rule";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import {
  bruteForceCost,
  cheapestMoves,
  costOf,
  randomWorld,
  type TinySubnet,
  tinyWorld,
  withMoves,
} from "./tiny-worlds.ts";

const placesOf = (moves: readonly Move[]) => moves.map(({ subnetId, to }) => [subnetId, to]);
const overloadedBy = (moves: readonly Move[], input: BalanceInput) =>
  overloads(burdensOf(withMoves(input, moves)));
const withoutBytes = (input: BalanceInput): BalanceInput => ({
  ...input,
  crawlers: input.crawlers.map(({ capacityBytesPerDay: _, ...crawler }) => crawler),
});
const seeds = (count: number, step: number) => Array.from({ length: count }, (_, index) => step * index + 3);

describe("the cheapest set of moves", () => {
  it.each<[string, BalanceInput, (readonly [subnet: number, to: number])[]]>([
    [
      "gives up the subnet that loses least",
      tinyWorld(
        [1, 5],
        [
          [1, 1, [10, 90]],
          [1, 1, [10, 25]],
        ],
      ),
      [[2, 2]],
    ],
    [
      // Subnet 1 alone would go to 2 (cost 1), but subnet 2 can go nowhere else: so 1 goes to 3 (cost 3).
      "takes back a move that a later one makes expensive",
      tinyWorld(
        [0, 1, 1],
        [
          [1, 1, [10, 11, 13]],
          [1, 1, [10, 12, 200]],
        ],
      ),
      [
        [1, 3],
        [2, 2],
      ],
    ],
    [
      // 1 → 2 costs 5 and 2 → 3 costs 6, against 100 for 1 → 3.
      "goes through a full neighbour when that is cheaper",
      tinyWorld(
        [1, 1, 1],
        [
          [1, 1, [10, 90, 110]],
          [1, 1, [10, 15, 110]],
          [2, 1, [90, 10, 16]],
        ],
      ),
      [
        [2, 2],
        [3, 3],
      ],
    ],
    [
      "leaves a subnet alone that would be as near elsewhere",
      tinyWorld(
        [9, 9, 0],
        [
          [2, 1, [10, 10, 10]],
          [3, 1, [30, 20, 10]],
        ],
      ),
      [[2, 2]],
    ],
    [
      "empties a departed crawler, of subnets without load too",
      tinyWorld(
        [0, 5],
        [
          [1, 1, [10, 20]],
          [1, 0, [10, 30]],
        ],
      ),
      [
        [1, 2],
        [2, 2],
      ],
    ],
    ["empties a crawler that is not listed", tinyWorld([5, 5], [[9, 1, [10, 20]]]), [[1, 1]]],
    ["is empty when no crawler has any capacity", tinyWorld([0, 0], [[1, 1, [10, 20]]]), []],
    ["is empty without crawlers", tinyWorld([], [[1, 1, [10]]]), []],
    [
      "keeps a subnet larger than any capacity, and moves what else its crawler has",
      tinyWorld(
        [10, 20],
        [
          [1, 25, [10, 15]],
          [1, 3, [10, 50]],
        ],
      ),
      [[2, 2]],
    ],
    [
      "gives up what costs least for its bytes when only bytes are exceeded",
      tinyWorld(
        [[9, 150], 9],
        [
          [1, 1, [10, 30], 100],
          [1, 1, [10, 20], 100],
          [1, 1, [10, 11], 1],
        ],
      ),
      [[2, 2]],
    ],
  ])("%s", (_, input, expected) => {
    expect(placesOf(cheapestMoves(input))).toEqual(expected);
  });

  it("shares the load by capacity when the fleet cannot carry everything", () => {
    const input = tinyWorld([1, 2, 0], Array<TinySubnet>(9).fill([3, 1, [10, 10, 5]]));
    const burdens = burdensOf(withMoves(input, cheapestMoves(input)));

    expect([...burdens.values()].map(({ pages }) => pages)).toEqual([3, 6, 0]);
  });

  it("with equal loads costs as little as brute force finds, on a plane and without any geometry", () => {
    for (const seed of seeds(40, 31)) {
      const random = seededRandom(seed);
      const rtt = () => 1 + Math.floor(random() * 60);
      const owned = Array.from({ length: 6 }, (_, at): TinySubnet => {
        return [at === 5 ? 1 : 1 + Math.floor(random() * 4), 1, [rtt(), rtt(), rtt(), rtt()]];
      });
      const shape = { seed, crawlers: 2 + (seed % 3), subnets: 4 + (seed % 4) };
      const onPlane = withoutBytes(randomWorld({ ...shape, loads: "equal", headroom: 1 }));
      for (const input of [onPlane, tinyWorld([0, 3, 1, 2], owned)]) {
        const moves = cheapestMoves(input);
        expect(costOf(moves, input), `seed ${seed}`).toBeCloseTo(bruteForceCost(input), 6);
        expect(overloadedBy(moves, input), `seed ${seed}`).toEqual([]);
      }
    }
  });

  it.each([
    ["pages", 1.05],
    ["pages and bytes", 1.4],
  ])(
    "with unequal %s keeps to the limits in nine of ten tiny worlds, at up to %d times the least cost",
    (limits, most) => {
      const feasible = seeds(120, 7)
        .map((seed) => randomWorld({ seed, crawlers: 3, subnets: 8, headroom: 1.15 }))
        .map((input) => (limits === "pages" ? withoutBytes(input) : input))
        .map((input) => ({ input, least: bruteForceCost(input), moves: cheapestMoves(input) }))
        .filter(({ least }) => least < Number.POSITIVE_INFINITY);
      const kept = feasible.filter(({ input, moves }) => overloadedBy(moves, input).length === 0);
      const sum = (of: (one: (typeof kept)[number]) => number) =>
        kept.reduce((total, one) => total + of(one), 0);

      expect(feasible.length).toBeGreaterThan(40);
      expect(kept.length / feasible.length).toBeGreaterThan(0.9);
      const cost = sum(({ input, moves }) => costOf(moves, input)) / sum(({ least }) => least);
      expect(cost).toBeLessThan(most);
    },
  );

  it.each([101, 102, 103])("beats the paper's rule on 12 crawlers and 600 subnets, seed %i", (seed) => {
    const input = randomWorld({ seed, crawlers: 12, subnets: 600, headroom: 1.25 });
    const [moves, paper] = [cheapestMoves(input), planByVarianceRule(input)];

    expect(overloads(burdensOf(input))).not.toEqual([]);
    expect([overloadedBy(moves, input), overloadedBy(paper, input)]).toEqual([[], []]);
    expect(costOf(moves, input)).toBeLessThan(costOf(paper, input));
  });

  it("does not depend on the order of the input", () => {
    const input = randomWorld({ seed: 5, crawlers: 6, subnets: 80, headroom: 1.1 });
    const reversed = { ...input, crawlers: input.crawlers.toReversed(), subnets: input.subnets.toReversed() };

    expect(cheapestMoves(reversed)).toEqual(cheapestMoves(input));
  });

  describe("over the likely crawlers of each subnet, in a large fleet", () => {
    const world = (more: Partial<BalanceInput> = {}) => ({
      ...randomWorld({ seed: 9, crawlers: 100, subnets: 3000, headroom: 1.25 }),
      ...more,
    });
    const lineOf100: BalanceInput = {
      ...tinyWorld(Array(100).fill(3), Array<TinySubnet>(300).fill([1, 1, [5]])),
      crawlerRttMs: (a, b) => 10 * Math.abs(a - b),
    };

    it.each([
      ["places everything", world(), 2.25],
      ["finds room far beyond them when all load is at one end of the fleet", lineOf100, 491],
      ["plans where no distance between crawlers is known", world({ crawlerRttMs: () => undefined }), 2.25],
    ])("%s", (_, input, mostAddedMs) => {
      const moves = cheapestMoves(input);
      const pages = input.subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);

      expect(overloadedBy(moves, input)).toEqual([]);
      expect(costOf(moves, input) / pages).toBeLessThan(mostAddedMs);
    });
  });
});

describe("RTTs that nobody measured", () => {
  const world = tinyWorld(
    [1, 9, 9],
    [
      [1, 1, [10, null, 80]],
      [1, 1, [10, 90, 95]],
    ],
    40,
  );

  it("are predicted from the crawlers' distances and wanted before the move", () => {
    // By crawler 1, 40 ms away, between 30 and 50 ms, and by crawler 3 between 40 and 120: taken as 45.
    const { moves, probes } = planPlacement(world, noHysteresis);

    expect(moves).toEqual([{ subnetId: 1, from: 1, to: 2, addedRttMs: 35, predicted: true }]);
    expect(probes[0]).toEqual({ subnetId: 1, crawlerId: 2, expectedGain: Number.POSITIVE_INFINITY });
  });

  it("change the plan once they are measured", () => {
    const measured = tinyWorld(
      [1, 9, 9],
      [
        [1, 1, [10, 95, 80]],
        [1, 1, [10, 90, 95]],
      ],
      40,
    );

    expect(planPlacement(measured, noHysteresis)).toEqual({
      moves: [{ subnetId: 1, from: 1, to: 3, addedRttMs: 70, predicted: false }],
      probes: [],
    });
  });
});

describe("hysteresis", () => {
  const settings = { leastSavingMs: 5, leastSavingMsPagesPerDay: 0, deadBandShare: 0.05 };
  const perDay = { ...settings, leastSavingMs: 0, leastSavingMsPagesPerDay: 64 };

  it.each([
    ["keeps a subnet that would save less than the threshold", settings, [500, 500], 100, [20, 16], false],
    ["lets a subnet go home for more than the threshold", settings, [500, 500], 100, [20, 14], true],
    ["keeps a subnet of few pages: 4 ms × 8 are 32 a day", perDay, [500, 500], 8, [20, 16], false],
    ["lets a subnet of many pages go: 4 ms × 32 are 128 a day", perDay, [500, 500], 32, [20, 16], true],
    ["does not keep an overloaded crawler from giving up", settings, [90, 500], 100, [10, 60], true],
  ])("%s", (_, chosen, capacities, load, rtts, moves) => {
    const plan = planPlacement(tinyWorld(capacities, [[1, load, rtts]]), chosen);

    expect(placesOf(plan.moves)).toEqual(moves ? [[1, 2]] : []);
  });

  it("goes on with relief until the crawler is a little under, and fills nobody beyond that", () => {
    const subnets = [
      ...Array<TinySubnet>(103).fill([1, 1, [10, 30, 40]]),
      ...Array<TinySubnet>(93).fill([2, 1, [50, 10, 40]]),
    ];
    const { moves } = planPlacement(tinyWorld([100, 100, 100], subnets), settings);

    expect(moves.filter(({ to }) => to === 2)).toHaveLength(2);
    expect(moves.filter(({ to }) => to === 3)).toHaveLength(6);
    expect(moves.every(({ from }) => from === 1)).toBe(true);
  });
});

// Paper section 4.4: the subnets with the lowest variance in their probing results go to the next-best crawler.
describe("the paper's rule", () => {
  const tight: TinySubnet[] = [
    [1, 3, [10, 20, 30]],
    [2, 1, [10, 10, 10]],
    [3, 1, [10, 10, 10]],
  ];
  const spread = (ms: number): TinySubnet => [1, 1, [10, 10 + ms]];

  it.each<[string, BalanceInput, (readonly [subnet: number, to: number])[]]>([
    [
      "gives up the subnet with the lowest variance first, to the next-best crawler",
      tinyWorld(
        [1, 5, 5],
        [
          [1, 1, [10, 90, 80]],
          [1, 1, [10, 30, 20]],
        ],
      ),
      [[2, 3]],
    ],
    [
      "stops as soon as the crawler is no longer over",
      tinyWorld([2, 9], [1, 2, 3, 4].map(spread)),
      [
        [1, 2],
        [2, 2],
      ],
    ],
    [
      "passes over crawlers without room for the whole subnet",
      tinyWorld(
        [4, 2, 5],
        [
          [1, 3, [10, 20, 30]],
          [1, 3, [10, 90, 95]],
        ],
      ),
      [[1, 3]],
    ],
    [
      "takes subnets that fewer than two crawlers measured last",
      tinyWorld(
        [1, 5],
        [
          [1, 1, [10, null]],
          [1, 1, [10, 200]],
        ],
        5,
      ),
      [[2, 2]],
    ],
    ["keeps a subnet that nobody has room for", tinyWorld([2, 2, 2], tight), []],
    ["empties a departed crawler even so", tinyWorld([0, 3, 3], tight), [[1, 2]]],
    ["is empty while nobody is overloaded", tinyWorld([2, 2], [[1, 1, [50, 10]]]), []],
  ])("%s", (_, input, expected) => {
    expect(placesOf(planByVarianceRule(input))).toEqual(expected);
  });

  it("uses the population variance of what was measured", () => {
    const variances = [
      [10, 20, 30],
      [10, null, 10],
      [10, null],
    ].map((rtts) => probingVariance(tinyWorld([1], [[1, 1, rtts]]).subnets[0]!));

    expect(variances).toEqual([expect.closeTo(200 / 3), 0, Number.POSITIVE_INFINITY]);
  });
});

describe("planned capacities", () => {
  const banded = { ...defaultHysteresis, deadBandShare: 0.05 };

  it.each([
    [
      "are those stated, without hysteresis",
      noHysteresis,
      [
        [100, 150],
        [100, 10],
      ],
      [100, 100],
    ],
    [
      "leave the dead band free, and fill nobody beyond it",
      banded,
      [
        [100, 110],
        [100, 98],
        [100, 10],
      ],
      [95, 98, 95],
    ],
    [
      "have no dead band where the fleet has no room for it",
      banded,
      [
        [100, 110],
        [100, 88],
      ],
      [100, 100],
    ],
    [
      "grow for all alike when the fleet is too small",
      noHysteresis,
      [
        [5, 9],
        [5, 6],
        [0, 1],
        [5, 5],
      ],
      [7, 7, 0, 7],
    ],
  ])("%s", (_, settings, crawlers, expected) => {
    const inPages = crawlers.map(
      ([mostPages, pages]): Burden => ({ ...unlisted, mostPages: mostPages!, pages: pages! }),
    );
    const inBytes = crawlers.map(
      ([mostBytes, bytes]): Burden => ({ ...unlisted, mostBytes: mostBytes!, bytes: bytes! }),
    );

    expect([...plannedCapacities(inPages, settings).pages]).toEqual(expected);
    expect([...plannedCapacities(inBytes, settings).bytes]).toEqual(expected);
  });

  it("hold whole subnets, and the largest fractions are rounded up where they are needed", () => {
    expect([...wholeUnits(Float64Array.of(3.5, 2.4), 1, 5)]).toEqual([3, 2]);
    expect([...wholeUnits(Float64Array.of(3.5, 2.4), 1, 6)]).toEqual([4, 2]);
    expect([...wholeUnits(Float64Array.of(0.3), 0.1, 3)][0]).toBeCloseTo(0.3);
  });

  it("are exceeded in pages or bytes, and by a departed crawler with a subnet; most overloaded first", () => {
    const input = tinyWorld(
      [5, 5, 0, 5, [9, 1000], [9, 1001]],
      [
        [1, 9, []],
        [2, 6, []],
        [3, 0, []],
        [4, 5, []],
        [7, 1, []],
        [5, 1, [], 1001],
        [6, 1, [], 1001],
      ],
    );

    expect(overloads(burdensOf(input))).toEqual([1, 2, 7, 3, 5].map(asCrawlerId));
  });
});

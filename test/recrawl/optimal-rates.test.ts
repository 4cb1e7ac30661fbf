/** Optimal rates against a search over all rates, the conditions of an optimum, and worlds solved in the head. */
import { expect, test } from "vitest";
import { optimalPlan, type PagesToRefresh } from "#coordinator/crawl/recrawl/optimal-rates";
import {
  changesPerFetchAt,
  defaultRateBounds,
  freshnessOf,
  mostPerDay,
  rateAtMultiplier,
} from "#coordinator/crawl/recrawl/recrawl-plan";
import { seededRandom } from "#core/random";

const pagesOf = (rows: readonly (readonly [changes: number, importance: number, most?: number])[]) => ({
  changesPerDay: Float64Array.from(rows, ([changes]) => changes),
  importance: Float64Array.from(rows, ([, importance]) => importance),
  mostPerDay: Float64Array.from(rows, ([, , most]) => most ?? Infinity),
});

const sum = (values: Float64Array) => values.reduce((all, value) => all + value, 0);

const freshness = ({ changesPerDay, importance }: PagesToRefresh, rates: Float64Array) =>
  rates.reduce((all, rate, page) => all + importance[page]! * freshnessOf(rate, changesPerDay[page]!), 0);

function randomPages(count: number, random: () => number): PagesToRefresh {
  return pagesOf(
    Array.from(
      { length: count },
      () => [10 ** (4 * random() - 2), random(), 10 ** (3 * random() - 1)] as const,
    ),
  );
}

test("freshness follows evenly spaced fetches, with its limits", () => {
  expect(freshnessOf(1, 1)).toBeCloseTo(1 - Math.exp(-1), 12);
  expect(freshnessOf(0, 1)).toBe(0);
  expect(freshnessOf(0, 0)).toBe(1);
  expect(freshnessOf(Infinity, 1)).toBe(1);
});

test("the changes between two fetches are recovered from their share, over all shares", () => {
  for (const x of [1e-7, 1e-4, 0.01, 0.3, 1, 2, 5, 12, 25]) {
    const share = -Math.expm1(-x) - x * Math.exp(-x);
    // Near 1 the share itself holds fewer digits; near 0 its closed form here does.
    if (x >= 0.01) expect(changesPerFetchAt(share) / x).toBeCloseTo(1, x > 20 ? 4 : 9);
    else expect(changesPerFetchAt((x * x) / 2 - x ** 3 / 3) / x).toBeCloseTo(1, 7);
  }
});

test("a page that changes too often to be kept is left alone, one that never changes needs nothing", () => {
  const rates = optimalPlan(
    pagesOf([
      [1, 1],
      [1000, 1],
      [0, 1],
      [1, 0],
    ]),
    2,
  ).ratesPerDay;

  expect(rates[0]).toBeCloseTo(2, 9);
  expect([rates[1], rates[2], rates[3]]).toEqual([0, 0, 0]);
});

test("for two pages the rates match an exhaustive search", () => {
  const pages = pagesOf([
    [3, 2],
    [0.5, 1],
  ]);
  const grid = Array.from({ length: 4001 }, (_, step) => Float64Array.of(step / 1000, 4 - step / 1000));
  const best = grid.reduce((a, b) => (freshness(pages, b) > freshness(pages, a) ? b : a));

  const rates = optimalPlan(pages, 4).ratesPerDay;

  expect(Math.abs(rates[0]! - best[0]!)).toBeLessThan(0.002);
  expect(freshness(pages, rates)).toBeGreaterThanOrEqual(freshness(pages, best) - 1e-12);
});

test("for random pages the total is met, limits hold, and one more fetch adds the same everywhere", () => {
  const random = seededRandom(42);
  for (let round = 0; round < 20; round++) {
    const pages = randomPages(200, random);
    const totalPerDay = 10 ** (4 * random() - 1);

    const { ratesPerDay, multiplier } = optimalPlan(pages, totalPerDay);

    const most = sum(pages.mostPerDay);
    expect(sum(ratesPerDay) / Math.min(totalPerDay, most), `round ${round}, seed 42`).toBeCloseTo(1, 8);
    ratesPerDay.forEach((rate, page) => {
      const [changes, importance] = [pages.changesPerDay[page]!, pages.importance[page]!];
      const step = 1e-5 * Math.max(rate, changes);
      const gain = (at: number) =>
        (importance * (freshnessOf(at + step, changes) - freshnessOf(at, changes))) / step;
      expect(rate).toBeLessThanOrEqual(pages.mostPerDay[page]!);
      if (rate < pages.mostPerDay[page]!) expect(gain(rate)).toBeLessThan(multiplier * 1.001 + 1e-12);
      if (rate > step) expect(gain(rate - step)).toBeGreaterThan(multiplier * 0.999 - 1e-9);
    });
  }
});

test("a host at its limit gets that, and the rest goes to the others", () => {
  const pages = pagesOf([
    [1, 10],
    [2, 10],
    [1, 1],
    [2, 1],
  ]);
  const hosts = { hostOf: Uint32Array.of(0, 0, 1, 1), mostPerDay: Float64Array.of(1, 100) };

  const { ratesPerDay, multiplier, hostMultipliers } = optimalPlan({ ...pages, hosts }, 5);
  const alone = optimalPlan(
    pagesOf([
      [1, 10],
      [2, 10],
    ]),
    1,
  ).ratesPerDay;

  expect(ratesPerDay[0]! + ratesPerDay[1]!).toBeCloseTo(1, 8);
  expect(ratesPerDay[0]).toBeCloseTo(alone[0]!, 8);
  expect(ratesPerDay[2]! + ratesPerDay[3]!).toBeCloseTo(4, 8);
  expect(hostMultipliers[0]).toBeGreaterThan(multiplier);
  expect(hostMultipliers[1]).toBe(multiplier);
});

test("every page gets its minimum, and a total beyond all limits leaves a rest", () => {
  const pages = pagesOf([
    [1, 1, 3],
    [1000, 1, 3],
    [0, 1, 3],
  ]);

  const least = optimalPlan({ ...pages, leastPerDay: Float64Array.of(0.1, 0.1, 0.1) }, 1).ratesPerDay;
  const all = optimalPlan(pages, 1000).ratesPerDay;

  expect(least[1]).toBeCloseTo(0.1, 9);
  expect(least[2]).toBeCloseTo(0.1, 9);
  expect(least[0]).toBeCloseTo(0.8, 8);
  expect(Array.from(all)).toEqual([3, 3, 0]);
  expect(optimalPlan(pages, 1000).multiplier).toBe(0);
});

test("the search ends for values over hundreds of orders of magnitude, and without pages", () => {
  const rates = optimalPlan(
    pagesOf([
      [1e-200, 1e100],
      [1e100, 1e-100],
      [1, 1],
    ]),
    1e-50,
  ).ratesPerDay;

  expect(Math.abs(sum(rates) / 1e-50 - 1)).toBeLessThan(1e-6);
  expect(optimalPlan(pagesOf([]), 1).ratesPerDay).toEqual(new Float64Array());
  expect(rateAtMultiplier(1, 1, 2)).toBe(0);
});

test.each([0, -1, Number.NaN, Infinity])("there is no plan for %d fetches in all", (total) => {
  expect(() => optimalPlan(pagesOf([[1, 1]]), total).ratesPerDay).toThrow(
    `${total} is not a positive number`,
  );
});

test("the default limit of visits per change costs hardly any freshness, and the paper's 2 more than choosing gains", () => {
  const random = seededRandom(3);
  // Changes spread over two orders of magnitude, 0.6 a fetch on the average, as 0.1 a day come to in a week.
  const changes = Array.from({ length: 4000 }, () => 10 ** (2.6 * random() - 2));
  const meanRate = changes.reduce((all, rate) => all + rate, 0) / changes.length;
  const freshAt = (visitsPerChange: number) => {
    const bounds = { leastPerDay: 0.1, mostPerDay: 1000, visitsPerChange };
    const pages = {
      ...pagesOf(changes.map((rate) => [rate, 1, mostPerDay((0.6 * rate) / meanRate, bounds)] as const)),
      changesPerDay: Float64Array.from(changes, (rate) => (0.6 * rate) / meanRate),
      leastPerDay: new Float64Array(changes.length).fill(bounds.leastPerDay),
    };
    return freshness(pages, optimalPlan(pages, changes.length).ratesPerDay) / changes.length;
  };
  const fixed =
    changes.reduce((all, rate) => all + freshnessOf(1, (0.6 * rate) / meanRate), 0) / changes.length;

  const [unlimited, byDefault, byThePaper] = [1e9, defaultRateBounds.visitsPerChange, 2].map(freshAt);

  expect(byThePaper).toBeLessThan(fixed);
  expect(byDefault).toBeGreaterThan(fixed);
  expect(unlimited! - byDefault!).toBeLessThan(0.002);
});

/** Estimated change rates against simulated Poisson pages whose rate is known, the exact likelihood, and hints. */
import { expect, test } from "vitest";
import { noVisits, type VisitSums } from "#coordinator/crawl/batch/visit";
import {
  addSums,
  type ComparedVisit,
  expectedChangesPerDay,
  leastChangesPerDay,
  likelyChangesPerDay,
  mostChangesPerDay,
  usualChangesPerDay,
  visitSums,
} from "#coordinator/crawl/recrawl/change-rate";
import { seededRandom } from "#core/random";

const daySeconds = 86_400;
/** Visits of a page that changes `perDay` times a day, after the gaps given in days. */
function visitsOf(perDay: number, gapsDays: readonly number[], random: () => number): ComparedVisit[] {
  return gapsDays.map((gap) => {
    // Memoryless: the time back to the last change is exponential, whatever was before.
    const ago = -Math.log(1 - random()) / perDay;
    return {
      elapsedSeconds: gap * daySeconds,
      plannedSeconds: gap * daySeconds,
      hasChanged: ago < gap,
      lastChangeSecondsAgo: ago * daySeconds,
    };
  });
}

const withoutDates = (visits: readonly ComparedVisit[]) =>
  visits.map((visit) => ({ ...visit, lastChangeSecondsAgo: null }));

const sumsOf = (visits: readonly ComparedVisit[]): VisitSums =>
  visits.reduce((sums, visit) => addSums(sums, visitSums(visit) ?? noVisits), noVisits);

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const times = <Value>(count: number, one: () => Value) => Array.from({ length: count }, one);

/** The likelihood's maximum over the visits themselves, by halving. */
function exactMaximum(visits: readonly ComparedVisit[]): number {
  let [low, high] = [1e-6, 1e4];
  for (let step = 0; step < 80; step++) {
    const rate = Math.sqrt(low * high);
    const slope = visits.reduce((sum, { elapsedSeconds, hasChanged }) => {
      const gap = elapsedSeconds / daySeconds;
      return sum + (hasChanged ? gap / Math.expm1(rate * gap) : -gap);
    }, 0);
    if (slope > 0) low = rate;
    else high = rate;
  }
  return low;
}

/** Changes for each visit's gap, of a page seen at one distance: the estimator of Cho and Garcia-Molina, bias-reduced. */
const changesPerGap = (visits: number, changes: number) =>
  -Math.log((visits - changes + 0.5) / (visits + 0.5));

test("over uneven gaps the estimate from sums follows the exact maximum, and is never above it", () => {
  const random = seededRandom(11);
  for (const spread of [1, 10, 100]) {
    const ratios = times(300, () => {
      const gaps = times(60, () => (spread ** random() / Math.sqrt(spread)) * 0.7);
      const visits = withoutDates(visitsOf(1, gaps, random));
      const { contentChanges, changedSeconds, unchangedSeconds } = sumsOf(visits);
      const fromSums =
        (contentChanges / changedSeconds) * daySeconds * Math.log1p(changedSeconds / unchangedSeconds);
      return fromSums / exactMaximum(visits);
    });

    expect(Math.max(...ratios), `gaps over a factor of ${spread}, seed 11`).toBeLessThan(1 + 1e-6);
    expect(mean(ratios), `gaps over a factor of ${spread}, seed 11`).toBeGreaterThan(
      spread === 100 ? 0.78 : 0.95,
    );
    expect(Math.min(...ratios), `the worst page, gaps over a factor of ${spread}, seed 11`).toBeGreaterThan(
      0.6,
    );
  }
});

test("a known last change distinguishes fast pages that visits alone cannot", () => {
  const random = seededRandom(3);
  const day = times(12, () => 1);
  const estimate = (perDay: number) =>
    mean(times(500, () => likelyChangesPerDay(sumsOf(visitsOf(perDay, day, random)), 1)));

  expect(Math.abs(estimate(0.5) / 0.5 - 1)).toBeLessThan(0.15);
  expect(Math.abs(estimate(20) / 20 - 1)).toBeLessThan(0.15);
  expect(changesPerGap(12, 12)).toBeLessThan(4);
});

test("a last change within the last thousandth of the gap is a generated page, and dates nothing", () => {
  const visit = { elapsedSeconds: 10_000, plannedSeconds: 10_000, hasChanged: true };

  expect(visitSums({ ...visit, lastChangeSecondsAgo: 5 })!.changedSeconds).toBe(10_000);
  expect(visitSums({ ...visit, lastChangeSecondsAgo: -5 })!.changedSeconds).toBe(10_000);
  expect(visitSums({ ...visit, lastChangeSecondsAgo: 20_000 })!.changedSeconds).toBe(10_000);
  expect(visitSums({ ...visit, lastChangeSecondsAgo: 4000 })).toMatchObject({
    changedSeconds: 0,
    unchangedSeconds: 4000,
  });
});

test("the posterior is the expectation without visits, and the observation after many", () => {
  const random = seededRandom(5);
  const seen = (count: number) =>
    sumsOf(
      withoutDates(
        visitsOf(
          2,
          times(count, () => 0.5),
          random,
        ),
      ),
    );

  expect(likelyChangesPerDay(noVisits, 0.1)).toBeCloseTo(0.1, 8);
  for (const expected of [0.01, 2, 400]) {
    expect(Math.abs(likelyChangesPerDay(seen(400), expected) / 2 - 1)).toBeLessThan(0.25);
  }
  const few = likelyChangesPerDay(seen(3), 0.1);
  expect(few).toBeGreaterThan(0.1);
});

test("no change in a hundred days lowers the expectation, and only changes raise it, both within bounds", () => {
  const still = { ...noVisits, comparedVisits: 10, unchangedSeconds: 100 * daySeconds };
  const wild = { ...noVisits, comparedVisits: 1e6, contentChanges: 1e6, changedSeconds: 1e4 };

  expect(likelyChangesPerDay(still, 1)).toBeLessThan(0.02);
  expect(likelyChangesPerDay(still, 1)).toBeGreaterThan(0.001);
  expect(likelyChangesPerDay(wild, 1)).toBeCloseTo(mostChangesPerDay, 3);
  expect(likelyChangesPerDay({ ...still, unchangedSeconds: 1e15 }, 1)).toBeCloseTo(leastChangesPerDay, 9);
  expect(likelyChangesPerDay(noVisits, Number.NaN)).toBeCloseTo(leastChangesPerDay, 9);
});

test("a clock that jumped adds nothing: gaps that are not positive, or far longer than planned", () => {
  const visit = { plannedSeconds: 3600, hasChanged: true, lastChangeSecondsAgo: null };

  for (const elapsedSeconds of [0, -1, -1e9, Number.NaN, 8 * 3600 + daySeconds + 1, Infinity]) {
    expect(visitSums({ ...visit, elapsedSeconds })).toBeNull();
  }
  expect(visitSums({ ...visit, elapsedSeconds: 8 * 3600 + daySeconds })).not.toBeNull();
  expect(visitSums({ ...visit, elapsedSeconds: 3600, plannedSeconds: -50 })).not.toBeNull();
});

test("a page without hints is expected to change like the middle of the web", () => {
  expect(expectedChangesPerDay({})).toBe(usualChangesPerDay);
  expect(expectedChangesPerDay({ changeFrequency: "sometimes", othersPerDay: Number.NaN })).toBe(
    usualChangesPerDay,
  );
  expect(expectedChangesPerDay({ unchangedSeconds: -5 })).toBe(usualChangesPerDay);
});

test("a sitemap's word is averaged with the host's other pages, and believed up to once a day", () => {
  expect(expectedChangesPerDay({ changeFrequency: "weekly" })).toBeCloseTo(1 / 7, 9);
  expect(expectedChangesPerDay({ changeFrequency: "always" })).toBe(1);
  expect(expectedChangesPerDay({ changeFrequency: "never" })).toBeCloseTo(1 / 365, 9);
  expect(expectedChangesPerDay({ changeFrequency: "always", othersPerDay: 0.01 })).toBeCloseTo(0.1, 9);
  expect(expectedChangesPerDay({ changeFrequency: "constructor", othersPerDay: 4 })).toBe(4);
  expect(expectedChangesPerDay({ othersPerDay: 4 })).toBe(4);
});

test("a static page whose sitemap says always is soon recognised", () => {
  const expected = expectedChangesPerDay({ changeFrequency: "always" });
  const after = (days: number) =>
    likelyChangesPerDay({ ...noVisits, comparedVisits: days, unchangedSeconds: days * daySeconds }, expected);

  expect(after(3)).toBeLessThan(0.25);
  expect(after(30)).toBeLessThan(0.05);
});

test("a page last changed long ago is expected to change seldom, and one changed just now often", () => {
  const old = expectedChangesPerDay({ unchangedSeconds: 1000 * daySeconds });
  const young = expectedChangesPerDay({ unchangedSeconds: 3600 });

  expect(old).toBeCloseTo(Math.sqrt(usualChangesPerDay / 1000), 9);
  expect(young).toBeCloseTo(Math.sqrt(usualChangesPerDay * 24), 9);
  expect(expectedChangesPerDay({ unchangedSeconds: 0 })).toBeLessThan(100);
});

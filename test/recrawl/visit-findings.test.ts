/** What one visit says of its page, and what the plan in force makes of it. */
import { expect, test } from "vitest";
import { type KnownPage, noVisits } from "#coordinator/crawl/batch/visit";
import {
  fixedPlan,
  importanceOf,
  mostPerDay,
  plannedIntervalSeconds,
} from "#coordinator/crawl/recrawl/recrawl-plan";
import { findingsOf, type ThisVisit } from "#coordinator/crawl/recrawl/visit-findings";

const noon = new Date("2030-01-01T12:00:00Z");
const hoursLater = (hours: number) => new Date(noon.getTime() + hours * 3_600_000);
const daySeconds = 86_400;

const known: KnownPage = {
  sums: noVisits,
  lastFetchedAt: noon,
  plannedAt: hoursLater(24),
  digest: "aa",
  backLinks: 0,
  pageRank: null,
  channelChangesPerDay: null,
  channelGroup: null,
  hostMultiplier: null,
};
const visit: ThisVisit = {
  fetchedAt: hoursLater(24),
  outcome: { type: "fetched", status: 200, truncated: false },
  digest: "bb",
  changedAt: null,
};

test("another digest is a change, the same one and a 304 are none, and without one there is nothing to compare", () => {
  const changed = (differences: Partial<ThisVisit>, before: Partial<KnownPage> = {}) =>
    findingsOf({ ...visit, ...differences }, { ...known, ...before }, fixedPlan).hasChanged;

  expect(changed({})).toBe(true);
  expect(changed({ digest: "aa" })).toBe(false);
  expect(changed({ outcome: { type: "unchanged", status: 304 }, digest: null })).toBe(false);
  expect(changed({}, { digest: null })).toBeNull();
  expect(changed({ outcome: { type: "http-error", status: 500, retryAfterSeconds: null } })).toBeNull();
});

test("what a sitemap states is expected of a page, and counts for nothing as a finding", () => {
  const unchanged = { ...visit, digest: "aa" };
  const rate = (stated: KnownPage["stated"], at: Partial<ThisVisit> = {}) =>
    findingsOf({ ...unchanged, ...at }, { ...known, ...(stated && { stated }) }, fixedPlan);
  const yearAgo = { modifiedAt: new Date("2029-01-01T00:00:00Z") };

  const [none, daily, old] = [rate(undefined), rate({ changeFrequency: "daily" }), rate(yearAgo)];
  const served = rate(yearAgo, { changedAt: hoursLater(23) });

  expect(daily.changesPerDay).toBeGreaterThan(1.5 * none.changesPerDay!);
  expect(old.changesPerDay).toBeLessThan(0.5 * none.changesPerDay!);
  expect(served.changesPerDay).toBeGreaterThan(none.changesPerDay!);
  expect(rate({ modifiedAt: hoursLater(48) }).changesPerDay).toBe(none.changesPerDay);
  expect([daily.sums, old.sums]).toEqual([none.sums, none.sums]);
});

test("a first visit estimates by hints alone, and a failed one estimates nothing", () => {
  const first = { ...known, lastFetchedAt: null, digest: null };
  const failed = {
    ...visit,
    outcome: { type: "redirected", status: 301, location: "http://a.example/" } as const,
  };

  expect(findingsOf(visit, first, fixedPlan).changesPerDay).toBeCloseTo(0.1, 6);
  expect(findingsOf(visit, { ...first, channelChangesPerDay: 3 }, fixedPlan).changesPerDay).toBeCloseTo(3, 6);
  expect(findingsOf(visit, first, { ...fixedPlan, usualChangesPerDay: 50 }).changesPerDay).toBeCloseTo(50, 6);
  expect(findingsOf(failed, known, fixedPlan)).toMatchObject({ changesPerDay: null, sums: noVisits });
});

test("a page is being learnt until its third comparison", () => {
  const after = (comparedVisits: number) =>
    findingsOf(visit, { ...known, sums: { ...noVisits, comparedVisits, unchangedSeconds: 1 } }, fixedPlan)
      .isLearning;

  expect([after(0), after(1), after(2), after(3)]).toEqual([true, true, false, false]);
});

test("each strategy has its interval: none, that of the group, or that of the multiplier within bounds", () => {
  const page = { changesPerDay: 1, importance: 1, group: 1, hostMultiplier: null };
  const groups = { ...fixedPlan, strategy: "icr" as const, groupIntervalSeconds: [60, 120] };
  const optimal = { ...fixedPlan, strategy: "optimal" as const, multiplier: 0.2 };
  const seconds = (differences: object, plan = optimal) =>
    plannedIntervalSeconds({ ...page, ...differences }, plan)!;

  expect(plannedIntervalSeconds(page, fixedPlan)).toBeNull();
  expect(seconds({}, groups as never)).toBe(120);
  expect(plannedIntervalSeconds({ ...page, group: null }, groups)).toBeNull();
  expect(plannedIntervalSeconds(page, { ...optimal, multiplier: null })).toBeNull();
  expect(seconds({})).toBeLessThan(seconds({ hostMultiplier: 0.5 }));
  expect(seconds({ importance: 5 })).toBeLessThan(seconds({}));
  expect(seconds({ changesPerDay: 1000 })).toBeCloseTo(60 * daySeconds, 3);
  expect(seconds({}, { ...optimal, multiplier: 1e-12 })).toBeCloseTo(daySeconds / 10, 3);
});

test("the most is by the page's changes, and never under the least", () => {
  const bounds = { leastPerDay: 0.5, mostPerDay: 10, visitsPerChange: 2 };

  expect([0.01, 1, 100].map((changes) => mostPerDay(changes, bounds))).toEqual([0.5, 2, 10]);
});

test("importance is PageRank in means where pages are ranked, else it grows with back-links", () => {
  expect(importanceOf({ pageRank: 0.002, backLinks: 9 }, 1000)).toBe(2);
  expect(importanceOf({ pageRank: null, backLinks: 9 }, 1000)).toBe(0.15);
  expect(importanceOf({ pageRank: null, backLinks: 7 }, 0)).toBe(4);
  expect(importanceOf({ pageRank: 0.5, backLinks: -1 }, 0)).toBe(1);
});

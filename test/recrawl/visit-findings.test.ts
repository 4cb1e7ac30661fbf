/** What one visit says of its page, and when the page is fetched next: by the fixed interval, and by the plan in force. */
import { describe, expect, it, test } from "vitest";
import { isFailure, type KnownPage, noVisits } from "#coordinator/crawl/batch/visit";
import {
  fixedPlan,
  importanceOf,
  mostPerDay,
  plannedIntervalSeconds,
} from "#coordinator/crawl/recrawl/recrawl-plan";
import {
  defaultRecrawlSettings,
  findingsOf,
  isGone,
  nextFetchAt,
  type ThisVisit,
} from "#coordinator/crawl/recrawl/visit-findings";
import type { FetchOutcome } from "#protocol/result";

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

test("another digest is a change, the same digest and a 304 are none, and without one nothing is compared", () => {
  const changed = (differences: Partial<ThisVisit>, before: Partial<KnownPage> = {}) =>
    findingsOf({ ...visit, ...differences }, { ...known, ...before }, fixedPlan).hasChanged;

  expect(changed({})).toBe(true);
  expect(changed({ digest: "aa" })).toBe(false);
  expect(changed({ outcome: { type: "unchanged", status: 304 }, digest: null })).toBe(false);
  expect(changed({}, { digest: null })).toBeNull();
  expect(changed({ outcome: { type: "http-error", status: 500, retryAfterSeconds: null } })).toBeNull();
});

test("a sitemap's statement sets the expectation, and is no finding", () => {
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

test("a page is learnt until its third comparison", () => {
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

test("the maximum follows the page's changes, and is never below the minimum", () => {
  const bounds = { leastPerDay: 0.5, mostPerDay: 10, visitsPerChange: 2 };

  expect([0.01, 1, 100].map((changes) => mostPerDay(changes, bounds))).toEqual([0.5, 2, 10]);
});

test("importance is PageRank relative to the mean, or grows with back-links without ranks", () => {
  expect(importanceOf({ pageRank: 0.002, backLinks: 9 }, 1000)).toBe(2);
  expect(importanceOf({ pageRank: null, backLinks: 9 }, 1000)).toBe(0.15);
  expect(importanceOf({ pageRank: null, backLinks: 7 }, 0)).toBe(4);
  expect(importanceOf({ pageRank: 0.5, backLinks: -1 }, 0)).toBe(1);
});

describe("the fixed interval", () => {
  const now = new Date("2026-03-01T12:00:00Z");
  const hour = 3600;
  const settings = { ...defaultRecrawlSettings, intervalSeconds: 6 * hour };

  function waitSeconds(outcome: FetchOutcome, failures = 0): number {
    return (nextFetchAt({ now, outcome, failures }, settings).getTime() - now.getTime()) / 1000;
  }

  const httpError = (status: number, retryAfterSeconds: number | null = null): FetchOutcome => ({
    type: "http-error",
    status,
    retryAfterSeconds,
  });
  const failed: FetchOutcome = {
    type: "failed",
    blame: "network",
    code: "ECONNRESET",
    reason: "connection reset",
  };

  describe("after a success the next fetch is one interval later", () => {
    it.each<FetchOutcome>([
      { type: "fetched", status: 200, truncated: false },
      { type: "unchanged", status: 304 },
      { type: "redirected", status: 301, location: "http://example.com/" },
      { type: "unsupported", status: 200, contentType: "image/png" },
    ])("$type", (outcome) => {
      expect(waitSeconds(outcome)).toBe(6 * hour);
      expect(waitSeconds(outcome, 5)).toBe(6 * hour);
      expect(isFailure(outcome)).toBe(false);
    });
  });

  describe("after a refusal the next fetch is a day later", () => {
    it.each<FetchOutcome>([
      { type: "refused-by-robots", rule: "Disallow: /" },
      { type: "refused-address", address: "10.0.0.1", block: "10.0.0.0/8" },
      httpError(401),
      httpError(403),
      httpError(404),
    ])("%j", (outcome) => {
      expect(waitSeconds(outcome)).toBe(24 * hour);
    });
  });

  describe("after trouble that may pass", () => {
    it.each([
      [0, 60],
      [1, 120],
      [2, 240],
      [10, 61_440],
      [11, 86_400],
      [4000, 86_400],
    ])("and %i failures before it, the wait is %i s", (failures, seconds) => {
      expect(waitSeconds(failed, failures)).toBe(seconds);
      expect(waitSeconds(httpError(503), failures)).toBe(seconds);
    });
  });

  // RFC 9110 section 10.2.3
  describe("Retry-After", () => {
    it("is waited for when it is longer than our own wait", () => {
      expect(waitSeconds(httpError(429, 7200))).toBe(7200);
      expect(waitSeconds(httpError(503, 10 * 86_400), 3)).toBe(10 * 86_400);
      expect(waitSeconds(httpError(403, 2 * 86_400))).toBe(2 * 86_400);
    });

    it("does not shorten our own wait", () => {
      expect(waitSeconds(httpError(429, 1), 2)).toBe(240);
    });
  });

  describe("a URL that is missing", () => {
    it("is gone the third time in a row, and tried again a month later", () => {
      const missing = [0, 1, 2].map((failures) =>
        isGone({ now, outcome: httpError(404), failures }, settings),
      );

      expect(missing).toEqual([false, false, true]);
      expect(waitSeconds(httpError(410), 2)).toBe(30 * 86_400);
    });

    it("is left alone for a month at once when the site asks for payment", () => {
      expect(isGone({ now, outcome: httpError(402) }, settings)).toBe(true);
      expect(waitSeconds(httpError(402), 0)).toBe(30 * 86_400);
    });

    it("is not gone for any other failure, however often", () => {
      expect(isGone({ now, outcome: failed, failures: 100 }, settings)).toBe(false);
      expect(isGone({ now, outcome: httpError(500), failures: 100 }, settings)).toBe(false);
    });
  });

  it("the same attempt always gives the same time", () => {
    expect(nextFetchAt({ now, outcome: failed }, settings)).toEqual(
      nextFetchAt({ now, outcome: failed }, settings),
    );
  });
});

/** The pages and bytes of a day, and whether a new fleet is ready for its first round. */
import { describe, expect, it } from "vitest";
import { DayBudget } from "#coordinator/place/crawlers/crawler";
import { FleetSettling } from "#coordinator/place/delegation/measure-peers";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { asCrawlerId } from "#core/ids";

const north = asCrawlerId(1);
const south = asCrawlerId(2);
const east = asCrawlerId(3);

describe("a day", () => {
  const evening = new Date("2030-01-01T23:59:59.999Z");
  const midnight = new Date("2030-01-02T00:00:00.000Z");
  /** Before anything was fetched, a page counts as 40 KB. */
  const of = (crawlerId: typeof north, pagesPerDay: number, bytesPerDay = 1e12) => ({
    crawlerId,
    pagesPerDay,
    bytesPerDay,
  });

  it("limits the pages of each crawler, and what is left is never negative", () => {
    const budget = new DayBudget();
    budget.spend(north, { pages: 30, bytes: 0 }, evening);
    budget.spend(north, { pages: 80, bytes: 0 }, evening);

    expect(budget.left(of(north, 200), evening)).toBe(90);
    expect(budget.left(of(north, 100), evening)).toBe(0);
    expect(budget.left(of(south, 100), evening)).toBe(100);
  });

  it("limits the bytes, which are fewer pages where pages are large", () => {
    const budget = new DayBudget();
    expect(budget.left(of(north, 1000, 400_000), evening)).toBe(10);

    // 300 KB more for 5 pages: 50 KB a page, together with the five of 40 KB that are assumed.
    budget.spend(north, { pages: 5, bytes: 300_000 }, evening);

    expect(budget.left(of(north, 1000, 400_000), evening)).toBe(2);
    expect(budget.left(of(north, 1000, 300_000), evening)).toBe(0);
    expect(budget.left(of(north, 6, 400_000), evening)).toBe(1);
  });

  it("starts over at midnight UTC", () => {
    for (const touch of ["spend", "left"] as const) {
      const budget = new DayBudget();
      budget.spend(north, { pages: 100, bytes: 1e6 }, evening);
      if (touch === "spend") budget.spend(south, { pages: 1, bytes: 1 }, midnight);

      expect(budget.left(of(north, 100, 4e6), midnight)).toBe(100);
    }
  });

  it("counts what was fetched today before a restart", () => {
    const budget = new DayBudget();
    budget.restore([{ crawlerId: north, pages: 40, bytes: 1e6 }], evening);
    budget.spend(north, { pages: 10, bytes: 1 }, evening);

    expect(budget.spent(north, evening)).toEqual({ pages: 50, bytes: 1_000_001 });
    expect(budget.spent(north, midnight)).toEqual({ pages: 0, bytes: 0 });
  });
});

describe("a new fleet", () => {
  const settings = { expectedCrawlers: 2, settleMs: 10_000 };
  const measured = (...pairs: [typeof north, typeof north][]) => {
    const state = new CoordinatorState();
    state.learnRtts(pairs.map(([from, to]) => ({ from, to, rttMs: 20, method: "connect" })));
    return state;
  };

  it("has settled when the expected crawlers are online and have measured each other", () => {
    const settling = new FleetSettling(settings);

    expect(settling.isSettled([north], measured(), 0)).toBe(false);
    expect(settling.isSettled([north, south], measured(), 0)).toBe(false);
    expect(settling.isSettled([north, south, east], measured([north, south]), 0)).toBe(false);
    expect(settling.settled).toBe(false);
    expect(settling.isSettled([north, south], measured([south, north]), 0)).toBe(true);
    expect(settling.settled).toBe(true);
  });

  it("waits for a limited time, counted from the first crawler", () => {
    const settling = new FleetSettling(settings);

    expect(settling.isSettled([], measured(), 0)).toBe(false);
    expect(settling.isSettled([north], measured(), 50_000)).toBe(false);
    expect(settling.isSettled([], measured(), 60_000)).toBe(false);
    expect(settling.isSettled([north], measured(), 59_999)).toBe(false);
    expect(settling.isSettled([north], measured(), 60_000)).toBe(true);
  });

  it("stays settled whoever leaves", () => {
    const settling = new FleetSettling({ expectedCrawlers: 1, settleMs: 10_000 });

    expect(settling.isSettled([north], measured(), 0)).toBe(true);
    expect(settling.isSettled([], measured(), 1)).toBe(true);
  });

  it("counts the measured pairs; one crawler has none", () => {
    expect(measured().rttCoverage([north])).toBe(1);
    expect(measured([north, south]).rttCoverage([north, south, east])).toBeCloseTo(1 / 3);
  });
});

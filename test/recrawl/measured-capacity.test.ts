/** How much the fleet can fetch again, learnt from what it fetched, and the mean interval that follows. */
import { describe, expect, test } from "vitest";
import { type CapacityInput, type MeasuredFetches, nextCapacity } from "#coordinator/crawl/recrawl/make-plan";
import {
  type IntervalPolicies,
  meanIntervalDays,
  type PlannedTotal,
} from "#coordinator/crawl/recrawl/recrawl-settings";

const quiet: MeasuredFetches = { windowDays: 1, sinceLastDays: 0.1, again: 1000, first: 0, lateShare: 0 };
const input = (differences: Partial<CapacityInput>): CapacityInput => ({
  before: { capacityPerDay: 2000, correction: 1, totalPerDay: 1000 },
  allowedPerDay: 10_000,
  measured: quiet,
  encourageRate: 0.5,
  isSettled: true,
  ...differences,
});

test("the first plan takes what crawlers may fetch, less what new pages take", () => {
  const measured = { ...quiet, first: 3000 };

  expect(nextCapacity(input({ before: null, measured })).capacityPerDay).toBe(7000);
  expect(nextCapacity(input({ before: null, measured: { ...quiet, first: 1e9 } })).capacityPerDay).toBe(500);
});

test("a late fleet gets less step by step, but no less than it manages; another is tried with more", () => {
  const late = { ...quiet, lateShare: 0.3 };

  expect(nextCapacity(input({ measured: { ...late, again: 200 } })).capacityPerDay).toBe(500);
  expect(nextCapacity(input({ measured: { ...late, again: 900 } })).capacityPerDay).toBe(900);
  expect(nextCapacity(input({})).capacityPerDay).toBe(4000);
  expect(nextCapacity(input({ allowedPerDay: 3000 })).capacityPerDay).toBe(3000);
});

test("rates that did not come true correct the next plan, once settled and not by chance", () => {
  const half = { ...quiet, again: 500 };

  const corrected = nextCapacity(input({ measured: half })).correction;

  expect(corrected).toBeCloseTo(2 ** 0.05, 9);
  expect(nextCapacity(input({ measured: half, isSettled: false })).correction).toBe(1);
  expect(nextCapacity(input({ measured: { ...half, again: 1 }, isSettled: true })).correction).toBeLessThan(
    4.1,
  );
  const few = { capacityPerDay: 20, correction: 1.5, totalPerDay: 10 };
  expect(nextCapacity(input({ before: few, measured: { ...half, again: 1 } })).correction).toBe(1.5);
});

test("without a window (a clock that was set back) nothing is measured and nothing corrected", () => {
  const measured = { windowDays: 0, sinceLastDays: 0, again: 0, first: 0, lateShare: 0 };

  expect(nextCapacity(input({ measured }))).toEqual({ capacityPerDay: 4000, correction: 1 });
});

test("when most of a fleet leaves, intervals grow to what the rest manages, and shrink when it is back", () => {
  const stepsADay = 144;
  const done: number[] = [];
  let state = { capacityPerDay: 10_000, correction: 1, totalPerDay: 10_000 };
  let behind = 0;
  /** The planned totals of some days in which the fleet manages so much, though its partners allow all that they did. */
  const live = (days: number, managedPerDay: number) =>
    Array.from({ length: days * stepsADay }, () => {
      const asked = state.totalPerDay * state.correction;
      const fetched = Math.min(asked + behind * stepsADay, managedPerDay);
      behind = Math.max(0, behind + (asked - fetched) / stepsADay);
      done.push(fetched);
      const window = done.slice(-stepsADay);
      const measured = {
        ...{ windowDays: window.length / stepsADay, sinceLastDays: 1 / stepsADay, first: 0 },
        again: window.reduce((sum, perDay) => sum + perDay / stepsADay, 0),
        lateShare: behind > managedPerDay / 10 ? 0.5 : 0,
      };
      const next = nextCapacity(input({ before: state, measured, allowedPerDay: 12_000 }));
      state = { ...next, totalPerDay: Math.min(10_000, next.capacityPerDay) };
      return state.totalPerDay * state.correction;
    });

  live(2, 10_500);
  const reduced = live(20, 3000);
  const settled = reduced.slice(-5 * stepsADay);
  const back = live(10, 10_500).slice(-stepsADay);

  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  expect(Math.min(...reduced)).toBeGreaterThan(1000);
  expect(mean(settled)).toBeGreaterThan(2400);
  expect(mean(settled)).toBeLessThan(3300);
  expect(mean(back)).toBeGreaterThan(9000);
});

describe("a page's mean interval", () => {
  const policies: IntervalPolicies = { strategy: "optimal", intervalHours: 48, total: "interval" };
  const plan: PlannedTotal = { strategy: "optimal", pages: 700, totalPerDay: 100, capacityPerDay: 1000 };

  test("is the fixed one without a plan of the strategy, or with an empty one", () => {
    expect(meanIntervalDays({ ...policies, strategy: "fixed" }, plan)).toBe(2);
    expect(meanIntervalDays(policies, null)).toBe(2);
    expect(meanIntervalDays({ ...policies, strategy: "iir" }, plan)).toBe(2);
    expect(meanIntervalDays(policies, { ...plan, pages: 0 })).toBe(2);
    expect(meanIntervalDays(policies, { ...plan, totalPerDay: 0 })).toBe(2);
  });

  test("is the plan's for groups, and for all that the fleet manages", () => {
    expect(meanIntervalDays({ ...policies, total: "capacity" }, plan)).toBe(7);
    expect(meanIntervalDays({ ...policies, strategy: "icr" }, { ...plan, strategy: "icr" })).toBe(7);
  });

  test("under optimal follows the interval policy at once, up to what the fleet manages", () => {
    expect(meanIntervalDays(policies, plan)).toBe(2);
    expect(meanIntervalDays({ ...policies, intervalHours: 240 }, plan)).toBe(10);
    expect(meanIntervalDays(policies, { ...plan, capacityPerDay: 70 })).toBe(10);
  });
});

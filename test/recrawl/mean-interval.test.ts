/** The mean interval under each strategy, with the plan that is there. */
import { expect, test } from "vitest";
import {
  type IntervalPolicies,
  meanIntervalDays,
  type PlannedTotal,
} from "#coordinator/crawl/recrawl/recrawl-settings";

const policies: IntervalPolicies = { strategy: "optimal", intervalHours: 48, total: "interval" };
const plan: PlannedTotal = { strategy: "optimal", pages: 700, totalPerDay: 100, capacityPerDay: 1000 };

test("without a plan of the strategy, or with an empty one, the fixed interval holds", () => {
  expect(meanIntervalDays({ ...policies, strategy: "fixed" }, plan)).toBe(2);
  expect(meanIntervalDays(policies, null)).toBe(2);
  expect(meanIntervalDays({ ...policies, strategy: "iir" }, plan)).toBe(2);
  expect(meanIntervalDays(policies, { ...plan, pages: 0 })).toBe(2);
  expect(meanIntervalDays(policies, { ...plan, totalPerDay: 0 })).toBe(2);
});

test("groups, and all that the fleet manages, have the interval that the plan comes to", () => {
  expect(meanIntervalDays({ ...policies, total: "capacity" }, plan)).toBe(7);
  expect(meanIntervalDays({ ...policies, strategy: "icr" }, { ...plan, strategy: "icr" })).toBe(7);
});

test("optimal divides what the interval comes to, at once when it is another, and no more than the fleet manages", () => {
  expect(meanIntervalDays(policies, plan)).toBe(2);
  expect(meanIntervalDays({ ...policies, intervalHours: 240 }, plan)).toBe(10);
  expect(meanIntervalDays(policies, { ...plan, capacityPerDay: 70 })).toBe(10);
});

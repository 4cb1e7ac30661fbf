/** What the soak (npm run bench -- soak) calls flat, and what it calls growing. */
import { expect, it } from "vitest";
import { type Sample, trendOf } from "./trend.ts";

const tolerance = { share: 0.1, least: 5 };
/** Every minute for an hour. */
const samples = (valueAt: (minute: number) => number): Sample[] =>
  Array.from({ length: 60 }, (_, minute) => ({ hours: minute / 60, value: valueAt(minute) }));
const verdictOf = (valueAt: (minute: number) => number) => trendOf(samples(valueAt), tolerance).verdict;
/** Between -3 and 3, without chance. */
const waver = (minute: number) => ((minute * 7) % 13) / 2 - 3;

it("calls growing what goes up all the time, by its slope an hour", () => {
  const trend = trendOf(
    samples((minute) => 100 + minute + waver(minute)),
    tolerance,
  );

  expect(trend.verdict).toBe("grows");
  expect(trend.slopePerHour).toBeGreaterThan(50);
  expect(trend.slopePerHour).toBeLessThan(70);
});

it("calls flat what wavers, what fills up at first, what shrinks, and what jumps now and then", () => {
  expect(verdictOf((minute) => 100 + waver(minute))).toBe("flat");
  expect(verdictOf((minute) => Math.min(100, 20 + 5 * minute) + waver(minute))).toBe("flat");
  expect(verdictOf((minute) => 200 - minute)).toBe("flat");
  expect(verdictOf((minute) => (minute % 10 === 9 ? 1000 : 100))).toBe("flat");
});

it("calls flat what grows by less than such a figure wavers", () => {
  expect(verdictOf((minute) => 10 + minute / 20)).toBe("flat");
});

it("says nothing of a few samples", () => {
  expect(trendOf(samples((minute) => minute).slice(0, 6), tolerance).verdict).toBe("too few samples");
});

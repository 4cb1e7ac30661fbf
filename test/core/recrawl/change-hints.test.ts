import { expect, test } from "vitest";
import { expectedChangesPerDay, usualChangesPerDay } from "#core/recrawl/change-hints";

const daySeconds = 86_400;

test("without a hint a page is expected to change as the web's middle does", () => {
  expect(expectedChangesPerDay({})).toBe(usualChangesPerDay);
  expect(expectedChangesPerDay({ changeFrequency: "sometimes", othersPerDay: Number.NaN })).toBe(
    usualChangesPerDay,
  );
  expect(expectedChangesPerDay({ unchangedSeconds: -5 })).toBe(usualChangesPerDay);
});

test("a sitemap's word counts before what other pages do", () => {
  expect(expectedChangesPerDay({ changeFrequency: "hourly", othersPerDay: 1 })).toBe(24);
  expect(expectedChangesPerDay({ othersPerDay: 4 })).toBe(4);
});

test("a page that was last changed long ago is expected to change seldom, one changed just now often", () => {
  const old = expectedChangesPerDay({ unchangedSeconds: 1000 * daySeconds });
  const young = expectedChangesPerDay({ unchangedSeconds: 3600 });

  expect(old).toBeCloseTo(Math.sqrt(usualChangesPerDay / 1000), 9);
  expect(young).toBeCloseTo(Math.sqrt(usualChangesPerDay * 24), 9);
  expect(expectedChangesPerDay({ unchangedSeconds: 0 })).toBeLessThan(100);
});

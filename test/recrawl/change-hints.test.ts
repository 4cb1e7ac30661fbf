import { expect, test } from "vitest";
import { noVisits } from "#coordinator/crawl/batch/visit";
import {
  expectedChangesPerDay,
  likelyChangesPerDay,
  usualChangesPerDay,
} from "#coordinator/crawl/recrawl/change-rate";

const daySeconds = 86_400;

test("without a hint a page is expected to change as the web's middle does", () => {
  expect(expectedChangesPerDay({})).toBe(usualChangesPerDay);
  expect(expectedChangesPerDay({ changeFrequency: "sometimes", othersPerDay: Number.NaN })).toBe(
    usualChangesPerDay,
  );
  expect(expectedChangesPerDay({ unchangedSeconds: -5 })).toBe(usualChangesPerDay);
});

test("a sitemap's word is held against what other pages of the host do, and believed up to once a day", () => {
  expect(expectedChangesPerDay({ changeFrequency: "weekly" })).toBeCloseTo(1 / 7, 9);
  expect(expectedChangesPerDay({ changeFrequency: "always" })).toBe(1);
  expect(expectedChangesPerDay({ changeFrequency: "never" })).toBeCloseTo(1 / 365, 9);
  expect(expectedChangesPerDay({ changeFrequency: "always", othersPerDay: 0.01 })).toBeCloseTo(0.1, 9);
  expect(expectedChangesPerDay({ changeFrequency: "constructor", othersPerDay: 4 })).toBe(4);
  expect(expectedChangesPerDay({ othersPerDay: 4 })).toBe(4);
});

test("a page that its sitemap says changes always, and that never does, is soon taken for what it is", () => {
  const expected = expectedChangesPerDay({ changeFrequency: "always" });
  const after = (days: number) =>
    likelyChangesPerDay({ ...noVisits, comparedVisits: days, unchangedSeconds: days * daySeconds }, expected);

  expect(after(3)).toBeLessThan(0.25);
  expect(after(30)).toBeLessThan(0.05);
});

test("a page that was last changed long ago is expected to change seldom, one changed just now often", () => {
  const old = expectedChangesPerDay({ unchangedSeconds: 1000 * daySeconds });
  const young = expectedChangesPerDay({ unchangedSeconds: 3600 });

  expect(old).toBeCloseTo(Math.sqrt(usualChangesPerDay / 1000), 9);
  expect(young).toBeCloseTo(Math.sqrt(usualChangesPerDay * 24), 9);
  expect(expectedChangesPerDay({ unchangedSeconds: 0 })).toBeLessThan(100);
});

import { expect, it } from "vitest";
import { meanOf, measuresOf } from "./measures.ts";

const grades = new Map([
  ["a", 3],
  ["b", 2],
  ["c", 1],
]);

it("the best order has all measures at 1, whatever follows it", () => {
  expect(measuresOf(["a", "b", "c", "x", "y"], grades)).toEqual({ ndcg: 1, reciprocalRank: 1, success: 1 });
});

it("a page that is not relevant before the others costs what a hand computes", () => {
  // Gains 0, 3, 7 at discounts 1, log2 3, 2: 3/1.58496 + 7/2 = 5.39279. The best order: 7 + 3/1.58496 + 1/2 = 9.39279.
  const { ndcg, reciprocalRank, success } = measuresOf(["x", "b", "a"], grades);

  expect(ndcg).toBeCloseTo(5.39279 / 9.39279, 5);
  expect([reciprocalRank, success]).toEqual([0.5, 0]);
});

it("only the first ten pages count as gain, but a later one still has a place", () => {
  const ranked = [..."0123456789"].concat("a");

  expect(measuresOf(ranked, grades)).toEqual({ ndcg: 0, reciprocalRank: 1 / 11, success: 0 });
});

it("a question that finds nothing has 0 everywhere and takes part in the mean", () => {
  const none = measuresOf([], grades);

  expect(meanOf([none, measuresOf(["a", "b", "c"], grades)])).toEqual({
    ...{ ndcg: 0.5, reciprocalRank: 0.5, success: 0.5 },
  });
});

/** Recrawls of pages whose changes are signalled: what signals are good for, and that the optimum without them is one. */
import { expect, it } from "vitest";
import { crawlValue, type SignalStrategy, signalFreshness } from "./recrawl/ncis.ts";

const freshness = (strategy: SignalStrategy, recall: number, falseShare: number) =>
  signalFreshness(strategy, { seed: 4, pages: 150, turns: 15_000, quality: { recall, falseShare } });

it("keeps pages fresher by right signals, by less with noisy ones, and loses nothing by useless ones", () => {
  const gain = (recall: number, falseShare: number) =>
    freshness("ncis", recall, falseShare) - freshness("greedy", recall, falseShare);

  expect(gain(0.9, 0.1)).toBeGreaterThan(0.12);
  expect(gain(0.9, 0.5)).toBeGreaterThan(0.08);
  expect(gain(0.9, 0.5)).toBeLessThan(gain(0.9, 0.1));
  expect(gain(0, 0.5)).toBe(0);
});

it("comes without signals to what the best rates come to, above even distances", () => {
  const optimal = freshness("optimal", 0.9, 0.1);

  expect(Math.abs(freshness("greedy", 0.9, 0.1) - optimal)).toBeLessThan(0.01);
  expect(optimal).toBeGreaterThan(freshness("fixed", 0.9, 0.1));
});

it("values a fetch by more the longer the wait, up to all of it", () => {
  const values = [0.1, 0.5, 1, 2, 5, 20].map((wait) => crawlValue(wait, { recall: 0.5, falseShare: 0.1 }));

  expect(values).toEqual(values.toSorted((a, b) => a - b));
  expect(values.at(-1)).toBeCloseTo(1, 3);
});

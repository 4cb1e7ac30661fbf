import { describe, expect, it } from "vitest";
import { accuracyEstimate } from "#coordinator/place/delegation/accuracy";
import { wilsonInterval } from "#core/format";

/** From Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3. */
describe("the Wilson interval", () => {
  it.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])("of %i in %i is as published", (hits, samples, low, high) => {
    const interval = wilsonInterval(hits, samples);

    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  });

  it("is everything while there is no sample, and never beyond 0 and 1", () => {
    expect(wilsonInterval(0, 0)).toEqual({ low: 0, high: 1 });
    expect(wilsonInterval(5, 5).high).toBe(1);
    expect(wilsonInterval(0, 5).low).toBe(0);
  });
});

it("an estimate without samples has no share", () => {
  expect(accuracyEstimate({ samples: 0, nearlyBest: 0 })).toMatchObject({ share: null, low: 0, high: 1 });
  expect(accuracyEstimate({ samples: 20, nearlyBest: 19 })).toMatchObject({
    share: 0.95,
    withinMs: 5,
    days: 30,
  });
});

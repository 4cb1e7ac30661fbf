import { describe, expect, it } from "vitest";
import { RateMeter } from "#coordinator/overview/live-event-routes";

const totals = (pages: number) => ({
  fetches: pages,
  pages,
  fetchedBytes: pages * 1000,
  shippedBytes: pages,
  rounds: 0,
  probes: 0,
});

describe("rates", () => {
  it("count over the last minute, not since the start", () => {
    const meter = new RateMeter();
    meter.sample(totals(0), 0);
    meter.sample(totals(600), 60_000);
    meter.sample(totals(600), 90_000);

    expect(meter.rates(totals(630), 120_000)).toMatchObject({
      pagesPerMinute: 30,
      fetchedBytesPerMinute: 30_000,
    });
  });

  it("are zero before there is anything to compare with", () => {
    expect(new RateMeter().rates(totals(5), 0)).toMatchObject({ pagesPerMinute: 0, pagesHistory: [] });
  });

  it("keep a history in pages per minute, of ten minutes at most", () => {
    const meter = new RateMeter();
    for (let step = 0; step < 500; step++) meter.sample(totals(step * 2), step * RateMeter.stepMs);

    const { pagesHistory, stepSeconds } = meter.rates(totals(1000), 500 * RateMeter.stepMs);

    expect(pagesHistory).toHaveLength(120);
    expect(new Set(pagesHistory)).toEqual(new Set([24]));
    expect(stepSeconds).toBe(5);
  });

  it("never go below zero", () => {
    const meter = new RateMeter();
    meter.sample(totals(100), 0);

    expect(meter.rates(totals(0), 10_000).pagesPerMinute).toBe(0);
  });
});

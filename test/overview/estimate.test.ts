/** The feasibility study of Anansi (section 5.3), by its own assumptions and by others. */
import { describe, expect, it } from "vitest";
import {
  assumptionFaults,
  estimateCrawl,
  thesisAssumptions,
  thesisMegabyte,
} from "#coordinator/overview/estimate";

describe("with the thesis' assumptions", () => {
  const estimate = estimateCrawl(thesisAssumptions);

  it("six months take 257 pages per second and 5,140 participants", () => {
    expect(Math.floor(estimate.pagesPerSecond)).toBe(257);
    expect(estimate.crawlers).toBe(5140);
  });

  it("the server sends 0.183 and receives 5 Megabytes a second, a tenth of both compressed", () => {
    expect((estimate.downBytesPerSecond / thesisMegabyte).toFixed(3)).toBe("0.183");
    expect((estimate.upBytesPerSecond / thesisMegabyte).toFixed(0)).toBe("5");
    expect((estimate.downCompressedBytesPerSecond / thesisMegabyte).toFixed(4)).toBe("0.0183");
    expect((estimate.upCompressedBytesPerSecond / thesisMegabyte).toFixed(1)).toBe("0.5");
  });

  it("1,200 GB are stored, and ranking takes 400,000 s: 2.6 % of the time, where the thesis prints 0.2 %", () => {
    expect(estimate.storageBytes).toBe(1.2e12);
    expect(estimate.rankSeconds).toBe(400_000);
    expect(estimate.rankShare).toBeCloseTo(0.0257, 4);
  });

  it("revisits with α = 0.9 take a ninth more fetches", () => {
    expect(estimate.pagesPerSecondWithRevisits / estimate.pagesPerSecond).toBeCloseTo(10 / 9, 12);
  });
});

describe("with measured inputs", () => {
  it("crawlers, storage and upload follow them, and what was compressed is not compressed again", () => {
    const measured = { pagesPerSecondPerCrawler: 2, bytesUpPerPage: 1000, storedBytesPerUrl: 500 };

    const estimate = estimateCrawl({ ...thesisAssumptions, replication: 1 }, measured);

    expect(estimate.storageBytes).toBe(2e12);

    expect(estimate.crawlers).toBe(129);
    expect(estimate.upBytesPerSecond).toBeCloseTo((4e9 / 15_552_000) * 1000, 6);
    expect(estimate.upCompressedBytesPerSecond).toBe(estimate.upBytesPerSecond);
  });
});

describe("assumptions are refused with the reason", () => {
  it("when they are none", () => {
    expect(assumptionFaults(thesisAssumptions)).toEqual([]);
    expect(assumptionFaults({ ...thesisAssumptions, pages: 0, months: -1, urlBytes: Number.NaN })).toEqual([
      "pages: 0 is not a number above 0",
      "months: -1 is not a number above 0",
      "urlBytes: NaN is not a number above 0",
    ]);
  });

  it("when they contradict each other", () => {
    expect(assumptionFaults({ ...thesisAssumptions, pages: 200 })).toEqual([
      "outDegree: a page with 200 links would link to all of the web, which has 200 pages",
    ]);
    expect(assumptionFaults({ ...thesisAssumptions, newShare: 1.5, compression: 0.5 })).toEqual([
      "newShare: 1.5 is more than all fetches; at most 1",
      "compression: 0.5 would make transfers longer; at least 1",
    ]);
  });
});

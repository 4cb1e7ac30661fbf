/** The feasibility study of Anansi (sections 5.2 and 5.3), by its own assumptions and by others. */
import { describe, expect, it } from "vitest";
import {
  assumptionFaults,
  comparePeaks,
  estimateCommand,
  estimateCrawl,
  estimateText,
  outDegreeOfPeak,
  pendingAfter,
  pendingPeak,
  thesisAssumptions,
  thesisMegabyte,
} from "./estimate.ts";

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

describe("the pending list", () => {
  it("is what the thesis' recurrence (equation 5.3) comes to, page by page", () => {
    const web = { pages: 20_000, outDegree: 7 };
    let pending = web.outDegree;
    const off: number[] = [];

    for (let n = 2; n < 20_000; n++) {
      pending += (web.outDegree * (web.pages - (pending + n) - 1)) / web.pages - 1;
      if (pending > 0) off.push(Math.abs(pendingAfter(web, n) - pending));
    }

    expect(off.length).toBeGreaterThan(19_000);
    expect(Math.max(...off)).toBeLessThan(1e-6);
  });

  it("is longest at its peak", () => {
    const web = { pages: 20_000, outDegree: 7 };

    const { crawled, pending } = pendingPeak(web);

    expect(pendingAfter(web, crawled - 1)).toBeLessThan(pending);
    expect(pendingAfter(web, crawled + 1)).toBeLessThan(pending);
  });

  it("is empty when everything has been crawled", () => {
    expect(pendingAfter({ pages: 1e9, outDegree: 200 }, 1e9)).toBe(0);
  });
});

describe("table 5.3", () => {
  it("holds to 1e-5 in every row with an out-degree of 200 for each billion of pages", () => {
    const rows = comparePeaks();

    expect(rows.map((row) => row.usedOutDegree)).toEqual([200, 400, 600, 800, 1000]);
    for (const row of rows) expect(row.usedOff).toBeLessThan(1e-5);
  });

  it("holds with the printed out-degree of 200 in its first row alone", () => {
    const off = comparePeaks().map((row) => row.printedOff);

    expect(off[0]).toBeLessThan(1e-5);
    for (const other of off.slice(1)) expect(other).toBeGreaterThan(0.5);
  });

  it("an out-degree is found again from the peak it leads to", () => {
    const { crawled } = pendingPeak({ pages: 3e9, outDegree: 123 });

    expect(outDegreeOfPeak(3e9, crawled)).toBeCloseTo(123, 6);
  });
});

const run = async (...args: readonly string[]) =>
  await estimateCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parseAsync(["node", "estimate", ...args]);

describe("the text", () => {
  it("has the thesis' printed figures beside those of its assumptions, and says where they part", () => {
    const answer = { assumptions: thesisAssumptions, estimate: estimateCrawl(thesisAssumptions) };

    const text = estimateText({ ...answer, table53: comparePeaks() });

    expect(text).toMatch(/crawlers without revisits +5,140 +5,140\n/);
    expect(text).toMatch(/sent, MB\/s +0\.183 +0\.183\n/);
    expect(text).toMatch(/ranking, % of the time +0\.2 +2\.57\n/);
    expect(text).toMatch(/2,000,000,000 +1,965,042,680 .* 400\.0000/);
    expect(text).toContain("S = 200 holds for the first row only");
  });
});

describe("bad input is refused with the reason", () => {
  it.each([
    [["--pages", "0"], /'--pages <n>' argument '0' is invalid. a number from/],
    [["--months", "-3"], /argument '-3' is invalid/],
    [["--pages", "many"], /argument 'many' is invalid/],
    [["--pages", "150"], /a page with 200 links would link to all of the web, which has 150 pages/],
    [["--alpha", "1.1"], /newShare: 1.1 is more than all fetches/],
  ])("%s", async (args, words) => {
    await expect(run(...args)).rejects.toThrow(words);
  });
});

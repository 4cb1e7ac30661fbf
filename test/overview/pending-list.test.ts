/** The pending list of a whole crawl (Anansi, section 5.2, table 5.3). */
import { describe, expect, it } from "vitest";
import { comparePeaks, outDegreeOfPeak, pendingAfter, pendingPeak } from "#coordinator/overview/estimate";

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

import { describe, expect, it } from "vitest";
import { effectiveCapacity, loadsOf, overloads } from "#coordinator/balance/plan";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { balanceInput } from "./tiny-worlds.ts";

const input = balanceInput({
  capacities: [5, 5, 0, 5],
  subnets: [
    [1, 9, [1]],
    [2, 6, [1]],
    [3, 0, [1]],
    [4, 5, [1]],
    [7, 1, [1]],
  ],
});

describe("capacity", () => {
  it("is what both limits of a partner allow", () => {
    expect(effectiveCapacity({ pagesPerDay: 1000, bytesPerDay: 1_000_000 }, 50_000)).toBe(20);
    expect(effectiveCapacity({ pagesPerDay: 10, bytesPerDay: 1_000_000 }, 50_000)).toBe(10);
    expect(effectiveCapacity({ pagesPerDay: 10, bytesPerDay: 1_000_000 }, 0)).toBe(10);
  });

  it("is compared with the load of every crawler that has subnets", () => {
    expect(Object.fromEntries(loadsOf(input))).toEqual({ 1: 9, 2: 6, 3: 0, 4: 5, 7: 1 });
  });

  it("is exceeded by these, the most overloaded first; a departed crawler with a subnet always is", () => {
    expect(overloads(input).map(({ crawlerId }) => crawlerId)).toEqual([1, 2, 7, 3]);
  });

  it("is exceeded in bytes too", () => {
    const crawlers = [
      { crawlerId: asCrawlerId(1), capacityPagesPerDay: 10, capacityBytesPerDay: 1_000 },
      { crawlerId: asCrawlerId(2), capacityPagesPerDay: 10 },
    ];
    const subnets = [1, 2].map((id) => ({
      subnetId: asSubnetId(id),
      crawlerId: asCrawlerId(id),
      loadPagesPerDay: 1,
      loadBytesPerDay: 1_001,
      rttMs: new Map(),
    }));

    expect(overloads({ crawlers, subnets })).toEqual([
      {
        crawlerId: 1,
        loadPagesPerDay: 1,
        capacityPagesPerDay: 10,
        loadBytesPerDay: 1_001,
        capacityBytesPerDay: 1_000,
      },
    ]);
  });
});

import { describe, expect, it } from "vitest";
import { type Burden, plannedCapacities, wholeUnits } from "#coordinator/place/balance/capacities";
import {
  defaultBalanceSettings,
  effectiveCapacity,
  noHysteresis,
  overloads,
} from "#coordinator/place/balance/plan";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { balanceInput } from "./tiny-worlds.ts";

const unlimited = Number.POSITIVE_INFINITY;

function burden(crawlers: readonly (readonly [capacity: number, load: number])[]): Burden {
  return {
    capacityPages: Float64Array.from(crawlers, ([capacity]) => capacity),
    pages: Float64Array.from(crawlers, ([, load]) => load),
    capacityBytes: new Float64Array(crawlers.length).fill(unlimited),
    bytes: new Float64Array(crawlers.length),
  };
}

describe("planned capacities", () => {
  const banded = { ...defaultBalanceSettings, deadBandShare: 0.05 };
  it.each([
    [
      "are those stated, without hysteresis",
      noHysteresis,
      [
        [100, 150],
        [100, 10],
      ],
      [100, 100],
    ],
    [
      "go a little under for whoever is over, and fill nobody beyond that",
      banded,
      [
        [100, 110],
        [100, 98],
        [100, 10],
      ],
      [95, 98, 95],
    ],
    [
      "have no dead band where the fleet has no room for it",
      defaultBalanceSettings,
      [
        [100, 110],
        [100, 88],
      ],
      [100, 100],
    ],
    [
      "grow for all alike when the fleet is too small",
      noHysteresis,
      [
        [5, 9],
        [5, 6],
        [0, 1],
        [5, 5],
      ],
      [7, 7, 0, 7],
    ],
  ] as const)("%s", (_, settings, crawlers, pages) => {
    expect([...plannedCapacities(burden(crawlers), settings).pages]).toEqual(pages);
  });

  it("hold whole subnets, and the largest fractions are rounded up where they are needed", () => {
    expect([...wholeUnits(Float64Array.of(3.5, 2.4), 1, 5)]).toEqual([3, 2]);
    expect([...wholeUnits(Float64Array.of(3.5, 2.4), 1, 6)]).toEqual([4, 2]);
    expect([...wholeUnits(Float64Array.of(0.3), 0.1, 3)][0]).toBeCloseTo(0.3);
  });
});

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

  it("is exceeded by these, the most overloaded first; a departed crawler with a subnet always is", () => {
    expect(overloads(input)).toEqual([1, 2, 7, 3]);
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

    expect(overloads({ crawlers, subnets })).toEqual([1]);
  });
});

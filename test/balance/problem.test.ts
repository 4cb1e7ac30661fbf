import { describe, expect, it } from "vitest";
import { defaultBalanceSettings, noHysteresis } from "#coordinator/balance/plan";
import { type Burden, plannedCapacities, wholeUnits } from "#coordinator/balance/problem";

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
  it("are those stated, without hysteresis", () => {
    const planned = plannedCapacities(
      burden([
        [100, 150],
        [100, 10],
      ]),
      noHysteresis,
    );

    expect([...planned.pages]).toEqual([100, 100]);
    expect([...planned.flow]).toEqual([100, 100]);
  });

  it("go a little under for whoever is over, and fill nobody beyond that", () => {
    const planned = plannedCapacities(
      burden([
        [100, 110],
        [100, 98],
        [100, 10],
      ]),
      { ...defaultBalanceSettings, deadBandShare: 0.05 },
    );

    expect([...planned.pages]).toEqual([95, 98, 95]);
  });

  it("have no dead band where the fleet has no room for it", () => {
    const planned = plannedCapacities(
      burden([
        [100, 110],
        [100, 88],
      ]),
      defaultBalanceSettings,
    );

    expect([...planned.pages]).toEqual([100, 100]);
  });

  it("grow for all alike when the fleet is too small", () => {
    const planned = plannedCapacities(
      burden([
        [5, 9],
        [5, 6],
        [0, 1],
        [5, 5],
      ]),
      noHysteresis,
    );

    expect([...planned.pages]).toEqual([7, 7, 0, 7]);
  });

  it("count for the flow in pages what the bytes allow at the mean size of a page", () => {
    const bytes = {
      capacityBytes: Float64Array.of(1_000, unlimited),
      bytes: Float64Array.of(2_000, 2_000),
    };

    const planned = plannedCapacities(
      {
        ...burden([
          [100, 50],
          [100, 50],
        ]),
        ...bytes,
      },
      noHysteresis,
    );

    expect([...planned.flow]).toEqual([25, 100]);
    expect([...planned.pages]).toEqual([100, 100]);
    expect([...planned.bytes]).toEqual([1_000, unlimited]);
  });

  it("hold whole subnets, and the largest fractions are rounded up where they are needed", () => {
    expect([...wholeUnits(Float64Array.of(3.5, 2.4), 1, 5)]).toEqual([3, 2]);
    expect([...wholeUnits(Float64Array.of(3.5, 2.4), 1, 6)]).toEqual([4, 2]);
    expect([...wholeUnits(Float64Array.of(0.3), 0.1, 3)][0]).toBeCloseTo(0.3);
  });
});

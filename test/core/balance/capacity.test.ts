import { describe, expect, it } from "vitest";
import { effectiveCapacity, loadsOf, overloads, workingCapacities } from "#core/balance/capacity";
import type { BalanceSubnet } from "#core/balance/plan";
import { addedRtt, rttTo, unknownRttMs } from "#core/balance/predict-rtt";
import { asCrawlerId } from "#core/ids";
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

  it("grows for all alike when the fleet is too small", () => {
    expect(Object.fromEntries(workingCapacities(input))).toEqual({ 1: 7, 2: 7, 3: 0, 4: 7, 7: 0 });
  });
});

describe("an RTT that was not measured", () => {
  const world = (rtts: readonly (number | null)[], apartMs?: number) =>
    balanceInput({
      capacities: [1, 1, 1],
      subnets: [[1, 1, rtts]],
      ...(apartMs === undefined ? {} : { apartMs }),
    });
  const subnetOf = (one: ReturnType<typeof world>) => one.subnets[0] as BalanceSubnet;

  it("lies in the middle of the bounds that all measurements give together", () => {
    // From crawler 1: 100 − 30 = 70 to 130; from crawler 2: 100 − 20 = 80 to 120.
    const one = world([30, 20, null], 100);

    expect(rttTo(subnetOf(one), asCrawlerId(3), one)).toEqual({ rttMs: 100, predicted: true });
  });

  it("is taken as half way round the world when the crawlers' distances are unknown too", () => {
    const one = world([30, null]);

    expect(rttTo(subnetOf(one), asCrawlerId(2), one)).toEqual({ rttMs: unknownRttMs, predicted: true });
  });

  it("is the crawlers' distance when nobody measured the subnet", () => {
    const one = world([], 40);

    expect(addedRtt(subnetOf(one), asCrawlerId(2), one)).toEqual({ addedRttMs: 40, predicted: true });
  });

  it("never promises a gain", () => {
    const one = world([150, 10, null], 20);

    expect(rttTo(subnetOf(one), asCrawlerId(3), one).rttMs).toBeLessThan(150);
    expect(addedRtt(subnetOf(one), asCrawlerId(3), one).addedRttMs).toBe(0);
    expect(addedRtt(subnetOf(one), asCrawlerId(2), one)).toEqual({ addedRttMs: -140, predicted: false });
  });
});

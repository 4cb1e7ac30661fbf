import { describe, expect, it } from "vitest";
import { RttTable, unknownRttMs, unmeasurableMs } from "#coordinator/place/distances/predicted-rtts";
import { asCrawlerId } from "#core/ids";

/** Crawlers 1, 2, 3 at positions on a line, in ms; a row has their measurements of a subnet, null for none. */
function table(places: readonly number[], subnets: readonly (readonly (number | null)[])[]) {
  const rtts = new RttTable((a, b) => Math.abs((places[a - 1] as number) - (places[b - 1] as number)));
  places.forEach((_, index) => {
    rtts.indexOf(asCrawlerId(index + 1));
  });
  for (const measured of subnets) {
    const rttMs = new Map(
      measured.flatMap((rtt, index) => (rtt === null ? [] : [[asCrawlerId(index + 1), rtt] as const])),
    );
    rtts.add({ crawlerId: asCrawlerId(1), rttMs });
  }
  return rtts;
}

function rowOf(rtts: RttTable, row: number): number[] {
  const row64 = new Float64Array(rtts.crawlerIds.length);
  rtts.rttsInto(row, row64);
  return [...row64];
}

describe("an RTT", () => {
  it("is the measured one where there is one", () => {
    expect(rowOf(table([0, 100], [[7, 300]]), 0)).toEqual([7, 300]);
  });

  it("is in the middle of the bounds that all measurements give together", () => {
    // From crawler 1: 100 − 30 = 70 to 130; from crawler 2: 100 − 20 = 80 to 120.
    const rtts = new RttTable(() => 100);
    const row = rtts.add({
      crawlerId: asCrawlerId(1),
      rttMs: new Map([
        [asCrawlerId(1), 30],
        [asCrawlerId(2), 20],
      ]),
    });
    rtts.indexOf(asCrawlerId(3));

    expect(rowOf(rtts, row)[2]).toBe(100);
  });

  it("is half way round the world when the crawlers' distances are unknown too", () => {
    const rtts = new RttTable(() => undefined);
    rtts.indexOf(asCrawlerId(2));
    const row = rtts.add({ crawlerId: asCrawlerId(1), rttMs: new Map([[asCrawlerId(1), 30]]) });

    expect(rowOf(rtts, row)[0]).toBe(unknownRttMs);
  });

  it("is the crawlers' distance when nobody measured the subnet", () => {
    const rtts = table([0, 40], [[]]);

    expect(rowOf(rtts, 0)).toEqual([0, 40]);
    expect(rtts.isMeasured(0, 0)).toBe(false);
    expect(rtts.measuredOf(0).size).toBe(0);
  });

  it("is never predicted below the nearest measured one", () => {
    // Between 40 and 45: the middle of 39 to 41, and of 40 to 44.
    expect(rowOf(table([0, 1], [[40, null]]), 0)[1]).toBe(40);
    expect(rowOf(table([0, 44, 45], [[44, 4, null]]), 0)[2]).toBe(4);
  });

  it("is not predicted from a crawler that could not measure", () => {
    expect(rowOf(table([0, 50, 80], [[10, unmeasurableMs, null]]), 0)).toEqual([10, unmeasurableMs, 80]);
  });
});

it("states the possible error of a prediction, which grows with the bounds", () => {
  const rtts = table(
    [0, 50],
    [
      [10, null],
      [40, null],
    ],
  );
  const apart = new RttTable(() => undefined);
  apart.add({ crawlerId: asCrawlerId(1), rttMs: new Map([[asCrawlerId(1), 30]]) });

  expect(rtts.spreadMs(1, 1)).toBeGreaterThan(rtts.spreadMs(0, 1));
  expect(apart.spreadMs(0, apart.indexOf(asCrawlerId(2)))).toBe(unknownRttMs / 2);
});

it("names crawlers that may be near: those that measured, and the neighbours of the nearest of them", () => {
  const rtts = table([0, 10, 30, 60, 100], [[null, null, 4, 90, null]]);

  expect(rtts.likely(0, 2).sort()).toEqual([0, 1, 2, 3]);
  expect(rtts.likely(0, 9).sort()).toEqual([0, 1, 2, 3, 4]);
});

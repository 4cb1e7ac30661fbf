import { describe, expect, it } from "vitest";
import { unknownRttMs, unmeasurableMs } from "#coordinator/balance/predict-rtt";
import { RttTable } from "#coordinator/balance/rtt-table";
import { asCrawlerId } from "#core/ids";

/** Crawlers 1, 2, 3 at these places on a line, in ms; rows are subnets with what they measured (null: not). */
function table(places: readonly number[], subnets: readonly (readonly (number | null)[])[], holderId = 0) {
  const rtts = new RttTable((a, b) => Math.abs((places[a - 1] as number) - (places[b - 1] as number)));
  places.forEach((_, index) => {
    rtts.indexOf(asCrawlerId(index + 1));
  });
  for (const measured of subnets) {
    const rttMs = new Map(
      measured.flatMap((rtt, index) => (rtt === null ? [] : [[asCrawlerId(index + 1), rtt] as const])),
    );
    rtts.add({ crawlerId: asCrawlerId(1), rttMs, holderId });
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

  it("lies in the middle of the bounds that all measurements give together", () => {
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

  it("is the crawlers' distance when nobody measured the subnet, and nobody counts as having measured it", () => {
    const rtts = table([0, 40], [[]]);

    expect(rowOf(rtts, 0)).toEqual([0, 40]);
    expect(rtts.isMeasured(0, 0)).toBe(false);
    expect(rtts.measuredOf(0).size).toBe(0);
  });

  it("is never predicted to be nearer than the nearest that was measured", () => {
    const taught = Array.from({ length: 9 }, () => [40, 10] as const);
    const rtts = table([0, 50], [...taught, [40, null]]);

    rtts.learn(Array.from({ length: 10 }, (_, row) => row));

    expect(rowOf(rtts, 9)[1]).toBe(40);
  });

  it("is not predicted from a crawler that could not measure", () => {
    expect(rowOf(table([0, 50, 80], [[10, unmeasurableMs, null]]), 0)).toEqual([10, unmeasurableMs, 80]);
  });
});

describe("a prediction", () => {
  const places = [0, 50, 90];
  // To crawler 2 all subnets of this holder are 30 ms further than the middle of the bounds says.
  const taught = Array.from({ length: 9 }, () => [10, 80, null] as const);

  it("learns from other subnets how far the middle is off", () => {
    const rtts = table(places, [...taught, [10, null, null]]);
    const before = rowOf(rtts, 9);

    rtts.learn(Array.from({ length: 10 }, (_, row) => row));

    expect(before).toEqual([10, 50, 90]);
    // Nine measurements of +30 against one of 0 in general: +27; within the holder nine against one of +27.
    expect(rowOf(rtts, 9)[1]).toBeCloseTo(50 + (9 * 30 + 27) / 10);
    expect(rowOf(rtts, 9)[2]).toBe(90);
  });

  it("learns more from its own holder than from others", () => {
    const rtts = table(places, taught);
    for (let index = 0; index < 3; index++) {
      rtts.add({
        crawlerId: asCrawlerId(1),
        rttMs: new Map([
          [asCrawlerId(1), 10],
          [asCrawlerId(2), 50],
        ]),
        holderId: 5,
      });
    }
    const ask = (holderId: number) =>
      rtts.add({ crawlerId: asCrawlerId(1), rttMs: new Map([[asCrawlerId(1), 10]]), holderId });
    const [own, other] = [ask(5), ask(0)];

    rtts.learn(Array.from({ length: 12 }, (_, row) => row));

    expect(rowOf(rtts, own)[1]).toBeLessThan(60);
    expect(rowOf(rtts, other)[1]).toBeGreaterThan(74);
  });

  it("says how far off it may be: the more the wider the bounds", () => {
    const rtts = table(places, [
      [10, null, null],
      [40, null, null],
    ]);

    expect(rtts.spreadMs(1, 1)).toBeGreaterThan(rtts.spreadMs(0, 1));
  });
});

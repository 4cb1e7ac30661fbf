/** Paper section 4.4: slower than usual by the operator's factor, more than once in a row. */
import { describe, expect, it } from "vitest";
import { defaultRecalibrationRule, judgeFetchTimes, median } from "#core/delegation/recalibration";
import { seededRandom } from "#core/seeded-random";

const steady = [40, 42, 41, 39, 40, 43];

describe("recalibration", () => {
  it("probes again when two fetches in a row are slower than usual", () => {
    expect(judgeFetchTimes([...steady, 95, 97])).toMatchObject({
      verdict: "probe-again",
      usualMs: 40.5,
      slowInARow: 2,
    });
  });

  it("waits after one slow fetch, and forgives it when the next is usual", () => {
    expect(judgeFetchTimes([...steady, 95])).toMatchObject({ verdict: "slow", slowInARow: 1 });
    expect(judgeFetchTimes([...steady, 95, 41])).toMatchObject({ verdict: "usual", slowInARow: 0 });
  });

  it("says so where there is too little history", () => {
    expect(judgeFetchTimes([40, 40, 40, 40, 95, 97]).verdict).toBe("no-history");
    expect(judgeFetchTimes([]).verdict).toBe("no-history");
  });

  it("is not misled by one page of the past that took a minute", () => {
    expect(judgeFetchTimes([40, 42, 60_000, 39, 40, 43, 95, 97]).verdict).toBe("probe-again");
  });

  it("follows the operator's factor", () => {
    const times = [...steady, 95, 97];

    expect(judgeFetchTimes(times, { ...defaultRecalibrationRule, factor: 3 }).verdict).toBe("usual");
    expect(judgeFetchTimes([...steady, 95, 97], { ...defaultRecalibrationRule, inARow: 3 }).verdict).toBe(
      "slow",
    );
  });

  it("does not alarm where a host at 1 ms takes 4, nor where a host is always restless", () => {
    expect(judgeFetchTimes([1, 1, 1.2, 1, 1.1, 4, 4]).verdict).toBe("usual");
    expect(judgeFetchTimes([40, 120, 60, 200, 90, 45, 150, 230, 210]).verdict).toBe("usual");
  });

  it("leaves out times that are none", () => {
    expect(judgeFetchTimes([...steady, Number.NaN, -1, 95, 97]).verdict).toBe("probe-again");
  });

  it("alarms on less than 1 in 1,000 fetches at 4 ms of exponential noise, and finds a jump of 60 ms at once", () => {
    const draw = seededRandom(7);
    const noisy = (baseMs: number) => baseMs - 4 * Math.log(1 - draw());
    let alarms = 0;
    let found = 0;
    for (let host = 0; host < 10_000; host++) {
      const past = Array.from({ length: 12 }, () => noisy(20));
      if (judgeFetchTimes(past).verdict === "probe-again") alarms += 1;
      if (judgeFetchTimes([...past, noisy(80), noisy(80)]).verdict === "probe-again") found += 1;
    }

    expect(alarms).toBeLessThan(10);
    expect(found).toBeGreaterThan(9_900);
  });

  it("takes the middle value, or the mean of the two", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
  });
});

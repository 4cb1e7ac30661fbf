/** Paper section 4.4: slower than usual by the operator's factor, more than once in a row; and shifts of the level. */
import { describe, expect, it } from "vitest";
import {
  changeScore,
  changeThreshold,
  defaultRecalibrationRule,
  HostTimes,
  median,
  type TimesAlarm,
} from "#coordinator/delegation/recalibration/rule";
import { type FetchModel, simulateFetches } from "./simulated-fetches.ts";

const rule = defaultRecalibrationRule;
const steady = [40, 42, 41, 39, 40, 43, 41, 40];
/** Enough clean fetches for two in a row to mean something: n in a row with (1/(n+30))² under 1 in 100,000. */
const longSteady = Array.from({ length: 300 }, (_, index) => steady[index % steady.length]!);

function alarmsOf(times: readonly number[], given = rule): { index: number; alarm: TimesAlarm }[] {
  const host = new HostTimes();
  return times.flatMap((timeMs, index) => {
    const alarm = host.note(timeMs, given);
    return alarm ? [{ index, alarm }] : [];
  });
}

describe("slow in a row", () => {
  it("alarms at the second slow fetch in a row at a host where slow fetches are rare", () => {
    expect(alarmsOf([...longSteady, 95, 97])).toEqual([
      { index: 301, alarm: { rule: "slow-in-a-row", usualMs: 40.5, nowMs: 96, fetches: 2 } },
    ]);
  });

  it("waits for the fourth at a host of which little is known", () => {
    expect(alarmsOf([...steady, 95, 97, 96])).toEqual([]);
    expect(alarmsOf([...steady, 95, 97, 96, 95])).toMatchObject([{ index: 11 }]);
  });

  it("wants more in a row where one fetch in twenty is slow", () => {
    const lossy = Array.from({ length: 410 }, (_, index) => (index % 20 === 19 ? 1040 : 40 + (index % 3)));

    expect(alarmsOf([...lossy, 95, 97, 95])).toEqual([]);
    expect(alarmsOf([...lossy, 95, 97, 95, 97])).toHaveLength(1);
  });

  it("forgives a slow fetch when the next is usual", () => {
    expect(alarmsOf([...longSteady, 95, 41, 95, 41, 95])).toEqual([]);
  });

  it("needs a history", () => {
    expect(alarmsOf([40, 40, 40, 40, 40, 40, 40, 95, 97, 95, 97])).toEqual([]);
  });

  it("is not misled by one page of the past that took a minute", () => {
    expect(alarmsOf([60_000, ...longSteady, 95, 97])).toHaveLength(1);
  });

  it("follows the operator's factor and count", () => {
    expect(alarmsOf([...longSteady, 95, 97], { ...rule, factor: 3 })).toEqual([]);
    expect(alarmsOf([...longSteady, 95, 97], { ...rule, inARow: 3 })).toEqual([]);
  });

  it("does not alarm where a host at 1 ms takes 3, nor where a host is always restless", () => {
    expect(alarmsOf([1, 1, 1.2, 1, 1.1, 1, 1, 1.1, 3, 3, 3, 3, 3, 3, 3, 3])).toEqual([]);
    expect(alarmsOf([40, 120, 60, 200, 90, 45, 150, 230, 80, 210, 190])).toEqual([]);
  });

  it("leaves out times that are none", () => {
    expect(alarmsOf([...longSteady, 95, Number.NaN, -1, 97])).toHaveLength(1);
  });

  it("takes the new level as usual: a host that became slow for good alarms once", () => {
    expect(alarmsOf([...longSteady, ...longSteady.map((timeMs) => timeMs + 60)])).toHaveLength(1);
  });
});

describe("change point", () => {
  it("finds a shift that the factor lets pass", () => {
    const shifted = longSteady.map((timeMs) => timeMs * 1.2);

    expect(alarmsOf([...longSteady, ...shifted])).toMatchObject([
      { index: 305, alarm: { rule: "change-point", usualMs: 40.5, fetches: 6 } },
    ]);
  });

  it("leaves shifts alone that are not worth a probe: under 10 %, or under 3 ms", () => {
    expect(alarmsOf([...longSteady, ...longSteady.map((timeMs) => timeMs * 1.05)])).toEqual([]);
    const near = longSteady.map((timeMs) => timeMs / 10);
    expect(alarmsOf([...near, ...near.map((timeMs) => timeMs + 2.5)])).toEqual([]);
  });

  it("scores by place: evidence in the upper quarter, counter-evidence below, none on average", () => {
    const places = Array.from({ length: 10_000 }, (_, index) => (index + 0.5) / 10_000);
    const meanLikelihood =
      places.reduce((sum, place) => sum + Math.exp(changeScore(place)), 0) / places.length;

    expect(changeScore(0.2)).toBeGreaterThan(0);
    expect(changeScore(0.3)).toBeLessThan(0);
    expect(meanLikelihood).toBeLessThan(1);
    expect(meanLikelihood).toBeGreaterThan(0.99);
  });

  it("never alarms by one fetch: six at the upper end are needed", () => {
    expect(Math.ceil(changeThreshold / changeScore(0.001))).toBe(6);
  });
});

it.each<[string, FetchModel]>([
  ["24 fetches per day", { hosts: 200 }],
  ["240 fetches per day", { fetchesPerDay: 240, hosts: 100 }],
  ["a daily wave of 20 %", { fetchesPerDay: 240, hosts: 100, dailyWave: 0.2 }],
  ["1 % of spikes of 200 ms", { fetchesPerDay: 240, hosts: 100, spikeShare: 0.01 }],
  ["1 % of lost packets", { fetchesPerDay: 240, hosts: 100, lossShare: 0.01 }],
])(
  "with %s alarms falsely on less than one host-day in 100, and finds changes within 10 fetches",
  (_, model) => {
    const result = simulateFetches(model);

    expect(result.falseAlarmPct).toBeLessThan(1);
    expect(result.crawlerAlarms).toBe(0);
    expect(result.foundWithin10FetchesPct).toBeGreaterThanOrEqual(95);
  },
);

it("takes the middle value, or the mean of the two", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(median([])).toBeNaN();
});

/** Paper section 4.4: slower than usual by the operator's factor, more than once in a row; and shifts of the level. */
import { describe, expect, it } from "vitest";
import {
  changeScore,
  changeThreshold,
  defaultRecalibrationRule,
  HostTimes,
  median,
  type TimesAlarm,
} from "#coordinator/place/delegation/recalibration/rule";
import { type FetchModel, simulateFetches } from "./simulated-fetches.ts";

const rule = defaultRecalibrationRule;
const steady = [40, 42, 41, 39, 40, 43, 41, 40];
/** Enough usual fetches for two slow ones in a row to mean something: (1/(n+30))² is below 1 in 100,000. */
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

  const lossy = Array.from({ length: 410 }, (_, index) => (index % 20 === 19 ? 1040 : 40 + (index % 3)));

  it.each<[string, readonly number[], number, Partial<typeof rule>?]>([
    ["not before the fourth at a little-known host", [...steady, 95, 97, 96], 0],
    ["at the fourth at a little-known host", [...steady, 95, 97, 96, 95], 1],
    ["not at the third where one fetch in twenty is slow", [...lossy, 95, 97, 95], 0],
    ["at the fourth where one fetch in twenty is slow", [...lossy, 95, 97, 95, 97], 1],
    ["not where the next is usual", [...longSteady, 95, 41, 95, 41, 95], 0],
    ["not without a history", [40, 40, 40, 40, 40, 40, 40, 95, 97, 95, 97], 0],
    ["also where one page of the past took a minute", [60_000, ...longSteady, 95, 97], 1],
    ["by the operator's factor", [...longSteady, 95, 97], 0, { factor: 3 }],
    ["by the operator's count", [...longSteady, 95, 97], 0, { inARow: 3 }],
    ["not where a host at 1 ms takes 3", [1, 1, 1.2, 1, 1.1, 1, 1, 1.1, 3, 3, 3, 3, 3, 3, 3, 3], 0],
    ["not where a host's times always vary widely", [40, 120, 60, 200, 90, 45, 150, 230, 80, 210, 190], 0],
    ["without counting invalid times", [...longSteady, 95, Number.NaN, -1, 97], 1],
    [
      "once for a host that became slow for good: the new level is the usual one",
      [...longSteady, ...longSteady.map((timeMs) => timeMs + 60)],
      1,
    ],
  ])("alarms %s", (_, times, alarms, differences) => {
    expect(alarmsOf(times, { ...rule, ...differences })).toHaveLength(alarms);
  });
});

describe("change point", () => {
  it("finds a shift that is below the factor", () => {
    const shifted = longSteady.map((timeMs) => timeMs * 1.2);

    expect(alarmsOf([...longSteady, ...shifted])).toMatchObject([
      { index: 305, alarm: { rule: "change-point", usualMs: 40.5, fetches: 6 } },
    ]);
  });

  it("ignores shifts that are not worth a probe: under 10 %, or under 3 ms", () => {
    expect(alarmsOf([...longSteady, ...longSteady.map((timeMs) => timeMs * 1.05)])).toEqual([]);
    const near = longSteady.map((timeMs) => timeMs / 10);
    expect(alarmsOf([...near, ...near.map((timeMs) => timeMs + 2.5)])).toEqual([]);
  });

  it("scores by rank: evidence in the upper quarter, counter-evidence below, none on average", () => {
    const places = Array.from({ length: 10_000 }, (_, index) => (index + 0.5) / 10_000);
    const meanLikelihood =
      places.reduce((sum, place) => sum + Math.exp(changeScore(place)), 0) / places.length;

    expect(changeScore(0.2)).toBeGreaterThan(0);
    expect(changeScore(0.3)).toBeLessThan(0);
    expect(meanLikelihood).toBeLessThan(1);
    expect(meanLikelihood).toBeGreaterThan(0.99);
  });

  it("needs at least six fetches, however slow they are", () => {
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

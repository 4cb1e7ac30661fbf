/** How long delegations last, by the moves of their kind, and when each is checked again. */
import { describe, expect, it } from "vitest";
import {
  AgeingTally,
  checkAfterDays,
  MoveRates,
  moveIntervalWords,
  type RateKeys,
  rateKeysOf,
  usualRate,
} from "#coordinator/place/delegation/recalibration/ageing";
import { seededRandom } from "#core/random";

const keys = (holderKey: number, country: string): RateKeys => rateKeysOf({ holderKey, country });

describe("the rate of moves", () => {
  it("is the usual one without observations", () => {
    const { perMonth, lossMs } = new MoveRates().rateOf(keys(1, "NL"));

    expect(perMonth).toBeCloseTo(usualRate.perMonth, 12);
    expect(lossMs).toBe(usualRate.lossMs);
  });

  it("is a kind's own after many observations, and that of the wider kind without any", () => {
    const rates = new MoveRates();
    for (let check = 0; check < 2000; check += 1) {
      rates.note(keys(1, "NL"), { days: 30.4, moved: check % 100 === 0, lostMs: 30 });
      rates.note(keys(2, "GR"), { days: 30.4, moved: check % 2 === 0, lostMs: 60 });
    }

    expect(rates.rateOf(keys(1, "NL")).perMonth).toBeCloseTo(0.01, 2);
    // A move within a month counts as half a month observed: 1000 in 1500 months.
    expect(rates.rateOf(keys(2, "GR")).perMonth).toBeCloseTo(1000 / 1500, 2);
    expect(rates.rateOf(keys(2, "GR")).lossMs).toBeCloseTo(60, 0);
    const stranger = rates.rateOf(keys(3, "GR")).perMonth;
    expect(stranger).toBeCloseTo(rates.rateOf(keys(2, "GR")).perMonth, 1);
    expect(rates.rateOf(keys(4, "CY")).perMonth).toBeGreaterThan(0.2);
  });

  it("is worded as a readable interval", () => {
    const words = [2, 1, 0.125, 0.05, 0.01].map((perMonth) => moveIntervalWords({ perMonth }));

    expect(words).toEqual(["15 days", "30 days", "8 months", "20 months", "8 years"]);
  });
});

describe("the plan of checks", () => {
  it("checks each after the operator's days where all are alike", () => {
    const tally = new AgeingTally();
    const ageing = { perDay: 0.0123, lossPerDay: 4567 };
    for (let count = 0; count < 100; count += 1) tally.add(ageing);

    expect(checkAfterDays(ageing, tally.planFor(30)!)).toBeCloseTo(30, 9);
  });

  it("fits the budget where they differ, and checks those that lose more sooner", () => {
    const seed = 11;
    const random = seededRandom(seed);
    const tally = new AgeingTally();
    const all = Array.from({ length: 3000 }, () => ({
      perDay: 0.0002 * 200 ** random(),
      lossPerDay: 10 * 1000 ** random(),
    }));
    for (const one of all) tally.add(one);

    const plan = tally.planFor(30)!;

    const perDay = all.reduce((sum, one) => sum + 1 / checkAfterDays(one, plan), 0);
    expect(perDay / (all.length / 30), `seed ${seed}`).toBeGreaterThan(0.95);
    expect(perDay / (all.length / 30), `seed ${seed}`).toBeLessThan(1.05);
    const daysOf = (perDay: number, lossPerDay: number) => checkAfterDays({ perDay, lossPerDay }, plan);
    expect(daysOf(0.01, 5000)).toBeLessThan(daysOf(0.01, 500));
    // A subnet that moves every other day is not worth a check, nor one that never does.
    expect(daysOf(0.01, 500)).toBeLessThan(daysOf(0.6, 500));
    expect(daysOf(0.01, 500)).toBeLessThan(daysOf(0.00001, 500));
    expect([daysOf(0.00001, 1), daysOf(1e-9, 1e-9)]).toEqual([90, 90]);
  });

  it("is null without delegations", () => {
    expect(new AgeingTally().planFor(30)).toBeNull();
  });
});

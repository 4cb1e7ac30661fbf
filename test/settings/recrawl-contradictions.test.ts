/** Recrawl policies that cannot be together are refused, with the values. */
import { expect, test } from "vitest";
import { contradictionsIn } from "#coordinator/settings/change";
import { type PolicySettings, policySections } from "#coordinator/settings/schema";

const faults = (recrawl: Readonly<Record<string, unknown>>) => {
  const sections = Object.entries(policySections).map(([name, schema]) => [name, schema.parse({})]);
  const settings = { ...Object.fromEntries(sections), recrawl: policySections.recrawl.parse(recrawl) };
  return contradictionsIn(settings as PolicySettings, [
    "recrawl.strategy",
    "recrawl.smallestMultiple",
    "recrawl.shortestHours",
  ]);
};

test("the defaults of every strategy go together", () => {
  for (const strategy of ["fixed", "iir", "icr", "optimal"]) expect(faults({ strategy })).toEqual([]);
});

test("bounds that exclude each other, intervals beyond them and totals without effect are refused", () => {
  expect(faults({ smallestMultiple: 5, biggestMultiple: 2 })).toEqual([
    expect.stringContaining("no interval is within both"),
  ]);
  expect(faults({ shortestHours: 100, longestDays: 2 })).toEqual([expect.stringContaining("48 h")]);
  expect(faults({ shortestHours: 0.01 })).toEqual([expect.stringContaining("before the lease on them ends")]);
  expect(faults({ strategy: "optimal", intervalHours: 2000 })).toEqual([
    expect.stringContaining("nothing is left to divide"),
  ]);
  expect(faults({ strategy: "iir", total: "capacity" })).toEqual([
    expect.stringContaining("no effect under recrawl.strategy iir"),
  ]);
  expect(faults({ strategy: "optimal", total: "capacity", intervalHours: 2000 })).toEqual([]);
});

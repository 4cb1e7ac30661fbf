/** Small simulated fleets; test/bench/results/trust.md reports thousands of them. */
import { describe, expect, it } from "vitest";
import { simulateFleet } from "./simulated-fleet.ts";

const fleet = { crawlers: 12, hostsEach: 120, pagesEach: 2000 };
const liarOf = (lie: "spam" | "missing", steady: boolean) => ({ crawler: 3, lie, steady });

describe("a simulated fleet", () => {
  it("accuses no honest crawler on a web that changes, rotates and differs by place", () => {
    const { accused, verdicts } = simulateFleet({ ...fleet, seed: 70_001, liars: [] });

    expect(accused).toEqual([]);
    expect(verdicts.get("by-place")).toBeGreaterThan(10);
    expect(verdicts.get("by-visit")).toBeGreaterThan(10);
  });

  it("catches one in twelve that adds links to 5 % of its pages", () => {
    const { accused } = simulateFleet({ ...fleet, seed: 70_002, liars: [liarOf("spam", true)] });

    expect(accused).toEqual([3]);
  });

  it("catches one that drops 5 % of its pages, different ones at each fetch", () => {
    const { accused } = simulateFleet({ ...fleet, seed: 70_003, liars: [liarOf("missing", false)] });

    expect(accused).toEqual([3]);
  });

  it("catches one that stays silent when asked again", () => {
    const silent = { ...liarOf("spam", true), silent: true };
    const { accused } = simulateFleet({ ...fleet, seed: 92_000, liars: [silent] });

    expect(accused).toEqual([3]);
  });
});

import { describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { instanceFigures, type WorldFigures, worldFigures } from "./figures.ts";
import { hasMatrices, measuredFleets } from "./measured-fleets.ts";

/** Not those (1 to 50) on which the generator's constants were chosen. */
const seeds = [1001, 1002, 1003, 1004, 1005, 1006, 1007];
const of12 = seeds.map((seed) => worldFigures(generateWorld({ seed, sites: 1000, crawlers: 12 })));
const of50 = seeds
  .slice(0, 3)
  .map((seed) => worldFigures(generateWorld({ seed, sites: 1000, crawlers: 50 })));
/** Over the seeds: where 12 crawlers happen to lie decides much. */
const typical = (figures: WorldFigures[], of: (one: WorldFigures) => number) =>
  figures.map(of).sort((a, b) => a - b)[Math.floor(figures.length / 2)]!;

describe("the figures of generated worlds", () => {
  it("violate the triangle inequality as often as measured round trips", () => {
    expect(typical(of12, (one) => one.triangleViolationShare)).toBeGreaterThan(0.12);
    expect(typical(of12, (one) => one.triangleViolationShare)).toBeLessThan(0.24);
    expect(typical(of12, (one) => one.severeViolationShare)).toBeGreaterThan(0.01);
    expect(typical(of50, (one) => one.triangleViolationShare)).toBeGreaterThan(0.12);
  });

  it("have runners-up as close as measured ones", () => {
    expect(typical(of12, (one) => one.gapMs.median)).toBeLessThan(13);
    expect(typical(of12, (one) => one.gapMs.p25)).toBeLessThan(6);
    expect(typical(of50, (one) => one.gapMs.median)).toBeLessThan(8);
  });

  it("let a country predict the best of 12 crawlers in about 60 of 100 cases", () => {
    expect(typical(of12, (one) => one.countryPredictsBest)).toBeGreaterThan(0.5);
    expect(typical(of12, (one) => one.countryPredictsBest)).toBeLessThan(0.7);
  });

  it("give a crawler chosen at random little chance", () => {
    expect(typical(of12, (one) => one.randomWithin5Ms)).toBeLessThan(0.15);
  });
});

describe("instanceFigures", () => {
  it("counts by hand what can be counted by hand", () => {
    const host = (cc: string) => ({ path: ["root", cc], org: cc, cc });
    const figures = instanceFigures({
      name: "three crawlers",
      unit: "ms RTT",
      crawlers: [host("AA"), host("AA"), host("BB")],
      crawlerRtt: [
        [0, 10, 100],
        [10, 0, 100],
        [100, 100, 0],
      ],
      targets: [
        // Best is 0, runner-up 1; 10 + 10 < 25 is one violated triangle of three.
        { ...host("AA"), rtt: [10, 25, 105] },
        { ...host("AA"), rtt: [8, 16, 100] },
        { ...host("BB"), rtt: [90, 95, 12] },
      ],
    });

    expect(figures.triangleViolationShare).toBeCloseTo(1 / 9);
    expect(figures.gapMs.median).toBe(15);
    expect(figures.bestMs).toEqual({ p25: 8, median: 10, p75: 12 });
    expect(figures.countryPredictsBest).toBeCloseTo(2 / 3);
    expect(figures.holderHasOthers).toBeCloseTo(2 / 3);
    expect(figures.sitesPerLeaf).toBeCloseTo(3 / 2);
    // The second best's nearest is the best at the first two; at the third, crawlers 0 and 1 are a pair.
    expect(figures.bestIsNextToSecond).toBeCloseTo(2 / 3);
    // Only 10 ms between 0 and 1 can be the site's own: |10 − 10| and |10 − 8| are below 10 and 8, 88 and 88 are not below 12.
    expect(figures.openAfterBest).toBeCloseTo(2 / 3);
    expect(figures.randomWithin5Ms).toBeCloseTo(1 / 3);
  });
});

describe.skipIf(!hasMatrices)("beside fleets drawn from measured matrices", () => {
  it.each([
    [12, of12],
    [50, of50],
  ] as const)("generated worlds of %i crawlers lie within the spread", (crawlers, generated) => {
    const measured = measuredFleets(crawlers, 6).map((fleet, seed) => instanceFigures(fleet, seed));
    for (const of of [
      (one: WorldFigures) => one.triangleViolationShare,
      (one: WorldFigures) => one.severeViolationShare,
      (one: WorldFigures) => one.bestMs.median,
      (one: WorldFigures) => one.gapMs.median,
      (one: WorldFigures) => one.randomWithin5Ms,
      (one: WorldFigures) => one.randomToBest,
      (one: WorldFigures) => one.fitFindsBest,
      (one: WorldFigures) => one.openAfterBest,
    ]) {
      const values = measured.map(of);
      expect(typical(generated, of), String(of)).toBeGreaterThan(0.93 * Math.min(...values));
      expect(typical(generated, of), String(of)).toBeLessThan(1.07 * Math.max(...values));
    }
  });
});

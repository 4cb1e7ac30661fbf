import { describe, expect, it } from "vitest";
import { worldInstance } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import {
  fixedSource,
  generatedSource,
  noNoise,
  repeatPolicies,
  seedsFrom,
  spreadOf,
  spreadText,
} from "./repeat-policies.ts";

const size = { crawlers: 6, sites: 80 };

describe("policies over several seeds", () => {
  const variants = [{ policy: "random" }, { policy: "nearest" }] as const;
  const seeds = seedsFrom(3, 4);

  it("run on other worlds where the world is generated, and mean and bounds fit the runs", () => {
    const [random, nearest] = repeatPolicies({
      source: generatedSource(size),
      variants,
      seeds,
      noise: noNoise,
    });

    const shares = nearest!.results.map((result) => result.within5msPct);
    expect(new Set(shares).size).toBeGreaterThan(1);
    expect(nearest!.figures.within5msPct.mean).toBeCloseTo(shares.reduce((a, b) => a + b) / 4, 3);
    expect(nearest!.figures.within5msPct.least).toBe(Math.min(...shares));
    expect(nearest!.figures.within5msPct.most).toBe(Math.max(...shares));
    expect(random!.figures.meanExcessMs.least).toBeGreaterThan(nearest!.figures.meanExcessMs.most);
  });

  it("run in other orders where the targets are given", () => {
    const instance = worldInstance(generateWorld({ ...size, seed: 4 }));

    const [, nearest] = repeatPolicies({
      source: fixedSource(instance, "unknown"),
      variants,
      seeds,
      noise: noNoise,
    });

    const orders = new Set(nearest!.results.map((result) => result.arrival.join()));
    expect(orders.size).toBe(4);
  });
});

describe("a spread", () => {
  it("is written with its bounds where they differ, and without where they do not", () => {
    expect(spreadText(spreadOf([95, 97, 96]), 1)).toBe("96.0 (95.0 to 97.0)");
    expect(spreadText(spreadOf([2.001, 2.002]), 2)).toBe("2.00");
    expect(spreadText(spreadOf([]), 1)).toBe("0.0");
  });
});

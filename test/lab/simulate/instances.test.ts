/** Instances from a delay space, and instances by name. */
import { describe, expect, it } from "vitest";
import { delaySpaceInstance } from "./instances/delay-space.ts";
import { parseInstanceName } from "./instances/named-instance.ts";

/** With all rows read. */
function made(seed: number) {
  const { crawlers, crawlerRtt, targets } = delaySpaceInstance({ crawlers: 12, sites: 60, seed });
  return {
    crawlers,
    crawlerRtt,
    targets: targets.map(({ path, org, cc, rtt }) => ({ path, org, cc, rtt: Array.from(rtt) })),
  };
}

describe("an instance from a delay space", () => {
  const instance = made(7);

  it("is the same for the same seed, and another for another", () => {
    expect(made(7)).toEqual(instance);
    expect(made(8)).not.toEqual(instance);
  });

  it("has as many crawlers and sites as asked for, each with a place in a tree", () => {
    expect(instance.crawlers).toHaveLength(12);
    expect(instance.targets).toHaveLength(60);
    for (const { path, cc } of [...instance.crawlers, ...instance.targets]) {
      expect(path[0]).toBe("root");
      expect(path.length).toBeGreaterThanOrEqual(4);
      expect(path.every((part) => part.length > 0)).toBe(true);
      expect(cc).not.toBe("");
    }
  });

  it("has symmetric round trips that are above 0 between any two hosts and 0 from a crawler to itself", () => {
    instance.crawlerRtt.forEach((row, a) => {
      row.forEach((ms, b) => {
        expect(ms).toBe(instance.crawlerRtt[b]![a]);
        if (a === b) expect(ms).toBe(0);
        else expect(ms).toBeGreaterThan(0.1);
      });
    });
    for (const { rtt } of instance.targets) {
      expect(rtt).toHaveLength(12);
      expect(Math.min(...rtt)).toBeGreaterThan(0.1);
      expect(Math.max(...rtt)).toBeLessThan(3000);
    }
  });
});

describe("the name of an instance", () => {
  it("is a family, a number of crawlers, and perhaps a seed", () => {
    expect(parseInstanceName("world:50:7")).toMatchObject({ crawlers: 50, seed: 7 });
    expect(parseInstanceName("delay-space:1300")).toMatchObject({ crawlers: 1300, seed: null });
  });

  it.each([
    "towns:5",
    "world",
    "world:2001:1",
    "world:5:4294967296",
    "world:5:-1",
    "world:5:1:1",
    "world:0x5:1",
  ])("%s is refused", (text) => {
    expect(() => parseInstanceName(text)).toThrow(`--instance "${text}": world or delay-space:crawlers`);
  });
});

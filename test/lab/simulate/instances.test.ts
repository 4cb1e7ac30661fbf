/** The families of instances: the same for the same seed, symmetric, and as hard as they say. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import type { SimulationInstance } from "#coordinator/place/delegation/simulation/simulation";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { delaySpaceInstance } from "./instances/delay-space.ts";
import { drawnFleet, type InstanceSize } from "./instances/drawn-fleet.ts";
import { parseInstanceName, parseLatencyMatrix, readLatencyMatrix } from "./instances/named-instance.ts";

/** Ten nodes on a line, 10 ms apart. */
const line = Array.from({ length: 10 }, (_, a) => Array.from({ length: 10 }, (_, b) => 10 * Math.abs(a - b)));

const families: Readonly<Record<string, (size: InstanceSize) => SimulationInstance>> = {
  "delay-space": delaySpaceInstance,
  "drawn, nodes": (size) => drawnFleet(line, { ...size, tree: "nodes" }),
  "drawn, loose": (size) => drawnFleet(line, { ...size, tree: "loose" }),
};

/** With all rows read. */
function whole({ crawlers, crawlerRtt, targets }: SimulationInstance) {
  return {
    crawlers,
    crawlerRtt,
    targets: targets.map(({ path, org, cc, rtt }) => ({ path, org, cc, rtt: Array.from(rtt) })),
  };
}

describe.each(Object.keys(families))("an instance of the family %s", (name) => {
  const make = families[name]!;
  const instance = whole(make({ crawlers: 12, sites: 60, seed: 7 }));

  it("is the same for the same seed, and another for another", () => {
    expect(whole(make({ crawlers: 12, sites: 60, seed: 7 }))).toEqual(instance);
    expect(whole(make({ crawlers: 12, sites: 60, seed: 8 }))).not.toEqual(instance);
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

describe("a fleet drawn from a matrix", () => {
  it("keeps copies of a node near and apart, and other nodes about as far as measured", () => {
    const { crawlers, crawlerRtt } = drawnFleet(line, { crawlers: 60, sites: 1, seed: 2, tree: "nodes" });
    const nearest = crawlerRtt.map((row, index) => Math.min(...row.filter((_, other) => other !== index)));

    expect(crawlers).toHaveLength(60);
    expect(Math.min(...nearest)).toBeGreaterThan(0.2);
    expect(Math.max(...nearest)).toBeLessThan(12);
    expect(Math.max(...crawlerRtt.flat())).toBeGreaterThan(70);
    expect(Math.max(...crawlerRtt.flat())).toBeLessThan(130);
  });
});

describe("a matrix in a file", () => {
  const folder = temporaryFolder("nearcrawl-matrix-");
  afterAll(() => rmSync(folder, { recursive: true }));

  it("is read from gzipped text", async () => {
    const file = join(folder, "two.gz");
    writeFileSync(file, gzipSync("0\t1.5\n1.5\t0\n"));

    expect(await readLatencyMatrix(file)).toEqual([
      [0, 1.5],
      [1.5, 0],
    ]);
  });

  it("is refused with file, line and value where it is none", () => {
    const refused = (text: string) => () => parseLatencyMatrix(text, "m.gz");

    expect(refused("0 1\n1")).toThrow("m.gz:2: 1 values for 2 rows");
    expect(refused("0 x1\n1 0")).toThrow('m.gz:1: "x1" is no round trip in ms');
    expect(refused("0 -1\n-1 0")).toThrow('m.gz:1: "-1" is no round trip in ms');
    expect(refused("0 1e99\n1 0")).toThrow('m.gz:1: "1e99" is no round trip in ms');
    expect(refused("0 1\n2 0")).toThrow("m.gz:2: value 1 is 2, the other way round 1");
    expect(refused("0 1\n1 3")).toThrow("m.gz:2: value 2 is 3, from a node to itself");
    expect(refused("")).toThrow('m.gz:1: "" is no round trip in ms');
  });

  it("is refused where the file is missing, not packed, or unpacks to too much", async () => {
    const plain = join(folder, "plain.gz");
    writeFileSync(plain, "0 1\n1 0\n");
    const bomb = join(folder, "bomb.gz");
    writeFileSync(bomb, gzipSync(Buffer.alloc(140 * 1024 * 1024)));
    mkdirSync(join(folder, "folder.gz"));

    for (const file of [join(folder, "none.gz"), plain, bomb, join(folder, "folder.gz")]) {
      await expect(readLatencyMatrix(file)).rejects.toThrow(`${file}: cannot be read`);
    }
  });
});

describe("the name of an instance", () => {
  it("is a family, a number of crawlers, and perhaps a seed", () => {
    expect(parseInstanceName("world:50:7")).toMatchObject({ crawlers: 50, seed: 7 });
    expect(parseInstanceName("delay-space:1300")).toMatchObject({ crawlers: 1300, seed: null });
    expect(parseInstanceName("world:12:0").family.tuning).toBe("kind");
    expect(parseInstanceName("delay-space:12:0").family.tuning).toBe("none");
  });

  it.each([
    ["towns:5", '"towns" is no family of instances: world, delay-space'],
    ["world", 'crawlers is "": must be a whole number from 1 to 2000'],
    ["world:2001:1", 'crawlers is "2001"'],
    ["world:5:4294967296", 'seed is "4294967296": must be a whole number from 0 to 4294967295'],
    ["world:5:-1", 'seed is "-1"'],
    ["world:5:1:1", "family:crawlers:seed is expected"],
    ["world:0x5:1", 'crawlers is "0x5"'],
  ])("%s is refused", (text, words) => {
    expect(() => parseInstanceName(text)).toThrow(words);
  });
});

/** The families of instances: the same for the same seed, symmetric, and as hard as they say. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import { citiesInstance } from "#ops/simulate/instances/cities";
import { drawNetworks } from "#ops/simulate/instances/city-networks";
import { cities, kilometres } from "#ops/simulate/instances/city-table";
import { delaySpaceInstance } from "#ops/simulate/instances/delay-space";
import { drawnFleet } from "#ops/simulate/instances/drawn-fleet";
import type { InstanceSize } from "#ops/simulate/instances/drawn-instance";
import { parseLatencyMatrix, readLatencyMatrix } from "#ops/simulate/instances/latency-matrix";
import { instanceFamilies, parseInstanceName } from "#ops/simulate/instances/named-instance";
import { instanceFigures } from "#ops/world/figures";
import { SeededRandom } from "#ops/world/seeded-random";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** Ten nodes on a line, 10 ms apart. */
const line = Array.from({ length: 10 }, (_, a) => Array.from({ length: 10 }, (_, b) => 10 * Math.abs(a - b)));

const families: Readonly<Record<string, (size: InstanceSize) => SimulationInstance>> = {
  cities: citiesInstance,
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

  it("gives a row anew at each reading, the same each time", () => {
    const { targets } = make({ crawlers: 12, sites: 60, seed: 7 });

    expect(Array.from(targets[5]!.rtt)).toEqual(Array.from(targets[5]!.rtt));
  });
});

describe.each(["cities", "delay-space"])("the family %s", (name) => {
  it("breaks some triangles, and its tree tells something and not all", () => {
    const made = whole(families[name]!({ crawlers: 50, sites: 600, seed: 4 }));

    const figures = instanceFigures({ name: "", unit: "ms RTT", ...made });

    expect(figures.triangleViolationShare).toBeGreaterThan(0.03);
    expect(figures.triangleViolationShare).toBeLessThan(0.4);
    expect(figures.countryPredictsBest).toBeGreaterThan(0.05);
    expect(figures.countryPredictsBest).toBeLessThan(0.95);
  });
});

describe("networks over cities", () => {
  const networks = drawNetworks(new SeededRandom(3), 3);

  it("knows some hundred cities, each once, on the globe", () => {
    expect(cities.length).toBeGreaterThan(100);
    expect(new Set(cities.map(({ name }) => name)).size).toBe(cities.length);
    for (const { name, country, latitude, longitude, millions } of cities) {
      expect(country, name).toMatch(/^[A-Z]{2}$/);
      expect(Math.abs(latitude), name).toBeLessThan(65);
      expect(Math.abs(longitude), name).toBeLessThanOrEqual(180);
      expect(millions, name).toBeGreaterThan(0.5);
    }
    const [london, paris] = ["London", "Paris"].map((one) => cities.find(({ name }) => name === one)!);
    expect(kilometres(london!, paris!)).toBeGreaterThan(320);
    expect(kilometres(london!, paris!)).toBeLessThan(370);
  });

  it("reaches every network from every other, no faster than light in glass", () => {
    const spots = networks.networks.map(({ cities: at }, network) => ({ network, city: at[0]! }));

    for (const from of spots.filter((_, index) => index % 7 === 0)) {
      for (const to of spots) {
        const straightMs = kilometres(cities[from.city]!, cities[to.city]!) / 200;
        expect(networks.onewayMs(from, to)).toBeGreaterThanOrEqual(straightMs);
        expect(networks.onewayMs(from, to)).toBeLessThan(500);
      }
    }
  });

  it("takes another way back where networks hand over early", () => {
    const spots = networks.networks.map(({ cities: at }, network) => ({ network, city: at[0]! }));
    const pairs = spots.slice(60, 120).map((spot, index) => [spot, spots[index + 120]!] as const);

    const differing = pairs.filter(
      ([a, b]) => Math.abs(networks.onewayMs(a, b) - networks.onewayMs(b, a)) > 0.5,
    );

    expect(differing.length).toBeGreaterThan(10);
  });

  it("has routes without valleys: once down to a customer or over to a peer, never up or over again", () => {
    const numbers = networks.networks.map((_, index) => index);
    const used = new Set<string>();

    for (const from of numbers.filter((one) => one % 5 === 0)) {
      for (const to of numbers) {
        const on = networks.route(from, to);
        const steps = on.slice(1).map((next, hop) => networks.relation(on[hop]!, next)!);
        expect(on.length).toBe(new Set(on).size);
        expect(steps.map((step) => step.charAt(1)).join("")).toMatch(/^r*e?u*$/);
        for (const step of steps) used.add(step);
      }
    }
    expect([...used].sort()).toEqual(["customer", "peer", "provider"]);
  });

  it("prefers, among transit, whom many buy from already: a few sell most of it", () => {
    const customers = networks.networks.map(
      (_, seller) =>
        networks.networks.filter((_, other) => networks.relation(seller, other) === "customer").length,
    );
    const most = customers.toSorted((a, b) => b - a);
    const sold = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

    expect(sold(most.slice(0, 6)) / sold(most)).toBeGreaterThan(0.6);
  });

  it("gives round trips of both ways", () => {
    const spots = networks.networks.map(({ cities: at }, network) => ({ network, city: at[0]! }));
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const onewayMs = mean(
      spots.flatMap((from) => spots.map((to) => networks.onewayMs(from, to)).filter((ms) => ms > 0)),
    );

    const { targets } = citiesInstance({ crawlers: 40, sites: 100, seed: 3 });

    const ratio = mean(targets.flatMap(({ rtt }) => Array.from(rtt))) / onewayMs;
    expect(ratio).toBeGreaterThan(1.5);
    expect(ratio).toBeLessThan(3);
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
    expect(parseInstanceName("cities:50:7")).toMatchObject({ crawlers: 50, seed: 7 });
    expect(parseInstanceName("delay-space:1300")).toMatchObject({ crawlers: 1300, seed: null });
    expect(parseInstanceName("world:12:0").family.tuning).toBe("kind");
    expect(parseInstanceName("cities:12:0").family.tuning).toBe("none");
  });

  it("says of every family what nothing was tuned on, as its source does", () => {
    for (const family of instanceFamilies) {
      expect(family.source({ crawlers: 2, sites: 2 }, line).tuning).toBe(family.tuning);
    }
  });

  it.each([
    ["towns:5", '"towns" is no family of instances: world, cities, delay-space'],
    ["cities", 'crawlers is "": must be a whole number from 1 to 2000'],
    ["cities:2001:1", 'crawlers is "2001"'],
    ["cities:5:4294967296", 'seed is "4294967296": must be a whole number from 0 to 4294967295'],
    ["cities:5:-1", 'seed is "-1"'],
    ["cities:5:1:1", "family:crawlers:seed is expected"],
    ["cities:0x5:1", 'crawlers is "0x5"'],
  ])("%s is refused", (text, words) => {
    expect(() => parseInstanceName(text)).toThrow(words);
  });
});

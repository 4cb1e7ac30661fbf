import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { PolicyName } from "#coordinator/place/delegation/policies/policies";
import {
  figuresOf,
  PathNumbers,
  type SimulationInstance,
  simulateDelegation,
  simulatePolicies,
} from "#coordinator/place/delegation/simulation/simulation";
import { seededRandom } from "#core/random";
import { parseFixture } from "../../lab/simulate/measured.ts";
import { sharedData } from "../../support/shared-data.ts";

const threePlaces = read(new URL("../../fixtures/latency/three-places.json", import.meta.url).pathname);

function read(path: string): SimulationInstance {
  return parseFixture(readFileSync(path, "utf8"), path);
}

/** Crawlers and targets in clusters on a plane of 150 × 150 ms; a tenth of the targets is registered elsewhere. */
function clusteredInstance(seed: number, crawlers: number, targets: number): SimulationInstance {
  const draw = seededRandom(seed);
  const towns = Array.from({ length: 12 }, () => [draw() * 150, draw() * 150] as const);
  const host = (index: number) => {
    const town = Math.floor(draw() * towns.length);
    const registered = draw() < 0.1 ? Math.floor(draw() * towns.length) : town;
    const [x, y] = towns[town]!;
    return {
      path: ["root", `${registered % 5}`, `town ${registered}`, `leaf ${index}`],
      org: `org ${registered}-${index % 7}`,
      cc: `c${registered % 4}`,
      at: [x + draw() * 5, y + draw() * 5] as const,
    };
  };
  const rtt = (a: readonly [number, number], b: readonly [number, number]) =>
    Math.hypot(a[0] - b[0], a[1] - b[1]) * (1 + 0.2 * draw()) + 0.5;
  const fleet = Array.from({ length: crawlers }, (_, index) => host(index));
  const sites = Array.from({ length: targets }, (_, index) => host(crawlers + index));
  return {
    crawlers: fleet,
    crawlerRtt: fleet.map((a) => fleet.map((b) => rtt(a.at, b.at))),
    targets: sites.map((site) => ({ ...site, rtt: fleet.map((crawler) => rtt(crawler.at, site.at)) })),
  };
}

const [first] = threePlaces.targets;
const oneLeaf = { ...threePlaces, targets: [first!, first!, first!] };

describe("a simulated run", () => {
  it.each(["exhaustive", "ipmicra", "nearest"] as const)(
    "of %s gives further targets in a delegated leaf to its owner, without a probe",
    (policy) => {
      const { chosen, probes } = simulateDelegation(oneLeaf, { policy });

      expect(new Set(chosen).size).toBe(1);
      expect(probes.filter((count) => count === 0).length).toBeGreaterThanOrEqual(2);
    },
  );

  it("gives figures that can be checked by hand: three places, six targets", () => {
    // The last target has a tie between the first two crawlers; the earlier one gets it.
    expect(simulateDelegation(threePlaces, { policy: "exhaustive" })).toEqual({
      ...{ policy: "exhaustive", crawlers: 3, targets: 6 },
      ...{ optimalPct: 100, within2msPct: 100, within5msPct: 100, meanExcessMs: 0, p95ExcessMs: 0 },
      ...{ probesPerUrl: 3, p95ProbesPerUrl: 3, probesPerUrlLast50: 3 },
      ...{ chosen: [0, 0, 1, 1, 2, 0], probes: [3, 3, 3, 3, 3, 3] },
      ...{ rttsMs: [4, 6, 3, 3, 9, 7], bestRttsMs: [4, 6, 3, 3, 9, 7] },
      arrival: expect.toSatisfy((order: number[]) => order.toSorted().join() === "0,1,2,3,4,5"),
    });
  });

  it("counts the first observation as free with get-first, and changes nothing else", () => {
    const instance = clusteredInstance(1, 10, 200);

    const paid = simulateDelegation(instance, { policy: "nearest" });
    const free = simulateDelegation(instance, { policy: "nearest", parameters: { getFirst: true } });

    expect(free.chosen).toEqual(paid.chosen);
    expect(free.probesPerUrl).toBeCloseTo(paid.probesPerUrl - 1, 4);
  });

  it("gives several policies side by side the figures that each gets alone, and makes each target's RTTs once", () => {
    const instance = clusteredInstance(4, 10, 200);
    let rows = 0;
    const targets = instance.targets.map((target) => ({
      ...target,
      get rtt() {
        rows += 1;
        return target.rtt;
      },
    }));
    const variants = [
      { policy: "random" },
      { policy: "ipmicra", parameters: { thresholdMs: 25 } },
      { policy: "nearest", parameters: { getFirst: true } },
    ] as const;
    rows = 0;

    const together = simulatePolicies({ ...instance, targets }, variants, { seed: 8 });

    expect(rows).toBe(200);
    expect(together).toEqual(
      variants.map((variant) => simulateDelegation(instance, { ...variant, seed: 8 })),
    );
  });

  it("judges decisions from observed RTTs by the undisturbed ones", () => {
    const observe = ({ crawler }: { crawler: number }) => ({ rttMs: crawler === 2 ? 1 : 100 });

    const result = simulateDelegation(threePlaces, { policy: "exhaustive", observe });

    expect(result.chosen).toEqual([2, 2, 2, 2, 2, 2]);
    expect(result.optimalPct).toBeLessThan(50);
    expect(result.meanExcessMs).toBeGreaterThan(5);
  });

  it("tries a leaf again that nobody could measure, and learns nothing from the guess", () => {
    const observe = () => ({ failed: "lost" });

    expect(simulateDelegation(oneLeaf, { policy: "exhaustive", observe }).probes).toEqual([3, 3, 3]);
  });

  it.each([1, 2, 3, 4, 5])(
    "orders the policies as the paper does, on a clustered world (seed %i)",
    (seed) => {
      const instance = clusteredInstance(seed, 12, 300);
      const run = (policy: PolicyName) => simulateDelegation(instance, { policy });
      const [random, ipmicra, nearest] = [run("random"), run("ipmicra"), run("nearest")];

      expect(random.probesPerUrl).toBe(0);
      expect(run("exhaustive")).toMatchObject({ probesPerUrl: 12, optimalPct: 100 });
      expect(random.meanExcessMs).toBeGreaterThan(2 * ipmicra.meanExcessMs);
      expect(ipmicra.meanExcessMs).toBeGreaterThan(nearest.meanExcessMs);
      expect(nearest.within5msPct).toBeGreaterThan(97);
      expect(nearest.probesPerUrl).toBeLessThan(4);
      expect(simulateDelegation(instance, { policy: "ipmicra", seed: 6 }).probes).not.toEqual(ipmicra.probes);
    },
  );

  it("works with one crawler, and with crawlers whose distances are all 0", () => {
    const blind = { ...threePlaces, crawlerRtt: threePlaces.crawlerRtt.map((row) => row.map(() => 0)) };

    const alone = simulateDelegation(clusteredInstance(3, 1, 20), { policy: "nearest" });
    expect(alone).toMatchObject({ probesPerUrl: 0, optimalPct: 100 });
    expect(simulateDelegation(blind, { policy: "nearest" }).targets).toBe(6);
  });

  it("distinguishes equal names under different parents", () => {
    const paths = new PathNumbers();
    const [a, b] = ["x", "y"].map((name) => paths.numbersAlong(["root", name, "leaf"]));

    expect([a![0] === b![0], a![2] === b![2]]).toEqual([true, false]);
    expect(paths.numbersAlong(["root", "x", "leaf"])).toEqual(a);
  });
});

it("figures take means over all and over the last 50, and the nearest rank for 95 %", () => {
  const rounds = Array.from({ length: 100 }, (_, index) => ({
    ...{ probes: index < 50 ? 4 : 2, rttMs: index, bestRttMs: 0 },
  }));

  expect(figuresOf(rounds)).toEqual({
    ...{ optimalPct: 1, within2msPct: 3, within5msPct: 6, meanExcessMs: 49.5, p95ExcessMs: 94 },
    ...{ probesPerUrl: 3, p95ProbesPerUrl: 4, probesPerUrlLast50: 2 },
  });
  // 20.1 − 15.1 is a little more than 5 in floating point.
  const near = [20.1, 20.2].map((rttMs) => ({ probes: 1, rttMs, bestRttMs: 15.1 }));
  expect(figuresOf(near).within5msPct).toBe(50);
});

/** Data, policy, threshold; the least and most per cent within 5 ms of the best, and the most probes a URL. */
const measured = [
  ["latency/PL12.json", "nearest", 50, 99, 100, 2.8],
  ["latency/PL50.json", "nearest", 50, 95, 100, 2.9],
  ["latency/PL12.json", "ipmicra", 50, 88, 92, 1.8],
  ["latency/PL12.json", "ipmicra", 25, 93, 97, 3.3],
  ["latency/PL50.json", "ipmicra", 50, 77, 81, 2.9],
  ["latency/PL50.json", "ipmicra", 25, 87, 91, 6.4],
] as const;

describe.each(measured)(
  "on measured RTTs of %s",
  (file, policy, thresholdMs, leastPct, mostPct, mostProbes) => {
    const path = sharedData(file);

    it.skipIf(path === null)(
      `${policy} at ${thresholdMs} ms is near the best for ${leastPct} to ${mostPct} % at ${mostProbes} probes or fewer`,
      () => {
        const result = simulateDelegation(read(path!), { policy, parameters: { thresholdMs } });

        expect(result.within5msPct).toBeGreaterThanOrEqual(leastPct);
        expect(result.within5msPct).toBeLessThanOrEqual(mostPct);
        expect(result.probesPerUrl).toBeLessThanOrEqual(mostProbes);
      },
    );
  },
);

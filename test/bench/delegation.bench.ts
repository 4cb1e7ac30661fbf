/**
 * Delegation: accuracy against probes over many seeds, CPU time of a decision against a round that only looks up
 * who owns the holder (ipmicra at a threshold that any answer meets), and memory of what is remembered
 * against the obvious nested maps. Run: npm run bench -- delegation
 */
import { readFileSync } from "node:fs";
import { candidateFleet, type MeasuredPeer, PeerRttTable } from "#core/delegation/fleet";
import { backOffLevels, DelegationKnowledge } from "#core/delegation/knowledge";
import type { Placement } from "#core/delegation/placement";
import { nextStep, observe, startRound } from "#core/delegation/probe-round";
import { defaultParameters, type PolicyName } from "#core/delegation/round";
import { simulateDelegation } from "#core/delegation/simulation";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/seeded-random";
import { parseFixture } from "#ops/simulate/read-fixture";
import { sharedData } from "../support/shared-data.ts";

const seeds = 40;
const decisions = 20_000;
const repetitions = 5;
const subnets = 1_000_000;

for (const file of ["latency/PL12.json", "latency/PL50.json"]) {
  const path = sharedData(file);
  if (path !== null) measureAccuracy(file, path);
}
for (const crawlers of [12, 50, 200]) measureCpu(crawlers);
measureMemory();

function measureAccuracy(file: string, path: string): void {
  const instance = parseFixture(readFileSync(path, "utf8"), path);
  const variants = [
    { name: "ipmicra 50 ms", policy: "ipmicra", parameters: {} },
    { name: "ipmicra 25 ms", policy: "ipmicra", parameters: { thresholdMs: 25 } },
    { name: "nearest", policy: "nearest", parameters: {} },
    { name: "nearest, λ 0.03", policy: "nearest", parameters: { lambdaMs: 0.03 } },
    { name: "nearest, λ 0.3", policy: "nearest", parameters: { lambdaMs: 0.3 } },
    { name: "nearest, get-first", policy: "nearest", parameters: { getFirst: true } },
  ] as const;
  console.log(`\n${file}, ${seeds} seeds: mean (5th to 95th percentile of the seeds; default seed)`);
  for (const { name, policy, parameters } of variants) {
    const runs = Array.from({ length: seeds }, (_, index) =>
      simulateDelegation(instance, { policy, parameters, seed: index + 1 }),
    );
    const within = spread(runs.map((run) => run.within5msPct));
    const best = spread(runs.map((run) => run.optimalPct));
    const probes = spread(runs.map((run) => run.probesPerUrl));
    console.log(`${name.padEnd(20)} within 5 ms ${within} % · best ${best} % · probes ${probes}`);
  }
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] as number).toFixed(2);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return `${mean.toFixed(2)} (${at(0.05)} to ${at(0.95)}; ${(values[0] as number).toFixed(2)})`;
}

function measureCpu(crawlers: number): void {
  const world = flatWorld(crawlers);
  const run = (policy: PolicyName, thresholdMs: number) =>
    Array.from({ length: repetitions }, () => microsecondsPerDecision(world, policy, thresholdMs)).toSorted(
      (a, b) => a - b,
    );
  const baseline = run("ipmicra", 1e6);
  const nearest = run("nearest", 50);
  const middle = (sorted: readonly number[]) => sorted[sorted.length >> 1] as number;
  const range = (sorted: readonly number[]) =>
    `${middle(sorted).toFixed(1)} µs (${sorted[0]?.toFixed(1)} to ${sorted.at(-1)?.toFixed(1)})`;
  const ratio = (middle(nearest) / middle(baseline)).toFixed(1);
  console.log(
    `${crawlers} crawlers: nearest ${range(nearest)}, one look-up ${range(baseline)}, ratio ${ratio}`,
  );
}

type World = ReturnType<typeof flatWorld>;

/** Crawlers on a plane of 250 × 250 ms; targets beside a random one, registered in its neighbourhood. */
function flatWorld(crawlers: number) {
  const random = seededRandom(crawlers);
  const spots = Array.from({ length: crawlers }, () => [random() * 250, random() * 250] as const);
  const ids = spots.map((_, index) => asCrawlerId(index + 1));
  const apart = (a: readonly [number, number], b: readonly [number, number]) =>
    Math.hypot(a[0] - b[0], a[1] - b[1]) * (1 + 0.2 * random()) + 1;
  const peers: MeasuredPeer[] = spots.flatMap((a, from) =>
    spots.map((b, to) => ({ from: ids[from]!, to: ids[to]!, rttMs: apart(a, b) })),
  );
  const targets = Array.from({ length: decisions }, (_, index) => {
    const near = Math.floor(random() * crawlers);
    const at = [spots[near]![0] + random() * 20, spots[near]![1] + random() * 20] as const;
    const place: Placement = {
      subnetKey: index,
      holderKey: `h${near}-${Math.floor(random() * 20)}`,
      ancestorKeys: [1e6 + near * 10 + Math.floor(random() * 10), 2e6 + near],
      country: `c${near % 40}`,
      slash8Key: near % 100,
    };
    return { place, rtts: spots.map((spot) => apart(spot, at)) };
  });
  return { ids, peerRtts: new PeerRttTable(peers), targets };
}

function microsecondsPerDecision(world: World, policy: PolicyName, thresholdMs: number): number {
  const knowledge = new DelegationKnowledge();
  const start = process.cpuUsage();
  for (const { place, rtts } of world.targets) {
    let round = startRound(policy, {
      placement: place,
      fleet: candidateFleet(world.ids, world.peerRtts),
      knowledge,
      parameters: { ...defaultParameters, thresholdMs },
    });
    let step = nextStep(round);
    while (step.type === "probe") {
      round = observe(round, step.crawlerId, { rttMs: rtts[step.crawlerId - 1]! });
      step = nextStep(round);
    }
    if (step.type === "decided") knowledge.record(place, step.crawlerId);
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / world.targets.length;
}

function measureMemory(): void {
  const random = seededRandom(7);
  const placeOf = (index: number): Placement => ({
    subnetKey: index,
    holderKey: 1 + Math.floor(random() * (subnets / 3)),
    ancestorKeys: [2_000_000 + (index >> 4), 3_000_000 + (index >> 8)],
    country: `c${index % 200}`,
    slash8Key: index % 220,
  });
  const lean = bytesOf(() => {
    const knowledge = new DelegationKnowledge();
    for (let index = 0; index < subnets; index++) {
      knowledge.record(placeOf(index), asCrawlerId(1 + ((index >> 6) % 200)));
    }
    return knowledge;
  });
  const plain = bytesOf(() => {
    const counts = new Map<string, Map<number, number>>();
    for (let index = 0; index < subnets; index++) {
      for (const { kind, key } of backOffLevels(placeOf(index))) {
        const name = `${kind}:${key}`;
        const owners = counts.get(name) ?? new Map<number, number>();
        counts.set(name, owners);
        const crawler = 1 + ((index >> 6) % 200);
        owners.set(crawler, (owners.get(crawler) ?? 0) + 1);
      }
    }
    return counts;
  });
  console.log(
    `\nmemory of ${subnets} delegated subnets: ${(lean / subnets).toFixed(0)} bytes each, nested maps ${(plain / subnets).toFixed(0)}, ratio ${(plain / lean).toFixed(1)}`,
  );
}

function bytesOf(make: () => object): number {
  const collect = globalThis.gc;
  if (!collect) throw new Error("run with --expose-gc");
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = make();
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  if (Object.keys(kept).length > 1e9) throw new Error("kept alive until here");
  return bytes;
}

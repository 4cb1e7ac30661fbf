/**
 * The cost of a delegation: CPU time of a whole decision, from the address as text to the remembered state, among fleets of 12 to
 * 1,000 crawlers, beside one look-up of an address's owner; and the coordinator's memory per delegated subnet. Probes answer at
 * once and nothing is stored. The tree is nested like the registries' (delegation/registry-world.ts). Run: npm run bench --
 * delegation.bench; or this file alone with the policy (default: nearest) and the size of one fleet.
 */

import type { Placement } from "#coordinator/place/delegation/placement";
import {
  learnFromRound,
  nextStep,
  observe,
  policyNames,
  startRound,
} from "#coordinator/place/delegation/policies/policies";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { stateWith } from "./delegation/delegated-state.ts";
import { liveRounds } from "./delegation/live-rounds.ts";
import {
  type Crawlers,
  crawlersIn,
  registryWorld,
  type Target,
  targetsIn,
} from "./delegation/registry-world.ts";
import { cpuUs, figure, median, spread } from "./figure.ts";

const policy = policyNames.find((name) => name === process.argv[2]) ?? "nearest";
const fleets = process.argv[3] ? [Number(process.argv[3])] : [12, 50, 200, 1000, 3000, 10_000];
const subnets = 1_500_000;
const delegatedBefore = 200_000;
const runs = 5;
const delegated = 1_000_000;

let probes = 0;
let decisions = 0;
const chosen: { readonly crawlerId: CrawlerId; readonly answersMs: Float32Array }[] = [];
const noAnswers = new Float32Array();
const world = registryWorld(subnets, 20260301);
console.log(`${world.tree.size} subnets, policy ${policy}, ${runs} runs`);
for (const count of fleets) await measureCpu(count);
if (process.argv[3] === undefined) measureMemory();

async function measureCpu(count: number): Promise<void> {
  const crawlers = crawlersIn(count);
  const decisionsPerRun = count > 1000 ? 200 : count > 200 ? 500 : 2000;
  const state = stateWith(world, crawlers, delegatedBefore);
  const taken = new Set([...state.delegationTable].map(({ subnetId }) => subnetId));
  const targets = targetsIn(world, 4 * (runs + 1) * decisionsPerRun, taken);
  // The later half of the targets is measured.
  const answersMs = targets.map(({ number }, at) =>
    at < 2 * (runs + 1) * decisionsPerRun ? noAnswers : answersTo(number, crawlers),
  );
  const live = liveRounds(state, crawlers, policy);
  const ways = {
    "one look-up": (at: number) => lookUp(state, targets[at]!),
    "tree and state": (at: number) => rememberOnly(state, targets[at]!, crawlers.ids),
    decision: (at: number) => decide(state, targets[at]!, crawlers.ids, answersMs[at]!),
    "live round": (at: number) => live(targets[at]!, answersMs[at]!),
  };
  const times = Object.keys(ways).map((): number[] => []);
  const single = Object.keys(ways).map((): number[] => []);
  for (let run = 0; run <= runs; run += 1) {
    for (const [way, once] of Object.values(ways).entries()) {
      // Every method has its own targets: a delegated subnet is not decided again.
      const first = (way * (runs + 1) + run) * decisionsPerRun;
      const start = cpuUs();
      let before = start;
      for (let at = first; at < first + decisionsPerRun; at += 1) {
        await once(at);
        // A look-up takes less time than reading the clock.
        if (way < 2) continue;
        const after = cpuUs();
        if (run > 0) single[way]!.push(after - before);
        before = after;
      }
      if (run > 0) times[way]!.push((cpuUs() - start) / decisionsPerRun);
    }
  }
  console.log(`\n${count} crawlers, µs of CPU time, median (lowest to highest):`);
  Object.keys(ways).forEach((name, way) => {
    const ratio = (median(times[way]!) / median(times[0]!)).toFixed(1);
    const each = single[way]!.toSorted((a, b) => a - b);
    const [half, most] = [0.5, 0.95].map((share) => each[Math.floor(share * each.length)]);
    figure(`${name}, ${count} crawlers`, median(times[way]!), "µs CPU");
    const spreadOfEach = half === undefined ? "" : `, of single ones the median ${half}, 95 % within ${most}`;
    console.log(`${name.padEnd(16)} ${spread(times[way]!)}, ratio ${ratio}${spreadOfEach}`);
  });
  // Excess RTT of the chosen crawlers over the nearest.
  const off = chosen.map(
    ({ crawlerId, answersMs }) =>
      answersMs[crawlerId - 1]! - answersMs.reduce((least, ms) => Math.min(least, ms)),
  );
  const meanMs = off.reduce((sum, ms) => sum + ms, 0) / off.length;
  console.log(
    `probes per decision ${(probes / decisions).toFixed(2)}; slower than the best by ${meanMs.toFixed(2)} ms on average, ` +
      `within 5 ms of it ${((100 * off.filter((ms) => ms <= 5).length) / off.length).toFixed(1)} %`,
  );
  const matrix = state.peerRtts;
  console.log(
    `RTTs between crawlers: ${matrix.entries} entries, ${(matrix.bytes / 1e6).toFixed(1)} MB; past subnets kept ${state.learnedRtts("connect").size}`,
  );
  chosen.length = 0;
  probes = 0;
  decisions = 0;
}

function answersTo(address: number, { ids, rttMs }: Crawlers): Float32Array {
  return Float32Array.from(ids, (_, index) => rttMs(index, address));
}

function lookUp(state: CoordinatorState, target: Target): CrawlerId | null {
  const subnetId = state.subnetOf(target.address);
  return subnetId === null ? null : state.ownerOf(subnetId);
}

/** A decision without the policy: its cost if the crawler were known. */
function rememberOnly(state: CoordinatorState, target: Target, online: readonly CrawlerId[]): void {
  if (lookUp(state, target) !== null) return;
  const subnetId = state.subnetOf(target.address) as SubnetId;
  state.placementOf(subnetId);
  state.fleetOf(online.slice());
  const crawlerId = online[subnetId % online.length]!;
  state.setDelegation({
    subnetId,
    crawlerId,
    measured: true,
    rttMs: 9,
    runnerUpId: null,
    runnerUpRttMs: null,
  });
}

function decide(
  state: CoordinatorState,
  target: Target,
  online: readonly CrawlerId[],
  answersMs: Float32Array,
): void {
  const subnetId = state.subnetOf(target.address) as SubnetId;
  if (state.delegationOf(subnetId) !== null) return;
  let round = startRound(policy, {
    placement: state.placementOf(subnetId) as Placement,
    fleet: state.fleetOf(online.slice()),
    knowledge: state.knowledge,
    learned: state.learnedRtts("connect"),
    parameters: defaultParameters,
    random: 0.5,
  });
  let step = nextStep(round);
  for (; step.type === "probe"; step = nextStep(round)) {
    round = observe(round, step.crawlerId, { rttMs: answersMs[step.crawlerId - 1]! });
    probes += 1;
  }
  decisions += 1;
  if (step.type === "nobody") throw new Error("nobody");
  learnFromRound(round);
  chosen.push({ crawlerId: step.crawlerId, answersMs });
  const { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = step;
  state.setDelegation({ subnetId, crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs });
}

function measureMemory(): void {
  const crawlers = crawlersIn(200);
  const bytes = bytesOf(() => stateWith(world, crawlers, delegated)) / delegated;
  figure("a delegated subnet in the coordinator's state, tree aside", bytes, "bytes");
  console.log(`\n${delegated} delegated subnets, each: ${bytes.toFixed(0)} bytes in the coordinator's state`);
}

/** On the heap and in typed arrays. */
function bytesOf(make: () => object): number {
  const before = bytesInUse();
  const kept = make();
  const bytes = bytesInUse() - before;
  if (Object.keys(kept).length > 1e9) throw new Error("kept alive until here");
  return bytes;
}

function bytesInUse(): number {
  if (!globalThis.gc) throw new Error("run with --expose-gc");
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

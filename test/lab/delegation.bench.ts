/**
 * The cost of a delegation: CPU time of a whole decision, from the address as text to the remembered state, among fleets of 12 to
 * 1,000 crawlers, beside one look-up of an address's owner; and the coordinator's memory per delegated subnet. Probes answer at
 * once and nothing is stored. The tree is nested like the registries' (delegation/registry-world.ts). Run: npm run bench --
 * delegation, optionally followed by the policy (default: nearest) and the size of one fleet.
 */

import { type CrawlerRecord, DayBudget, type PeerRtt, watchRoom } from "#coordinator/place/crawlers/crawler";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import type { Delegation } from "#coordinator/place/delegation/delegation";
import { DelegationTable } from "#coordinator/place/delegation/delegation-table";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { Placement } from "#coordinator/place/delegation/placement";
import {
  learnFromRound,
  nextStep,
  observe,
  type PolicyName,
  policyNames,
  startRound,
} from "#coordinator/place/delegation/policies/policies";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import { delegateSubnet } from "#coordinator/place/delegation/probe-round";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { landmarksOf, neighbourCount } from "#coordinator/place/distances/peers";
import { asRoundId, type CrawlerId, type SubnetId } from "#core/ids";
import { mix32, seededRandom } from "#core/random";
import {
  type Crawlers,
  crawlersIn,
  type RegistryWorld,
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
/** Fleets from this size do not measure all pairs. */
const largestMesh = 724;
const noon = new Date(Date.UTC(2030, 0, 1, 12));
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

// * The live flow's part of a decision: candidates, budgets, deny-lists, detection of anycast, and the stored knowledge. Crawlers
// answer at once and nothing is written.

/** Runs one round for the target with these RTTs to the crawlers, in their order. */
function liveRounds(
  state: CoordinatorState,
  { ids, homes }: Crawlers,
  policy: PolicyName,
): (target: Target, answersMs: Float32Array) => Promise<void> {
  state.setCrawlers(ids.map((crawlerId, index) => recordOf(crawlerId, homes[index]!)));
  const [budget, denied, anycast] = [new DayBudget(), new DeniedTargets(), new AnycastRanges()];
  const now = () => new Date();
  const room = watchRoom(state, budget);
  let answersNowMs: Float32Array;
  const ports = {
    state,
    denied,
    anycast,
    now,
    random: () => 0.5,
    excluded: () => room(now()),
    delegations: { saveRound: async () => asRoundId(1), delegateProvisionally: async () => false },
    fleet: {
      online: () => [...ids],
      probe: async (crawlerId: number) => {
        const rttMs = answersNowMs[crawlerId - 1]!;
        return { type: "measured" as const, method: "connect" as const, rttMs, tries: 3 };
      },
    },
    settings: {
      policy,
      parameters: defaultParameters,
      probe: { method: "connect" as const, tries: 3, deadlineMs: 3000 },
      allowSpecialPurpose: true,
    },
  };
  return async ({ address }, answersMs) => {
    answersNowMs = answersMs;
    const subnetId = state.subnetOf(address) as SubnetId;
    const subnet = { subnetId, url: "http://a.example/", host: "a.example", address };
    await delegateSubnet(subnet, "new-subnet", ports);
  };
}

function recordOf(crawlerId: CrawlerRecord["crawlerId"], home: Crawlers["homes"][number]): CrawlerRecord {
  return {
    ...home,
    crawlerId,
    name: `crawler ${crawlerId}`,
    address: null,
    subnetId: null,
    place: null,
    pagesPerDay: 100_000,
    bytesPerDay: 1e12,
    concurrentHosts: 10,
    probeMethods: ["connect", "head"],
    state: "online",
    lastSeenAt: null,
    offlineReason: null,
    drainingSince: null,
    joiningSince: null,
  };
}

// A coordinator's state during a crawl: subnets of the world, delegated as by the policies.

/** A coordinator with this number of delegations, each to the crawler nearest to its /16. */
function stateWith(world: RegistryWorld, crawlers: Crawlers, count: number): CoordinatorState {
  const state = new CoordinatorState();
  state.setTree(world.tree, 1);
  for (const [index] of crawlers.ids.entries()) state.learnRtts(measuredBy(index, crawlers), noon);
  const table = new DelegationTable();
  for (const delegation of delegationsIn(world, crawlers, count)) table.set(delegation);
  state.setDelegations(table);
  return state;
}

/** This number of different subnets of the world, and their owners. */
function* delegationsIn(
  { columns }: RegistryWorld,
  crawlers: Crawlers,
  count: number,
): Generator<Delegation> {
  const nearest = new Map<number, readonly [first: number, second: number]>();
  const random = seededRandom(count);
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(Math.floor(random() * columns.count));
  for (const place of chosen) {
    const address = columns.first[place] as number;
    const block = address >>> 16;
    const two = nearest.get(block) ?? crawlers.nearestTwo(address);
    nearest.set(block, two);
    // One in ten is delegated to the second nearest.
    const [own, runnerUp] = random() < 0.9 ? two : [two[1], two[0]];
    yield {
      subnetId: (3 * place + 1) as SubnetId,
      crawlerId: crawlers.ids[own]!,
      measured: true,
      rttMs: crawlers.rttMs(own, address),
      runnerUpId: crawlers.ids[runnerUp]!,
      runnerUpRttMs: crawlers.rttMs(runnerUp, address),
    };
  }
}

/** The RTTs that a crawler knows after an hour: to all, or to landmarks, neighbours and a sample. */
function measuredBy(index: number, { ids, peerRttMs, neighbours }: Crawlers): PeerRtt[] {
  const others = ids.length <= largestMesh ? ids.slice(index + 1) : sampled(index, ids, neighbours);
  return [...others].map((to) => ({
    from: ids[index]!,
    to,
    rttMs: peerRttMs(index, to - 1),
    method: "connect" as const,
  }));
}

function sampled(
  index: number,
  ids: readonly CrawlerId[],
  neighbours: Crawlers["neighbours"],
): Set<CrawlerId> {
  const others = new Set(landmarksOf(ids));
  for (const neighbour of neighbours(index, neighbourCount)) others.add(ids[neighbour]!);
  for (let drawn = 0; drawn < 64; drawn++) others.add(ids[mix32(index * 64 + drawn) % ids.length]!);
  others.delete(ids[index]!);
  return others;
}

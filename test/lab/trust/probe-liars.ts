/**
 * Fleets some of whose crawlers say of chosen subnets that they are beside them: what they win and keep, with second
 * witnesses and without, what that costs in probes, and what honest crawlers lose. Rounds are those of the policy `nearest`
 * over instances whose round trips are known, under noise: busy machines, lossy ways, places that have moved, anycast, and
 * targets that half of the fleet cannot reach.
 */

import { type ProbedSubnet, type ProbingFleet, probeLies } from "#coordinator/crawl/trust/probe-plausibility";
import type { Observation } from "#coordinator/place/delegation/policies/round";
import type { ProbeModel } from "#coordinator/place/delegation/simulation/run";
import {
  type SimulationInstance,
  simulateDelegation,
} from "#coordinator/place/delegation/simulation/simulation";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { mix32, seededRandom } from "#core/random";
import { noisyProbes } from "../simulate/repeat-policies.ts";

interface LiarSettings {
  readonly seed: number;
  /** The first so many crawlers lie. */
  readonly liars: number;
  /** Subnets that each chooses: of those that it is asked about and is farther from than the nearest by more than `farMs`. */
  readonly chosenEach: number;
  /** What it says of them, in ms. */
  readonly claimMs: number;
  /** Liars vouch for each other. */
  readonly colluding: boolean;
  /** Every other target is reached by IPv6 alone, which every other crawler does not speak. */
  readonly halfIpv6: boolean;
  readonly hasWitnesses: boolean;
}

export interface LiarFigures {
  readonly chosen: number;
  readonly kept: number;
  /** By how much the liar is farther than the nearest where it keeps one, summed. */
  readonly keptMs: number;
  readonly accusedLiars: number;
  readonly accusedHonest: number;
  readonly targets: number;
  readonly probes: number;
  /** Of targets that nobody lied about: by how much their crawlers are farther than the nearest, summed; and how many. */
  readonly honestExcessMs: number;
  readonly honestTargets: number;
}

/** As far as this off the nearest, a sample of the accuracy asks for a new round. */
const farMs = 20;

const noise = { noiseMs: 3, spikeShare: 0.05, spikeMs: 50, lossShare: 0.05, tries: 6 };
const busyShare = 0.05;
const busyMs = 30;
const movedShare = 0.02;
const anycastShare = 0.02;

export function simulateLiars(quiet: SimulationInstance, settings: LiarSettings): LiarFigures {
  const { seed, liars, chosenEach, claimMs, colluding, halfIpv6, hasWitnesses } = settings;
  const { instance, isBusy } = disturbed(quiet, seed);
  const bestMs = instance.targets.map(({ rtt }) => Math.min(...Array.from(rtt)));
  const measured = noisyProbes(noise, seed);
  const liarOf = new Map<number, number>();
  const chosenBy = new Array<number>(liars).fill(0);
  const asked = new Map<number, { crawler: number; rttMs: number }[]>();
  const said = (probe: Parameters<ProbeModel>[0]): Observation => {
    const { target, crawler, rttMs } = probe;
    const liar = liarOf.get(target);
    if (liar === crawler) return { rttMs: claimMs };
    if (crawler < liars && liar === undefined && rttMs > bestMs[target]! + farMs) {
      if (chosenBy[crawler]! < chosenEach) {
        chosenBy[crawler]! += 1;
        liarOf.set(target, crawler);
        return { rttMs: claimMs };
      }
    }
    if (crawler < liars && liar !== undefined && colluding)
      return { rttMs: claimMs + instance.crawlerRtt[crawler]![liar]! };
    const seen = measured(probe);
    const lateMs = isBusy(crawler) ? busyMs * drawOf(seed, target, crawler) : 0;
    return "rttMs" in seen ? { rttMs: seen.rttMs + lateMs } : seen;
  };
  const observe: ProbeModel = (probe) => {
    if (halfIpv6 && probe.target % 2 === 1 && probe.crawler % 2 === 1) return { failed: "no IPv6" };
    const observation = said(probe);
    if ("rttMs" in observation) {
      const answers = asked.get(probe.target) ?? [];
      answers.push({ crawler: probe.crawler, rttMs: observation.rttMs });
      asked.set(probe.target, answers);
    }
    return observation;
  };
  const result = simulateDelegation(instance, { policy: "nearest", hasWitnesses, seed, observe });
  const rounds = [...asked].map(
    ([target, answers]): ProbedSubnet => ({
      subnetId: asSubnetId(target + 1),
      probes: answers.map(({ crawler, rttMs }) => ({ crawlerId: asCrawlerId(crawler + 1), rttMs })),
    }),
  );
  const fleet = probingFleet(instance);
  const accused = new Set(probeLies(rounds, fleet).map(({ crawlerId }) => crawlerId - 1));
  const figures = { kept: 0, keptMs: 0, honestExcessMs: 0, honestTargets: 0 };
  result.chosen.forEach((crawler, target) => {
    const excessMs = result.rttsMs[target]! - result.bestRttsMs[target]!;
    const liar = liarOf.get(target);
    if (liar === undefined) {
      if (!asked.has(target)) return;
      figures.honestTargets += 1;
      figures.honestExcessMs += excessMs;
    } else if (liar === crawler && !accused.has(liar)) {
      figures.kept += 1;
      figures.keptMs += excessMs;
    }
  });
  return {
    ...figures,
    chosen: liarOf.size,
    accusedLiars: [...accused].filter((crawler) => crawler < liars).length,
    accusedHonest: [...accused].filter((crawler) => crawler >= liars).length,
    targets: asked.size,
    probes: result.probes.reduce((sum, probes) => sum + probes, 0),
  };
}

/** Busy crawlers answer each other late; of those that have moved, the others know where they were; anycast is near everybody. */
function disturbed(quiet: SimulationInstance, seed: number) {
  const count = quiet.crawlers.length;
  const draws = (share: number, salt: number) =>
    Array.from({ length: count }, (_, crawler) => drawOf(seed, salt, crawler) < share);
  const busy = draws(busyShare, -1);
  const moved = draws(movedShare, -2);
  const was = (crawler: number) => (moved[crawler] ? Math.floor(drawOf(seed, -3, crawler) * count) : crawler);
  const crawlerRtt = quiet.crawlerRtt.map((_, from) =>
    quiet.crawlerRtt.map((_, to) => {
      if (from === to) return 0;
      const apartMs = quiet.crawlerRtt[was(from)]![was(to)]!;
      return Math.max(0.5, apartMs) + (busy[to] ? busyMs * drawOf(seed, from, to) : 0);
    }),
  );
  const targets = quiet.targets.map((target, at) => {
    if (drawOf(seed, -4, at) >= anycastShare) return target;
    const { path, org, cc } = target;
    return {
      path,
      org,
      cc,
      rtt: Array.from(target.rtt, (ms, crawler) => Math.min(ms, 5 + 20 * drawOf(seed, at, crawler))),
    };
  });
  return { instance: { ...quiet, crawlerRtt, targets }, isBusy: (crawler: number) => busy[crawler]! };
}

const drawOf = (seed: number, a: number, b: number): number =>
  seededRandom(mix32(mix32(seed ^ 0x6c696172) ^ mix32(a + 1_000_003) ^ Math.imul(b + 1, 0x9e3779b1)))();

function probingFleet({ crawlers, crawlerRtt }: SimulationInstance): ProbingFleet {
  return {
    crawlers: crawlers.map((_, index) => asCrawlerId(index + 1)),
    rttMs: (from, to) => crawlerRtt[from - 1]![to - 1]!,
    placeOf: () => null,
  };
}

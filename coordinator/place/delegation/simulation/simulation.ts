/**
 * Runs delegation policies over an instance with known RTTs, without a network. Targets arrive in a shuffled order, each
 * round learns from earlier ones, and each choice is compared with the best. The run is deterministic: the same instance,
 * options and seed give the same figures on every machine.
 *
 * Several policies run side by side with separate memories, so that a target's RTTs are generated once: 1,000 crawlers and
 * 100,000 sites have 100 million, which are never all stored. Policies may see disturbed RTTs (`observe`) but are judged by
 * the real ones.
 */

import { asCrawlerId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { type MeasuredPeer, PeerMatrix } from "../../distances/peer-matrix.ts";
import { type CandidateFleet, candidateFleet } from "../fleet.ts";
import { DelegationKnowledge } from "../knowledge.ts";
import type { PlaceKey, Placement, PublishedPlace } from "../placement.ts";
import { LearnedRtts } from "../policies/learned-rtts.ts";
import { learnFromRound, nextStep, observe, type PolicyName, startRound } from "../policies/policies.ts";
import {
  defaultParameters,
  type Observation,
  type PolicyParameters,
  type RoundInput,
} from "../policies/round.ts";

export interface SimulatedHost {
  /** Names of the subnets from the root over the /8 to the leaf. It has at least a root and a leaf. */
  readonly path: readonly string[];
  /** The leaf's holder. Empty if unknown. */
  readonly org: string;
  /** Empty if unknown. */
  readonly cc: string;
  readonly published?: readonly PublishedPlace[];
}

interface SimulatedTarget extends SimulatedHost {
  /** RTT in ms from each crawler. May be generated at each access, so read it only once. */
  readonly rtt: ArrayLike<number>;
}

export interface SimulationInstance {
  readonly crawlers: readonly SimulatedHost[];
  readonly crawlerRtt: readonly (readonly number[])[];
  readonly targets: readonly SimulatedTarget[];
}

interface SimulationSettings {
  /** Determines the order of the targets and the draws of `random`. */
  readonly seed?: number;
  /** What a crawler measures. The undisturbed RTT if absent. */
  readonly observe?: ProbeModel;
  readonly onProgress?: (doneTargets: number, targets: number) => void;
}

const defaultSeed = 1;

export interface SimulationResult extends Figures {
  readonly policy: PolicyVariant["policy"];
  readonly crawlers: number;
  readonly targets: number;
  /** Index of each target's crawler, in the instance's order. */
  readonly chosen: readonly number[];
  /** Paid probes per target, in the instance's order. */
  readonly probes: readonly number[];
  /** RTTs per target, in the instance's order: from its crawler and from the fastest. */
  readonly rttsMs: readonly number[];
  readonly bestRttsMs: readonly number[];
  /** Positions of the targets in order of arrival. */
  readonly arrival: readonly number[];
}

export function simulateDelegation(
  instance: SimulationInstance,
  options: PolicyVariant & SimulationSettings,
): SimulationResult {
  return simulatePolicies(instance, [options], options)[0]!;
}

/** One result per variant, in their order. The results are the same as if each ran alone. */
export function simulatePolicies(
  instance: SimulationInstance,
  variants: readonly PolicyVariant[],
  settings: SimulationSettings = {},
): SimulationResult[] {
  const placementOf = placementNumbers();
  const crawlerPlacements = instance.crawlers.map(placementOf);
  const fleet = fleetOf(instance);
  const { arrival } = orderOf(instance, settings);
  const runs = variants.map((variant) => {
    const { draw } = orderOf(instance, settings);
    const observe = settings.observe ?? (({ rttMs }) => ({ rttMs }));
    return new SimulationRun({ variant, fleet, crawlerPlacements, observe, draw });
  });
  const delegated: DelegatedTarget[][] = runs.map(() => []);
  arrival.forEach((target, position) => {
    const host = instance.targets[target]!;
    const rttsMs = host.rtt;
    const arrived: ArrivedTarget = {
      target,
      placement: placementOf(host),
      rttsMs,
      bestRttMs: smallest(rttsMs),
    };
    runs.forEach((run, index) => {
      delegated[index]!.push(run.delegate(arrived));
    });
    settings.onProgress?.(position + 1, arrival.length);
  });
  return variants.map(({ policy }, index) => ({
    policy,
    crawlers: instance.crawlers.length,
    targets: instance.targets.length,
    ...figuresOf(delegated[index]!),
    ...inInstanceOrder(delegated[index]!, arrival),
    arrival,
  }));
}

/** The order of arrival, and the generator for the draws that follow. */
function orderOf(
  { targets }: SimulationInstance,
  { seed = defaultSeed }: SimulationSettings,
): { arrival: number[]; draw: () => number } {
  const draw = seededRandom(seed);
  return { arrival: shuffledIndices(targets.length, draw), draw };
}

function inInstanceOrder(
  delegated: readonly DelegatedTarget[],
  arrival: readonly number[],
): Pick<SimulationResult, "chosen" | "probes" | "rttsMs" | "bestRttsMs"> {
  const ofTarget = new Array<DelegatedTarget>(arrival.length);
  arrival.forEach((target, position) => {
    ofTarget[target] = delegated[position]!;
  });
  return {
    chosen: ofTarget.map(({ chosen }) => chosen),
    probes: ofTarget.map(({ probes }) => probes),
    rttsMs: ofTarget.map(({ rttMs }) => rttMs),
    bestRttsMs: ofTarget.map(({ bestRttMs }) => bestRttMs),
  };
}

function fleetOf({ crawlers, crawlerRtt }: SimulationInstance): CandidateFleet {
  const peers = crawlerRtt.flatMap((row, from) =>
    row.map((rttMs, to): MeasuredPeer => ({ from: idOf(from), to: idOf(to), rttMs })),
  );
  const ids = crawlers.map((_, index) => idOf(index));
  return candidateFleet(ids, PeerMatrix.of(peers));
}

function smallest(values: ArrayLike<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) least = Math.min(least, values[index]!);
  return least;
}

// One policy in a simulated run: its memory, its choices and their cost. The caller feeds the targets one by one.

export interface PolicyVariant {
  readonly policy: PolicyName;
  readonly parameters?: Partial<PolicyParameters>;
  /** Whether, as in the coordinator, a winning report needs confirmation. */
  readonly hasWitnesses?: boolean;
}

/** A measurement about to be made. `target` and `crawler` are positions in the instance. */
interface SimulatedProbe {
  readonly target: number;
  readonly crawler: number;
  /** The undisturbed RTT. */
  readonly rttMs: number;
  /** `get` means by the crawl's own request. */
  readonly how: "probe" | "get";
}

/** What a crawler observes of an RTT. */
export type ProbeModel = (probe: SimulatedProbe) => Observation;

interface ArrivedTarget {
  readonly target: number;
  readonly placement: Placement;
  /** RTTs from each crawler. */
  readonly rttsMs: ArrayLike<number>;
  readonly bestRttMs: number;
}

interface DelegatedTarget extends SimulatedRound {
  /** Position of the chosen crawler. */
  readonly chosen: number;
}

interface SimulationRunSettings {
  readonly variant: PolicyVariant;
  readonly fleet: CandidateFleet;
  readonly crawlerPlacements: readonly Placement[];
  readonly observe: ProbeModel;
  /** Draws for the policy `random`. */
  readonly draw: () => number;
}

/** Crawler ids start at 1, as in the database. */
export const idOf = (index: number): CrawlerId => asCrawlerId(index + 1);

const indexOf = (crawlerId: CrawlerId): number => crawlerId - 1;

export class SimulationRun {
  readonly #settings: SimulationRunSettings;
  readonly #input: Omit<RoundInput, "placement" | "random">;
  readonly #knowledge = new DelegationKnowledge();
  readonly #owners = new Map<PlaceKey, CrawlerId>();

  /** Each crawler owns the subnet it is located in (paper section 4.1). If several are in one, the first owns it. */
  constructor(settings: SimulationRunSettings) {
    this.#settings = settings;
    settings.crawlerPlacements.forEach((placement, index) => {
      this.#knowledge.record(placement, idOf(index));
      if (!this.#owners.has(placement.subnetKey)) this.#owners.set(placement.subnetKey, idOf(index));
    });
    this.#input = {
      fleet: settings.fleet,
      knowledge: this.#knowledge,
      learned: new LearnedRtts(),
      parameters: { ...defaultParameters, ...settings.variant.parameters },
      hasWitnesses: settings.variant.hasWitnesses ?? false,
    };
  }

  /** A leaf that already has an owner needs no probe (paper section 4.3). */
  delegate(arrived: ArrivedTarget): DelegatedTarget {
    const owner = this.#owners.get(arrived.placement.subnetKey);
    const { crawlerId, probes } = owner ? { crawlerId: owner, probes: 0 } : this.#decide(arrived);
    const chosen = indexOf(crawlerId);
    return { chosen, probes, rttMs: arrived.rttsMs[chosen]!, bestRttMs: arrived.bestRttMs };
  }

  #decide(arrived: ArrivedTarget): { crawlerId: CrawlerId; probes: number } {
    const { target, placement, rttsMs } = arrived;
    const { variant, draw } = this.#settings;
    let round = startRound(variant.policy, { ...this.#input, placement, random: draw() });
    let probes = 0;
    for (;;) {
      const step = nextStep(round);
      if (step.type === "nobody") throw new RangeError("the instance has no crawlers");
      if (step.type === "decided") {
        // As in the coordinator, an unmeasured guess teaches nothing, and the leaf's next target tries again.
        if (step.measured) {
          this.#owners.set(placement.subnetKey, step.crawlerId);
          this.#knowledge.record(placement, step.crawlerId);
          learnFromRound(round);
        }
        return { crawlerId: step.crawlerId, probes };
      }
      if (step.how === "probe") probes += 1;
      const crawler = indexOf(step.crawlerId);
      const seen = this.#settings.observe({ target, crawler, rttMs: rttsMs[crawler]!, how: step.how });
      round = observe(round, step.crawlerId, seen);
    }
  }
}

// Numbers places and orders targets of simulated runs.

/** Numbers the nodes of a hierarchy given as paths of names. Equal names under different parents are different nodes. */
export class PathNumbers {
  readonly #numbers = new Map<string, number>();

  numbersAlong(path: readonly string[]): number[] {
    const numbers: number[] = [];
    let parent = 0;
    for (const name of path) {
      const key = `${parent}/${name}`;
      const number = this.#numbers.get(key) ?? this.#numbers.size + 1;
      this.#numbers.set(key, number);
      numbers.push(number);
      parent = number;
    }
    return numbers;
  }
}

/** A host as an instance describes it. */
interface PathHost {
  readonly path: readonly string[];
  readonly org: string;
  readonly cc: string;
  readonly as?: string;
  readonly published?: readonly PublishedPlace[];
}

/** Placements with equal keys for equal places. Path elements below root and /8 are the ancestors. A short path has none. */
export function placementNumbers(): (host: PathHost) => Placement {
  const paths = new PathNumbers();
  return ({ path, org, cc, published }) => {
    const numbers = paths.numbersAlong(path);
    return {
      subnetKey: numbers.at(-1)!,
      holderKey: org === "" ? null : org,
      ancestorKeys: numbers.slice(2, -1).reverse(),
      widerKeys: numbers.slice(1, -1).slice(0, 1),
      country: cc === "" ? null : cc,
      slash8Key: numbers[1]!,
      ...(published === undefined ? {} : { published }),
    };
  };
}

/** Shuffles by the method of Fisher and Yates. */
function shuffledIndices(count: number, draw: () => number): number[] {
  const indices = Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(draw() * (last + 1));
    [indices[last], indices[other]] = [indices[other]!, indices[last]!];
  }
  return indices;
}

/** Results of a simulated run: how near the choices came to the best, and their cost. */
export interface Figures {
  /** Percentage of targets whose crawler is a fastest one (ties count). */
  readonly optimalPct: number;
  /** Percentage of targets whose crawler is at most 2 or 5 ms slower than the fastest. */
  readonly within2msPct: number;
  readonly within5msPct: number;
  /** Mean and 95th percentile (nearest rank) of the excess over the best. */
  readonly meanExcessMs: number;
  readonly p95ExcessMs: number;
  /** Paid probes. With get-first, the first observation is free. */
  readonly probesPerUrl: number;
  /** 95th percentile (nearest rank) of the probes of a target. */
  readonly p95ProbesPerUrl: number;
  /** Mean over the last 50 targets, when most was learned. */
  readonly probesPerUrlLast50: number;
}

interface SimulatedRound {
  readonly probes: number;
  readonly rttMs: number;
  readonly bestRttMs: number;
}

/** Rounded to four decimals. All zero if there are no rounds. */
export function figuresOf(rounds: readonly SimulatedRound[]): Figures {
  const excessMs = rounds.map((round) => round.rttMs - round.bestRttMs);
  const probes = rounds.map((round) => round.probes);
  return {
    optimalPct: percentOf(excessMs, (ms) => ms === 0),
    within2msPct: percentOf(excessMs, (ms) => ms <= 2 + floatSlackMs),
    within5msPct: percentOf(excessMs, (ms) => ms <= 5 + floatSlackMs),
    meanExcessMs: rounded(mean(excessMs)),
    p95ExcessMs: rounded(percentile(excessMs, 0.95)),
    probesPerUrl: rounded(mean(probes)),
    p95ProbesPerUrl: percentile(probes, 0.95),
    probesPerUrlLast50: rounded(mean(probes.slice(-50))),
  };
}

/** Tolerates floating point: 20.1 − 15.1 is a little more than 5. */
const floatSlackMs = 1e-9;

function percentOf(values: readonly number[], holds: (value: number) => boolean): number {
  return rounded((100 * values.filter(holds).length) / Math.max(1, values.length));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}

/**
 * Runs a delegation policy over an instance whose every RTT is known, without a network: the targets arrive
 * one by one in a shuffled order, each round learns from those before it, and each choice is held against the
 * best one. Deterministic: the same instance, options and seed give the same figures on every machine.
 */
import { asCrawlerId, type CrawlerId } from "../ids.ts";
import { seededRandom } from "../seeded-random.ts";
import { candidateFleet, type MeasuredPeer, PeerRttTable } from "./fleet.ts";
import { DelegationKnowledge } from "./knowledge.ts";
import type { PlaceKey, Placement } from "./placement.ts";
import { nextStep, observe, startRound } from "./probe-round.ts";
import { defaultParameters, type PolicyName, type PolicyParameters, type RoundInput } from "./round.ts";
import { type Figures, figuresOf } from "./simulation-figures.ts";
import { PathNumbers } from "./simulation-paths.ts";

export interface SimulatedHost {
  /** Names of the subnets from the root over the /8 down to the leaf; at least root and leaf. */
  readonly path: readonly string[];
  /** Who holds the leaf; empty: nobody known. */
  readonly org: string;
  /** Country; empty: unknown. */
  readonly cc: string;
}

export interface SimulatedTarget extends SimulatedHost {
  /** RTT in ms from each crawler. */
  readonly rtt: readonly number[];
}

export interface SimulationInstance {
  readonly crawlers: readonly SimulatedHost[];
  /** RTTs in ms between crawlers. */
  readonly crawlerRtt: readonly (readonly number[])[];
  readonly targets: readonly SimulatedTarget[];
}

export interface SimulationOptions {
  readonly policy: PolicyName;
  readonly parameters?: Partial<PolicyParameters>;
  /** Shuffles the order of the targets and draws for `random`. */
  readonly seed?: number;
}

export const defaultSeed = 1;

export interface SimulationResult extends Figures {
  readonly policy: PolicyName;
  readonly crawlers: number;
  readonly targets: number;
  /** Per target, in the instance's order: the index of the crawler that got it. */
  readonly chosen: readonly number[];
  /** Per target, in the instance's order: paid probes. */
  readonly probes: readonly number[];
}

export function simulateDelegation(
  instance: SimulationInstance,
  options: SimulationOptions,
): SimulationResult {
  const run = new SimulationRun(instance, options);
  const order = shuffledIndices(instance.targets.length, run.draw);
  const rounds = order.map((targetIndex) => run.delegate(targetIndex));
  const chosen = new Array<number>(order.length).fill(0);
  const probes = new Array<number>(order.length).fill(0);
  order.forEach((targetIndex, position) => {
    chosen[targetIndex] = rounds[position]!.chosen;
    probes[targetIndex] = rounds[position]!.probes;
  });
  return {
    policy: options.policy,
    crawlers: instance.crawlers.length,
    targets: instance.targets.length,
    ...figuresOf(rounds),
    chosen,
    probes,
  };
}

interface DelegatedTarget {
  readonly chosen: number;
  readonly probes: number;
  readonly rttMs: number;
  readonly bestRttMs: number;
}

class SimulationRun {
  readonly draw: () => number;
  readonly #instance: SimulationInstance;
  readonly #policy: PolicyName;
  readonly #input: Omit<RoundInput, "placement" | "random">;
  readonly #paths = new PathNumbers();
  readonly #owners = new Map<PlaceKey, CrawlerId>();

  constructor(instance: SimulationInstance, options: SimulationOptions) {
    this.draw = seededRandom(options.seed ?? defaultSeed);
    this.#instance = instance;
    this.#policy = options.policy;
    const crawlerIds = instance.crawlers.map((_, index) => idOf(index));
    const knowledge = new DelegationKnowledge();
    instance.crawlers.forEach((crawler, index) => {
      const placement = this.#placementOf(crawler);
      knowledge.record(placement, idOf(index));
      if (!this.#owners.has(placement.subnetKey)) this.#owners.set(placement.subnetKey, idOf(index));
    });
    this.#input = {
      fleet: candidateFleet(crawlerIds, new PeerRttTable(peersOf(instance.crawlerRtt))),
      knowledge,
      parameters: { ...defaultParameters, ...options.parameters },
    };
  }

  delegate(targetIndex: number): DelegatedTarget {
    const target = this.#instance.targets[targetIndex]!;
    const placement = this.#placementOf(target);
    const owner = this.#owners.get(placement.subnetKey);
    const { crawlerId, probes } = owner ? { crawlerId: owner, probes: 0 } : this.#decide(target, placement);
    const chosen = indexOf(crawlerId);
    return {
      chosen,
      probes,
      rttMs: target.rtt[chosen]!,
      bestRttMs: target.rtt.reduce((least, rttMs) => Math.min(least, rttMs)),
    };
  }

  /** A round for a leaf that nobody owns; the next target in it is its owner's, without a probe (paper section 4.3). */
  #decide(target: SimulatedTarget, placement: Placement): { crawlerId: CrawlerId; probes: number } {
    let round = startRound(this.#policy, { ...this.#input, placement, random: this.draw() });
    let probes = 0;
    for (;;) {
      const step = nextStep(round);
      if (step.type === "decided") {
        this.#owners.set(placement.subnetKey, step.crawlerId);
        this.#input.knowledge.record(placement, step.crawlerId);
        return { crawlerId: step.crawlerId, probes };
      }
      if (step.type === "nobody") throw new RangeError("the instance has no crawlers");
      if (step.how === "probe") probes += 1;
      round = observe(round, step.crawlerId, { rttMs: target.rtt[indexOf(step.crawlerId)]! });
    }
  }

  /** Below root and /8, what is left of the path are the ancestors; a short path has none. */
  #placementOf(host: SimulatedHost): Placement {
    const numbers = this.#paths.numbersAlong(host.path);
    return {
      subnetKey: numbers.at(-1)!,
      holderKey: host.org === "" ? null : host.org,
      ancestorKeys: numbers.slice(2, -1).reverse(),
      country: host.cc === "" ? null : host.cc,
      slash8Key: numbers[1]!,
    };
  }
}

/** Crawler ids start at 1, as in the database. */
const idOf = (index: number): CrawlerId => asCrawlerId(index + 1);
const indexOf = (crawlerId: CrawlerId): number => crawlerId - 1;

function peersOf(crawlerRtt: readonly (readonly number[])[]): MeasuredPeer[] {
  return crawlerRtt.flatMap((row, from) =>
    row.map((rttMs, to) => ({ from: idOf(from), to: idOf(to), rttMs })),
  );
}

/** Fisher and Yates. */
function shuffledIndices(count: number, draw: () => number): number[] {
  const indices = Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(draw() * (last + 1));
    [indices[last], indices[other]] = [indices[other]!, indices[last]!];
  }
  return indices;
}

/**
 * Runs delegation policies over an instance with known RTTs, without a network: targets arrive in a shuffled order,
 * each round learns from earlier ones, and each choice is compared with the best. Deterministic: the same instance,
 * options and seed give the same figures on every machine.
 *
 * Several policies run side by side with separate memories, so that a target's RTTs are generated once: 1,000 crawlers
 * and 100,000 sites have 100 million, which are never all stored. Policies may see disturbed RTTs (`observe`) but are
 * judged by the real ones.
 */
import { seededRandom } from "#core/random";
import { type MeasuredPeer, PeerMatrix } from "../../distances/peer-matrix.ts";
import { type CandidateFleet, candidateFleet } from "../fleet.ts";
import type { PublishedPlace } from "../placement.ts";
import {
  type ArrivedTarget,
  type DelegatedTarget,
  type Figures,
  figuresOf,
  idOf,
  type PolicyVariant,
  type ProbeModel,
  placementNumbers,
  SimulationRun,
  shuffledIndices,
} from "./run.ts";

export interface SimulatedHost {
  /** Names of the subnets from the root over the /8 to the leaf; at least root and leaf. */
  readonly path: readonly string[];
  /** The leaf's holder; empty when unknown. */
  readonly org: string;
  /** Empty when unknown. */
  readonly cc: string;
  /** Published locations. */
  readonly published?: readonly PublishedPlace[];
}

export interface SimulatedTarget extends SimulatedHost {
  /** RTT in ms from each crawler. May be generated at each reading, so read it once. */
  readonly rtt: ArrayLike<number>;
}

export interface SimulationInstance {
  readonly crawlers: readonly SimulatedHost[];
  /** RTTs in ms between crawlers. */
  readonly crawlerRtt: readonly (readonly number[])[];
  readonly targets: readonly SimulatedTarget[];
}

export interface SimulationSettings {
  /** For the order of the targets and the draws of `random`. */
  readonly seed?: number;
  /** What a crawler measures; the undisturbed RTT when absent. */
  readonly observe?: ProbeModel;
  /** Called after each target. */
  readonly onProgress?: (doneTargets: number, targets: number) => void;
}

export const defaultSeed = 1;

export interface SimulationResult extends Figures {
  readonly policy: PolicyVariant["policy"];
  readonly crawlers: number;
  readonly targets: number;
  /** Index of each target's crawler, in the instance's order. */
  readonly chosen: readonly number[];
  /** Paid probes per target, in the instance's order. */
  readonly probes: readonly number[];
  /** Per target, in the instance's order: the RTT from its crawler and from the fastest. */
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

/** One result per variant, in their order; the same as when run alone. */
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

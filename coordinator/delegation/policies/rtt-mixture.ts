/**
 * Where a target may lie: a mixture over places of which the RTTs from the crawlers are known. There are two
 * sorts, the candidates themselves (a target beside crawler c sees the others as c does) and past subnets that
 * the crawlers measured (`learned-rtts.ts`). The prior of each candidate, from the tree, is shared out among the
 * places that it is nearest to; subnets of the same holder or neighbourhood get more of it. Every answer then
 * weighs a place by how well it fits what that place would have answered:
 *
 *     weight /= (1 + z²)² · scale        z = (expected − answered) / scale
 *
 * Heavy tails, since round trips keep to no geometry. A place's expectation of a crawler that never measured
 * it is itself a mean over places, with a spread that widens the scale.
 */
import type { CandidateFleet } from "../fleet.ts";
import { type FleetView, viewOf } from "../fleet-view.ts";
import type { Placement } from "../placement.ts";
import type { LearnedRtts, LearnedVector } from "./learned-rtts.ts";

export interface RttMixture {
  readonly fleet: CandidateFleet;
  readonly view: FleetView;
  readonly learned: LearnedRtts;
  readonly vectors: readonly LearnedVector[];
  /** For each vector the candidate that won it. */
  readonly winners: Int32Array;
  /** Of the candidates first, then of the vectors; the largest is about 1 once something was answered. */
  readonly weights: Float64Array;
}

/** Weight of a past subnet against one of which nothing is shared. */
const ofSameHolder = 35;
const ofSameNeighbourhood = 5;
const ofSameCountry = 3;
/** Scale of the error in ms, at RTT 0 and per ms: of what was measured, of what is only expected. */
const measuredScale = { ms: 4.65, perMs: 0.15 };
const expectedScale = { ms: 10.9, perMs: 0.3, perSpread: 0.74 };
/** Vectors that a round looks at, those of the same holder and neighbourhood apart: of the likeliest candidates. */
const mostVectors = 128;
/** A vector lighter than this, against the heaviest place, is dropped for the rest of the round. */
const leastKept = 1e-4;

export function startMixture(given: {
  readonly fleet: CandidateFleet;
  readonly placement: Placement;
  readonly learned: LearnedRtts;
  /** Belief that each candidate is the nearest, above 0. */
  readonly beliefs: Float64Array;
}): RttMixture {
  const { fleet, placement, learned, beliefs } = given;
  const vectors: LearnedVector[] = [];
  const winners: number[] = [];
  const likeness: number[] = [];
  const totals = new Float64Array(beliefs.length).fill(1);
  const add = (vector: LearnedVector, winner: number) => {
    const alike = likenessOf(vector.placement, placement);
    vectors.push(vector);
    winners.push(winner);
    likeness.push(alike);
    totals[winner]! += alike;
  };
  const nearby = learned.alike(placement);
  for (const vector of nearby) {
    const winner = fleet.indexOf.get(vector.crawlerId);
    if (winner !== undefined) add(vector, winner);
  }
  const atLeast = leastBelief(beliefs, learned);
  for (let index = 0; index < beliefs.length; index++) {
    if (beliefs[index]! < atLeast) continue;
    for (const vector of learned.wonBy(fleet.candidates[index]!)) if (!nearby.has(vector)) add(vector, index);
  }
  const weights = new Float64Array(beliefs.length + vectors.length);
  for (let index = 0; index < beliefs.length; index++) weights[index] = beliefs[index]! / totals[index]!;
  for (let at = 0; at < likeness.length; at++)
    weights[beliefs.length + at] = (likeness[at]! * beliefs[winners[at]!]!) / totals[winners[at]!]!;
  return {
    fleet,
    view: viewOf(fleet, learned),
    learned,
    vectors,
    winners: Int32Array.from(winners),
    weights,
  };
}

/** The mixture after the candidate at `index` answered. */
export function observeMixture(mixture: RttMixture, index: number, rttMs: number): RttMixture {
  const { view, learned, vectors, fleet } = mixture;
  const weights = mixture.weights.slice();
  const fromHere = view.placeOf(index).rttsMs;
  const measuredMs = measuredScale.ms + measuredScale.perMs * rttMs;
  const expectedMs = expectedScale.ms + expectedScale.perMs * rttMs;
  const candidates = fleet.candidates.length;
  const unknown = likelihood(expectedMs, expectedMs);
  for (let at = 0; at < candidates; at++) {
    const there = fromHere[at]!;
    weights[at]! *= Number.isNaN(there) ? unknown : likelihood(there - rttMs, measuredMs);
  }
  const slot = view.slotsIn(learned)[index]!;
  for (let at = 0; at < vectors.length; at++) {
    const vector = vectors[at]!;
    const there = vector.rttsMs[slot];
    if (there === undefined || Number.isNaN(there)) {
      weights[candidates + at]! *= unknown;
      continue;
    }
    const spreadMs = vector.spreadsMs[slot]!;
    const scaleMs = spreadMs === 0 ? measuredMs : expectedMs + expectedScale.perSpread * spreadMs;
    weights[candidates + at]! *= likelihood(there - rttMs, scaleMs);
  }
  return kept({ ...mixture, weights });
}

/** Scaled to 1 at most, and without the vectors that no longer count. */
function kept(mixture: RttMixture): RttMixture {
  const { weights, vectors, winners } = mixture;
  const candidates = weights.length - vectors.length;
  const most = largestOf(weights);
  if (!(most > 0)) return mixture;
  for (let at = 0; at < weights.length; at++) weights[at]! /= most;
  const left: LearnedVector[] = [];
  let end = candidates;
  const leftWinners = new Int32Array(vectors.length);
  for (let at = 0; at < vectors.length; at++) {
    const weight = weights[candidates + at]!;
    if (weight < leastKept) continue;
    weights[end++] = weight;
    leftWinners[left.length] = winners[at]!;
    left.push(vectors[at]!);
  }
  return { ...mixture, weights: weights.subarray(0, end), vectors: left, winners: leftWinners };
}

function likelihood(errorMs: number, scaleMs: number): number {
  const z = errorMs / scaleMs;
  const odds = 1 + z * z;
  return 1 / (odds * odds * scaleMs);
}

function likenessOf(one: Placement, other: Placement): number {
  if (one.holderKey !== null && one.holderKey === other.holderKey) return ofSameHolder;
  // By position: taking an array apart costs more than all the rest here.
  const parent = one.ancestorKeys[0];
  if (parent !== undefined && parent === other.ancestorKeys[0]) return ofSameNeighbourhood;
  const grandparent = one.ancestorKeys[1];
  if (grandparent !== undefined && grandparent === other.ancestorKeys[1]) return ofSameNeighbourhood;
  return one.country !== null && one.country === other.country ? ofSameCountry : 1;
}

/** The belief from which on candidates' vectors are looked at, so that there are not too many. */
function leastBelief(beliefs: Float64Array, learned: LearnedRtts): number {
  const winners = Math.floor(mostVectors / learned.keptByEach);
  if (winners >= beliefs.length) return 0;
  const sorted = beliefs.slice().sort();
  return sorted[beliefs.length - winners]!;
}

export function largestOf(values: Float64Array): number {
  let largest = 0;
  for (let index = 0; index < values.length; index++) if (values[index]! > largest) largest = values[index]!;
  return largest;
}

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

import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import { type CandidateFleet, type FleetView, type NearestCandidates, viewOf } from "../fleet.ts";
import type { Placement } from "../placement.ts";
import type { CandidateColumns } from "./candidate-columns.ts";
import { entryOf, type LearnedRtts, type LearnedVector } from "./learned-rtts.ts";
import { type RoundState, rttOf, trustInTriangle } from "./round.ts";

export interface RttMixture {
  readonly fleet: CandidateFleet;
  readonly view: FleetView;
  readonly learned: LearnedRtts;
  readonly vectors: readonly LearnedVector[];
  /** For each vector the candidate that won it. */
  readonly winners: Int32Array;
  /** Of the candidates first, then of the vectors; the largest is about 1 once something was answered. */
  readonly weights: Float64Array;
  /** By what the weights were divided for that, all answers together. */
  readonly dividedBy: number;
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
    dividedBy: 1,
  };
}

/** The mixture after the candidate at `index` answered. `fromHere`: RTTs in ms from it to all candidates. */
export function observeMixture(
  mixture: RttMixture,
  {
    index,
    rttMs,
    fromHere,
  }: { readonly index: number; readonly rttMs: number; readonly fromHere: Float64Array },
): RttMixture {
  const { view, learned, vectors, fleet } = mixture;
  const weights = mixture.weights.slice();
  const measuredMs = measuredScale.ms + measuredScale.perMs * rttMs;
  const expectedMs = expectedScale.ms + expectedScale.perMs * rttMs;
  const candidates = fleet.candidates.length;
  const unknown = likelihood(expectedMs, expectedMs);
  weighCandidates(weights, { from: 0, to: candidates }, { fromHere, rttMs });
  const slot = vectors.length === 0 ? -1 : view.slotsIn(learned)[index]!;
  for (let at = 0; at < vectors.length; at++) {
    const vector = vectors[at]!;
    const entry = entryOf(vector, slot);
    const there = vector.rttsMs[entry];
    if (there === undefined || Number.isNaN(there)) {
      weights[candidates + at]! *= unknown;
      continue;
    }
    const spreadMs = vector.spreadsMs[entry]!;
    const scaleMs = spreadMs === 0 ? measuredMs : expectedMs + expectedScale.perSpread * spreadMs;
    weights[candidates + at]! *= likelihood(there - rttMs, scaleMs);
  }
  return kept(mixture, weights);
}

/** By how well a target beside each of these candidates fits an answer. */
function weighCandidates(
  weights: Float64Array,
  { from, to }: { readonly from: number; readonly to: number },
  { fromHere, rttMs }: { readonly fromHere: Float64Array; readonly rttMs: number },
): void {
  const measuredMs = measuredScale.ms + measuredScale.perMs * rttMs;
  const expectedMs = expectedScale.ms + expectedScale.perMs * rttMs;
  const unknown = likelihood(expectedMs, expectedMs);
  for (let at = from; at < to; at++) {
    const there = fromHere[at]!;
    weights[at]! *= Number.isNaN(there) ? unknown : likelihood(there - rttMs, measuredMs);
  }
}

/** The mixture of a fleet that has grown at its end, before the new candidates are weighed (`weighNewCandidates`). */
export function withMoreCandidates(
  mixture: RttMixture,
  /** `beliefs`: of all candidates. */
  { fleet, beliefs }: { readonly fleet: CandidateFleet; readonly beliefs: Float64Array },
): RttMixture {
  const before = mixture.weights.length - mixture.vectors.length;
  const after = beliefs.length;
  const weights = new Float64Array(after + mixture.vectors.length);
  weights.set(mixture.weights.subarray(0, before));
  weights.set(mixture.weights.subarray(before), after);
  for (let at = before; at < after; at++) weights[at] = beliefs[at]! / mixture.dividedBy;
  return { ...mixture, fleet, view: viewOf(fleet, mixture.learned), weights };
}

/** Weighs those from `first` on by an answer from before they came; of a mixture that nobody else has seen yet. */
export function weighNewCandidates(
  { weights, fleet }: RttMixture,
  first: number,
  answer: { readonly fromHere: Float64Array; readonly rttMs: number },
): void {
  weighCandidates(weights, { from: first, to: fleet.candidates.length }, answer);
}

/** Scaled to 1 at most, and without the vectors that no longer count. */
function kept(mixture: RttMixture, weights: Float64Array): RttMixture {
  const { vectors, winners } = mixture;
  const candidates = weights.length - vectors.length;
  const most = largestOf(weights);
  if (!(most > 0)) return { ...mixture, weights };
  for (let at = 0; at < weights.length; at++) weights[at]! /= most;
  const dividedBy = mixture.dividedBy * most;
  if (vectors.length === 0) return { ...mixture, weights, dividedBy };
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
  return { ...mixture, weights: weights.subarray(0, end), vectors: left, winners: leftWinners, dividedBy };
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

// What a finished round knows of its subnet, as a vector for `LearnedRtts`: measured where a crawler answered;
// elsewhere the mean over the places that fit, kept within what the triangle inequality allows, with its spread.

interface MeasuredRound extends RoundState {
  readonly placement: Placement;
  readonly mixture: RttMixture;
  readonly columns: CandidateColumns;
}

/** Places lighter than this, against the heaviest, are left out of the mean. */
const leastWeight = 1e-2;

/** A place that only expects a crawler's RTT counts so much of one that measured it. */
const weightOfExpected = 0.1;

/** Of a place's own spread, what goes into the mean's (variances). */
const spreadHandedOn = 0.43;

/** Of a round that this crawler won. `isPart`: it looked at a part of the fleet, and the vector knows of these alone. */
export function vectorOf(
  crawlerId: CrawlerId,
  round: MeasuredRound,
  isPart = false,
): Omit<LearnedVector, "nearest"> {
  const { mixture, fleet, placement } = round;
  const slots = mixture.view.slotsIn(mixture.learned);
  const means = meansOver(mixture);
  const { gapsMs, mostMs } = round.columns;
  const rttsMs = new Float32Array(isPart ? slots.length : mixture.learned.slots).fill(Number.NaN);
  const spreadsMs = new Float32Array(rttsMs.length);
  const entryAt = (index: number) => (isPart ? index : slots[index]!);
  for (let index = 0; index < slots.length; index++) {
    const meanMs = means.rttsMs[index]!;
    if (Number.isNaN(meanMs)) continue;
    const keptMs = Math.min(mostMs[index]!, Math.max(trustInTriangle * gapsMs[index]!, meanMs));
    rttsMs[entryAt(index)] = keptMs;
    // Never 0: that stands for measured.
    spreadsMs[entryAt(index)] = Math.max(0.1, Math.hypot(means.spreadsMs[index]!, keptMs - meanMs));
  }
  const measured: number[] = [];
  for (const probe of round.probes) {
    const rttMs = rttOf(probe.observation);
    if (rttMs === null) continue;
    const index = fleet.indexOf.get(probe.crawlerId)!;
    rttsMs[entryAt(index)] = rttMs;
    spreadsMs[entryAt(index)] = 0;
    measured.push(slots[index]!);
  }
  const vector = {
    crawlerId,
    placement,
    slots: null,
    rttsMs,
    spreadsMs,
    measured: Int32Array.from(measured),
  };
  return isPart ? withNearest(vector, slots) : vector;
}

/** Entries that a vector of a part of the fleet keeps, besides what was measured. */
const entriesKept = 64;

/** The nearest and whatever was measured, by ascending slot; the others are no candidates for being the nearest. */
function withNearest(
  vector: Omit<LearnedVector, "nearest">,
  slots: Int32Array,
): Omit<LearnedVector, "nearest"> {
  const isKept = new Uint8Array(slots.length);
  for (const at of smallestOf(vector.rttsMs, entriesKept)) isKept[at] = 1;
  const order: number[] = [];
  for (let at = 0; at < slots.length; at++)
    if (isKept[at] === 1 || (vector.spreadsMs[at] === 0 && !Number.isNaN(vector.rttsMs[at]!))) order.push(at);
  order.sort((a, b) => slots[a]! - slots[b]!);
  const entries = {
    slots: new Int32Array(order.length),
    rttsMs: new Float32Array(order.length),
    spreadsMs: new Float32Array(order.length),
  };
  for (let entry = 0; entry < order.length; entry++) {
    const at = order[entry]!;
    entries.slots[entry] = slots[at]!;
    entries.rttsMs[entry] = vector.rttsMs[at]!;
    entries.spreadsMs[entry] = vector.spreadsMs[at]!;
  }
  return { ...vector, ...entries };
}

/** Weighted sums per candidate, from which mean and variance follow. */
interface Moments {
  readonly weights: Float64Array;
  readonly firsts: Float64Array;
  readonly seconds: Float64Array;
}

/** Weighted mean and standard deviation per candidate; NaN where no place knows anything. */
function meansOver(mixture: RttMixture): { rttsMs: Float64Array; spreadsMs: Float64Array } {
  const { weights, vectors, view } = mixture;
  const candidates = weights.length - vectors.length;
  const leastCounted = largestOf(weights) * leastWeight;
  const moments: Moments = {
    weights: new Float64Array(candidates),
    firsts: new Float64Array(candidates),
    seconds: new Float64Array(candidates),
  };
  // Of a list, whose places come and go, only who is near is worked out; the vector keeps no more.
  const isPart = mixture.fleet.part !== undefined;
  for (let at = 0; at < candidates; at++) {
    if (weights[at]! < leastCounted) continue;
    if (isPart) addNearest(moments, weights[at]!, view.nearestTo(at));
    else addPlace(moments, weights[at]!, view.rttsFrom(at));
  }
  const slots = view.slotsIn(mixture.learned);
  const indices = view.indicesIn(mixture.learned);
  for (let at = 0; at < vectors.length; at++) {
    const weight = weights[candidates + at]!;
    if (weight < leastCounted) continue;
    if (vectors[at]!.slots === null) addVector(moments, weight, vectors[at]!, slots);
    else addEntries(moments, weight, vectors[at]!, indices);
  }
  // The sums make way for what follows from them.
  const { firsts: means, seconds: spreads } = moments;
  for (let index = 0; index < candidates; index++) {
    means[index]! /= moments.weights[index]!;
    const variance = spreads[index]! / moments.weights[index]! - means[index]! * means[index]!;
    spreads[index] = Math.sqrt(Math.max(0, variance));
  }
  return { rttsMs: means, spreadsMs: spreads };
}

function addPlace({ weights, firsts, seconds }: Moments, weight: number, rttsMs: Float64Array): void {
  for (let index = 0; index < weights.length; index++) {
    const rttMs = rttsMs[index]!;
    if (Number.isNaN(rttMs)) continue;
    weights[index]! += weight;
    firsts[index]! += weight * rttMs;
    seconds[index]! += weight * rttMs * rttMs;
  }
}

function addNearest(
  { weights, firsts, seconds }: Moments,
  weight: number,
  { count, indices, rttsMs }: NearestCandidates,
): void {
  for (let rank = 0; rank < count; rank++) {
    const index = indices[rank]!;
    const rttMs = rttsMs[rank]!;
    weights[index]! += weight;
    firsts[index]! += weight * rttMs;
    seconds[index]! += weight * rttMs * rttMs;
  }
}

function addVector(
  moments: Moments,
  weight: number,
  { rttsMs, spreadsMs }: LearnedVector,
  slots: Int32Array,
): void {
  for (let index = 0; index < slots.length; index++)
    addEntry(moments, weight, index, rttsMs[slots[index]!], spreadsMs[slots[index]!]!);
}

/** A vector that knows of few: entry by entry. */
function addEntries(
  moments: Moments,
  weight: number,
  { slots, rttsMs, spreadsMs }: LearnedVector,
  indices: Int32Array,
): void {
  for (let entry = 0; entry < slots!.length; entry++) {
    const index = indices[slots![entry]!]!;
    if (index >= 0) addEntry(moments, weight, index, rttsMs[entry], spreadsMs[entry]!);
  }
}

/** By position: it is called for every entry of every vector. */
function addEntry(
  { weights, firsts, seconds }: Moments,
  weight: number,
  index: number,
  rttMs: number | undefined,
  spreadMs: number,
): void {
  if (rttMs === undefined || Number.isNaN(rttMs)) return;
  const counted = spreadMs === 0 ? weight : weight * weightOfExpected;
  weights[index]! += counted;
  firsts[index]! += counted * rttMs;
  seconds[index]! += counted * (rttMs * rttMs + spreadHandedOn * spreadMs * spreadMs);
}

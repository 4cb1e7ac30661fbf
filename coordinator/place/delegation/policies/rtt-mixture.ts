/**
 * Where a target may be: a mixture over places with known RTTs from the crawlers. Places are the candidates (a target beside
 * crawler c sees the others as c does) and past subnets (`learned-rtts.ts`). Each candidate's prior from the tree is divided
 * among the places nearest to it. Subnets of the same holder, neighbourhood or published place get more. Each answer
 * reweights every place by how well the place fits it:
 *
 *     weight /= (1 + z²)² · scale        z = (expected − answered) / scale
 *
 * The tails are heavy because RTTs obey no geometry. A place's expectation for a crawler that never measured it is itself a
 * mean over places, whose spread widens the scale. A place without an expectation keeps its weight and serves as the baseline
 * for the others. The cost of an answer therefore depends on how much is known about its crawler, not on the size of the
 * fleet.
 *
 * A round has one mixture, updated in place by every answer. `follow` replays an earlier state's answers.
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import type { CandidateFleet } from "../fleet.ts";
import type { Placement } from "../placement.ts";
import {
  type FleetSlots,
  type LearnedRtts,
  mostEntries,
  placeNumbersOf,
  type RttEntries,
} from "./learned-rtts.ts";
import { type ObservedProbe, rttOf, trustInTriangle } from "./round.ts";
import { calledByAnswer, firstList, largestWholeFleet, likeliestOf } from "./short-list.ts";

/** Weight of a past subnet, relative to one that shares nothing. */
const ofSameHolder = 35;

const ofSameNeighbourhood = 5;
const ofSameCountry = 3;
/** Weight if the source is fully trusted. */
const ofSamePublishedPlace = 35;

/** Error scale in ms, at RTT 0 and per ms: for measured and for expected RTTs. */
const measuredScale = { ms: 4.65, perMs: 0.15 };

const expectedScale = { ms: 10.9, perMs: 0.3, perSpread: 0.74 };

/** Maximum past subnets per round besides similar ones: those of the likeliest candidates, in small and large fleets. */
const mostVectors = { small: 128, large: 32 };
const largestSmallFleet = 64;

/** Minimum weight of a vector, relative to the heaviest place. Lighter ones are dropped for the rest of the round. */
const leastKept = 1e-4;

/** Tolerance of an answer for a target beside a candidate. It grows with the path. */
export const fitScale = { ms: 5, perMs: 0.3 };

export const besideMs = 1;

/** If the heaviest weight falls below this, all are scaled up again. */
const leastHeaviest = 1e-100;

export class RttMixture {
  readonly fleet: CandidateFleet;
  readonly placement: Placement;
  readonly learned: LearnedRtts;
  /** Belief from the tree that each candidate is the nearest, before any answer and without `floor`. */
  readonly shares: Float64Array;
  readonly floor: number;
  /** The candidates' weights as places. 0 for those outside the list. */
  readonly weights: Float64Array;
  /** The candidates considered: all, or a short list of a very large fleet. */
  members: Int32Array;
  /** Triangle gaps in ms: the maximum |D − y| over the answers. Negative if unknown. */
  readonly gapsMs: Float64Array;
  /** The past subnets in use: rows, their winners (as candidates) and weights. */
  readonly rows: Int32Array;
  readonly winners: Int32Array;
  readonly vectorWeights: Float64Array;
  /** The largest weight over all places of both kinds. */
  heaviest = 0;
  /** Accumulated factor that keeps the weights from underflowing. */
  #scaledBy = 1;
  readonly #generations: Int32Array;
  readonly #startWeights: Float64Array;
  /** Memoised result for the answers so far, or null. */
  memo: unknown = null;
  #followed: readonly ObservedProbe[] = [];
  /** Best answer followed so far, in ms. */
  #bestMs = Number.POSITIVE_INFINITY;
  readonly #firstMembers: Int32Array;

  constructor(given: {
    readonly fleet: CandidateFleet;
    readonly placement: Placement;
    readonly learned: LearnedRtts;
    readonly shares: Float64Array;
    readonly floor: number;
    /** Overrides the largest fleet considered as a whole. */
    readonly listFrom?: number;
  }) {
    this.fleet = given.fleet;
    this.placement = given.placement;
    this.learned = given.learned;
    this.shares = given.shares;
    this.floor = given.floor;
    const { length } = given.shares;
    this.weights = new Float64Array(length);
    this.gapsMs = new Float64Array(length);
    const { rows, winners, likeness } = this.#chooseVectors();
    this.rows = Int32Array.from(rows);
    this.winners = Int32Array.from(winners);
    this.#generations = Int32Array.from(rows, (row) => this.learned.vectors.generations[row]!);
    this.#startWeights = Float64Array.from(likeness);
    this.vectorWeights = new Float64Array(rows.length);
    this.#firstMembers =
      length > (given.listFrom ?? largestWholeFleet)
        ? Int32Array.from(firstList(this.fleet, this.shares, winners))
        : everybody(length);
    this.members = this.#firstMembers;
    this.#begin();
  }

  get isPart(): boolean {
    return this.#firstMembers.length < this.weights.length;
  }

  belief(index: number): number {
    return this.shares[index]! + this.floor;
  }

  get slots(): FleetSlots {
    return this.learned.slotsIn(this.fleet);
  }

  /** Brings the mixture to exactly these answers. */
  follow(probes: readonly ObservedProbe[]): this {
    if (this.#followed === probes) return this;
    const before = this.#followed;
    const isNext = probes.length === before.length + 1 && before.every((probe, at) => probe === probes[at]);
    if (!isNext) this.#begin();
    for (let at = isNext ? before.length : 0; at < probes.length; at++)
      this.#observe(probes[at]!, this.isPart ? probes.slice(0, at) : []);
    this.#followed = probes;
    this.memo = null;
    return this;
  }

  /** The listed candidates at known distance from this one. Valid until the next call. */
  knownTo(index: number): KnownCandidates {
    const { fleet, members } = this;
    if (known.indices.length < this.weights.length) {
      known.indices = new Int32Array(Math.ceil(1.25 * this.weights.length));
      known.rttsMs = new Float64Array(known.indices.length);
    }
    const { indices, rttsMs } = known;
    const from = fleet.peerSlots[index]!;
    const { length, peers, bestMs } = fleet.peerRtts.knownTo(from);
    let count = 0;
    // Landmarks have measured all others, so their rows are long.
    const isLong = this.isPart && length > 8 * members.length;
    for (let at = 0; at < (isLong ? members.length : length); at++) {
      const one = isLong ? members[at]! : (fleet.indexOfPeer[peers[at]!] ?? -1);
      if (one < 0 || (this.isPart && this.weights[one] === 0)) continue;
      const rttMs = isLong ? fleet.peerRtts.rttMsAt(from, fleet.peerSlots[one]!) : bestMs[at]!;
      if (Number.isNaN(rttMs)) continue;
      indices[count] = one;
      rttsMs[count] = rttMs;
      count += 1;
    }
    known.count = count;
    return known;
  }

  /** Sets the initial state: a candidate's prior is divided between itself and the subnets it won. */
  #begin(): void {
    const { weights, winners, vectorWeights } = this;
    this.gapsMs.fill(-1);
    for (const index of this.members) weights[index] = 0;
    this.members = this.#firstMembers;
    this.#bestMs = Number.POSITIVE_INFINITY;
    this.#scaledBy = 1;
    for (const index of this.members) weights[index] = 1;
    for (let at = 0; at < winners.length; at++) weights[winners[at]!]! += this.#startWeights[at]!;
    for (const index of this.members) weights[index] = this.belief(index) / weights[index]!;
    for (let at = 0; at < winners.length; at++)
      vectorWeights[at] = this.#startWeights[at]! * weights[winners[at]!]!;
    this.#findHeaviest();
  }

  #observe({ crawlerId, observation }: ObservedProbe, earlier: readonly ObservedProbe[]): void {
    const rttMs = rttOf(observation);
    if (rttMs === null) return;
    const asked = this.fleet.indexOf.get(crawlerId)!;
    if (this.isPart) this.#callIn(asked, rttMs, earlier);
    this.#bestMs = Math.min(this.#bestMs, rttMs);
    const measuredMs = measuredScale.ms + measuredScale.perMs * rttMs;
    const expectedMs = expectedScale.ms + expectedScale.perMs * rttMs;
    this.#weighCandidates(asked, rttMs, { measuredMs, expectedMs });
    this.#weighVectors(asked, rttMs, { measuredMs, expectedMs });
    this.#findHeaviest();
    if (this.heaviest < leastHeaviest && this.heaviest > 0) this.#scaleUp();
  }

  /**
   * Extends a short list by the answering crawler and, if its answer is the best so far, by those that it brings in, weighted
   * by the earlier answers.
   */
  #callIn(asked: number, rttMs: number, earlier: readonly ObservedProbe[]): void {
    const { fleet, shares, weights } = this;
    const scaleMs = fitScale.ms + fitScale.perMs * rttMs;
    const called = rttMs < this.#bestMs ? calledByAnswer(fleet, shares, { asked, rttMs, scaleMs }) : [];
    const added = [asked, ...called].filter((index) => weights[index] === 0);
    if (added.length === 0) return;
    const members = new Int32Array(this.members.length + added.length);
    members.set(this.members);
    members.set(added, this.members.length);
    this.members = members;
    for (const index of added)
      weights[index] = this.belief(index) * this.#scaledBy * this.#oddsOf(index, earlier);
  }

  /** How well a target beside the candidate fits these answers. Records the gaps. */
  #oddsOf(index: number, probes: readonly ObservedProbe[]): number {
    const { fleet } = this;
    let odds = 1;
    for (const { crawlerId, observation } of probes) {
      const rttMs = rttOf(observation);
      if (rttMs === null) continue;
      const from = fleet.peerSlots[fleet.indexOf.get(crawlerId)!]!;
      const apartMs = fleet.peerRtts.rttMsAt(from, fleet.peerSlots[index]!);
      if (Number.isNaN(apartMs)) continue;
      const measuredMs = measuredScale.ms + measuredScale.perMs * rttMs;
      this.gapsMs[index] = Math.max(this.gapsMs[index]!, Math.abs(apartMs - rttMs));
      const z = (apartMs - rttMs) / measuredMs;
      odds *= (4 * (expectedScale.ms + expectedScale.perMs * rttMs)) / (measuredMs * (1 + z * z) ** 2);
    }
    return odds;
  }

  /** Multiplies the weights of candidates at known distance from the asked one by their fit. */
  #weighCandidates(asked: number, rttMs: number, { measuredMs, expectedMs }: Scales): void {
    const { weights, gapsMs } = this;
    const best = (4 * expectedMs) / measuredMs;
    const { count, indices, rttsMs } = this.knownTo(asked);
    for (let at = 0; at < count; at++) {
      const index = indices[at]!;
      const gapMs = Math.abs(rttsMs[at]! - rttMs);
      if (gapMs > gapsMs[index]!) gapsMs[index] = gapMs;
      const z = gapMs / measuredMs;
      const odds = 1 + z * z;
      weights[index]! *= best / (odds * odds);
    }
    gapsMs[asked] = Math.max(gapsMs[asked]!, rttMs);
    const z = (besideMs - rttMs) / measuredMs;
    const odds = 1 + z * z;
    weights[asked]! *= best / (odds * odds);
  }

  #weighVectors(asked: number, rttMs: number, { measuredMs, expectedMs }: Scales): void {
    const { rows, vectorWeights, learned } = this;
    if (rows.length === 0) return;
    const { vectors } = learned;
    const slot = this.slots.slotOf[asked]!;
    const leastWeight = this.heaviest * leastKept;
    for (let at = 0; at < rows.length; at++) {
      if (vectorWeights[at] === 0) continue;
      const row = rows[at]!;
      // Another subnet took its row since the round began.
      if (vectorWeights[at]! < leastWeight || vectors.generations[row] !== this.#generations[at]) {
        vectorWeights[at] = 0;
        continue;
      }
      const entry = vectors.find(row, slot);
      if (entry < 0) continue;
      const spreadMs = vectors.figures[2 * entry + 1]!;
      const scaleMs = spreadMs === 0 ? measuredMs : expectedMs + expectedScale.perSpread * spreadMs;
      const z = (vectors.figures[2 * entry]! - rttMs) / scaleMs;
      const odds = 1 + z * z;
      vectorWeights[at]! *= (4 * expectedMs) / (odds * odds * scaleMs);
    }
  }

  #findHeaviest(): void {
    const { weights, vectorWeights, members } = this;
    let heaviest = 0;
    for (let at = 0; at < members.length; at++)
      if (weights[members[at]!]! > heaviest) heaviest = weights[members[at]!]!;
    for (let at = 0; at < vectorWeights.length; at++)
      if (vectorWeights[at]! > heaviest) heaviest = vectorWeights[at]!;
    this.heaviest = heaviest;
  }

  #scaleUp(): void {
    const by = 1 / this.heaviest;
    this.#scaledBy *= by;
    for (const index of this.members) this.weights[index]! *= by;
    for (let at = 0; at < this.vectorWeights.length; at++) this.vectorWeights[at]! *= by;
    this.heaviest = 1;
  }

  /** Similar past subnets, and those of the likeliest candidates. */
  #chooseVectors(): { rows: number[]; winners: number[]; likeness: number[] } {
    const { fleet, placement, learned, shares } = this;
    const chosen = { rows: [] as number[], winners: [] as number[], likeness: [] as number[] };
    if (learned.vectors.size === 0) return chosen;
    const { vectors } = learned;
    const { indexOf } = this.slots;
    const numbers = placeNumbersOf(placement);
    const weights = {
      holder: ofSameHolder,
      neighbourhood: ofSameNeighbourhood,
      country: ofSameCountry,
      published: (placement.published ?? []).map(
        ({ source }) => 1 + (ofSamePublishedPlace - 1) * learned.sources.of(source),
      ),
    };
    const add = (row: number) => {
      const winner = indexOf[vectors.winners[row]!]!;
      if (winner < 0) return;
      chosen.rows.push(row);
      chosen.winners.push(winner);
      chosen.likeness.push(vectors.likeness(row, numbers, weights));
    };
    const alike = learned.alike(placement);
    for (const row of alike) add(row);
    const most = fleet.candidates.length > largestSmallFleet ? mostVectors.large : mostVectors.small;
    for (const index of likeliestOf(shares, Math.floor(most / learned.keptByEach)))
      for (const row of learned.wonBy(fleet.candidates[index]!)) if (!alike.includes(row)) add(row);
    return chosen;
  }
}

/** The first `count` entries of both columns. */
interface KnownCandidates {
  count: number;
  indices: Int32Array;
  rttsMs: Float64Array;
}

/** Filled again by each call. */
const known: KnownCandidates = { count: 0, indices: new Int32Array(0), rttsMs: new Float64Array(0) };

interface Scales {
  readonly measuredMs: number;
  readonly expectedMs: number;
}

/** 0, 1, 2 … cached for the latest fleet size, since whole-fleet rounds share it. */
let identity = new Int32Array(0);

function everybody(count: number): Int32Array {
  if (identity.length !== count) identity = Int32Array.from({ length: count }, (_, index) => index);
  return identity;
}

// What a finished round knows of its subnet, as entries of `LearnedRtts`: measured RTTs, elsewhere the mean over
// fitting places, bounded by the triangle inequality, with its spread.

/** Minimum weight of places in the mean, relative to the heaviest. */
const leastWeight = 1e-1;

/** In a fleet larger than a vector, this many of the nearest are kept besides the measured ones. */
const nearestKept = 64;

/** Weight of a place that only expects a crawler's RTT, relative to a measured one. */
const weightOfExpected = 0.1;

/** Share of a place's own variance that enters the mean's. */
const spreadHandedOn = 0.43;

function entriesOf(mixture: RttMixture, probes: readonly ObservedProbe[]): RttEntries {
  mixture.follow(probes);
  const { slotOf } = mixture.slots;
  const means = meansOver(mixture);
  const slots: number[] = [];
  const rttsMs: number[] = [];
  const spreadsMs: number[] = [];
  const measured = new Set<number>();
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    const index = mixture.fleet.indexOf.get(crawlerId)!;
    measured.add(index);
    if (rttMs === null || slots.length === mostEntries) continue;
    slots.push(slotOf[index]!);
    rttsMs.push(rttMs);
    spreadsMs.push(0);
  }
  const isSmall = mixture.fleet.candidates.length <= mostEntries;
  const nearest = smallestOf(means.rttsMs, isSmall ? mostEntries : nearestKept);
  const mostMs = mostByTriangle(
    mixture.fleet,
    probes,
    Array.from(nearest, (at) => means.indices[at]!),
  );
  for (let rank = 0; rank < nearest.length && slots.length < mostEntries; rank++) {
    const at = nearest[rank]!;
    const index = means.indices[at]!;
    if (measured.has(index)) continue;
    const meanMs = means.rttsMs[at]!;
    const keptMs = Math.min(mostMs[rank]!, Math.max(trustInTriangle * mixture.gapsMs[index]!, meanMs));
    slots.push(slotOf[index]!);
    rttsMs.push(keptMs);
    // Never 0, which means measured.
    spreadsMs.push(Math.max(0.1, Math.hypot(means.spreadsMs[at]!, keptMs - meanMs)));
  }
  return { slots, rttsMs, spreadsMs };
}

/** Each candidate's minimum y + D over the answers. Infinite if unknown. */
function mostByTriangle(
  fleet: CandidateFleet,
  probes: readonly ObservedProbe[],
  indices: readonly number[],
): Float64Array {
  const mostMs = new Float64Array(indices.length).fill(Number.POSITIVE_INFINITY);
  const to = Int32Array.from(indices, (index) => fleet.peerSlots[index]!);
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    if (rttMs === null) continue;
    const apartMs = fleet.peerRtts.rttsBetween(fleet.peerSlots[fleet.indexOf.get(crawlerId)!]!, to);
    for (let at = 0; at < mostMs.length; at++)
      if (rttMs + apartMs[at]! < mostMs[at]!) mostMs[at] = rttMs + apartMs[at]!;
  }
  return mostMs;
}

/** Weighted mean and standard deviation of candidates known to some place. */
function meansOver(mixture: RttMixture): {
  readonly indices: readonly number[];
  readonly rttsMs: Float64Array;
  readonly spreadsMs: Float64Array;
} {
  const { weights, rows, vectorWeights, heaviest, learned } = mixture;
  const { vectors } = learned;
  const { indexOf } = mixture.slots;
  const leastCounted = heaviest * leastWeight;
  const moments = new Moments(weights.length);
  for (const index of mixture.members)
    if (weights[index]! >= leastCounted) addPlace(moments, weights[index]!, mixture.fleet, index);
  for (let at = 0; at < rows.length; at++) {
    const weight = vectorWeights[at]!;
    if (weight < leastCounted || weight === 0) continue;
    const { first, last } = vectors.placesOf(rows[at]!);
    for (let entry = first; entry <= last; entry++) {
      const slot = vectors.slots[entry]!;
      const index = slot < 0 ? -1 : (indexOf[slot] ?? -1);
      if (index < 0) continue;
      const spreadMs = vectors.figures[2 * entry + 1]!;
      const counted = spreadMs === 0 ? weight : weight * weightOfExpected;
      moments.add(index, counted, vectors.figures[2 * entry]!, spreadHandedOn * spreadMs * spreadMs);
    }
  }
  return moments.take();
}

/** Adds a target beside the candidate: in a small fleet all at known distance, in a larger one the nearest. */
function addPlace(moments: Moments, weight: number, fleet: CandidateFleet, index: number): void {
  const { peerRtts, peerSlots, indexOfPeer } = fleet;
  moments.add(index, weight, besideMs, 0);
  if (fleet.candidates.length <= mostEntries) {
    const { length, peers, bestMs } = peerRtts.knownTo(peerSlots[index]!);
    for (let at = 0; at < length; at++) {
      const peer = indexOfPeer[peers[at]!] ?? -1;
      if (peer >= 0 && !Number.isNaN(bestMs[at]!)) moments.add(peer, weight, bestMs[at]!, 0);
    }
    return;
  }
  const { from, to, slots, rttsMs } = peerRtts.nearestAtHand(peerSlots[index]!);
  for (let at = from; at < to; at++) {
    const peer = indexOfPeer[slots[at]!] ?? -1;
    if (peer >= 0) moments.add(peer, weight, rttsMs[at]!, 0);
  }
}

/** Weighted sums per candidate, from which mean and variance follow. */
class Moments {
  static #scratch = new Float64Array(0);
  readonly #indices: number[] = [];
  readonly #sums: Float64Array;

  constructor(candidates: number) {
    if (Moments.#scratch.length < 3 * candidates) Moments.#scratch = new Float64Array(4 * candidates);
    this.#sums = Moments.#scratch;
  }

  add(index: number, weight: number, rttMs: number, variance: number): void {
    const sums = this.#sums;
    const at = 3 * index;
    if (sums[at] === 0) this.#indices.push(index);
    sums[at]! += weight;
    sums[at + 1]! += weight * rttMs;
    sums[at + 2]! += weight * (rttMs * rttMs + variance);
  }

  /** Returns the results. The sums are then reused. */
  take() {
    const sums = this.#sums;
    const indices = this.#indices;
    const rttsMs = new Float64Array(indices.length);
    const spreadsMs = new Float64Array(indices.length);
    for (let entry = 0; entry < indices.length; entry++) {
      const at = 3 * indices[entry]!;
      const mean = sums[at + 1]! / sums[at]!;
      rttsMs[entry] = mean;
      spreadsMs[entry] = Math.sqrt(Math.max(0, sums[at + 2]! / sums[at]! - mean * mean));
      sums.fill(0, at, at + 3);
    }
    return { indices, rttsMs, spreadsMs };
  }
}

/** Stores the winner and the measurements for later rounds. */
export function keepRound(mixture: RttMixture, winner: CrawlerId, probes: readonly ObservedProbe[]): void {
  mixture.learned.keep(winner, mixture.placement, entriesOf(mixture, probes));
}

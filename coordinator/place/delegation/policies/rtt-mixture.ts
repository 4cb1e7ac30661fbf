/**
 * Where a target may lie: a mixture over places of which the RTTs from the crawlers are known. There are two
 * sorts, the candidates themselves (a target beside crawler c sees the others as c does) and past subnets that
 * the crawlers measured (`learned-rtts.ts`). The prior of each candidate, from the tree, is shared out among the
 * places that it is nearest to; subnets of the same holder, neighbourhood or published place get more of it. Every answer then
 * weighs a place by how well it fits what that place would have answered:
 *
 *     weight /= (1 + z²)² · scale        z = (expected − answered) / scale
 *
 * Heavy tails, since round trips keep to no geometry. A place's expectation of a crawler that never measured
 * it is itself a mean over places, with a spread that widens the scale. Where nothing at all is expected, the weight
 * stays as it is, and those of the others are held against that: so an answer costs as much as is known of the crawler
 * that gave it, however large the fleet.
 *
 * A round has one mixture, which is written over with every answer. Who holds an earlier state of the round gets it back by
 * going through that state's answers again (`follow`).
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import type { CandidateFleet } from "../fleet.ts";
import type { Placement } from "../placement.ts";
import type { FleetSlots, LearnedRtts } from "./learned-rtts.ts";
import { type ObservedProbe, rttOf, trustInTriangle } from "./round.ts";
import { calledByAnswer, firstList, largestWholeFleet, likeliestOf } from "./short-list.ts";
import { mostEntries, placeNumbersOf, type RttEntries } from "./vector-table.ts";

/** Weight of a past subnet against one of which nothing is shared. */
const ofSameHolder = 35;

const ofSameNeighbourhood = 5;
const ofSameCountry = 3;
/** Where the source that says so is trusted wholly. */
const ofSamePublishedPlace = 35;

/** Scale of the error in ms, at RTT 0 and per ms: of what was measured, of what is only expected. */
const measuredScale = { ms: 4.65, perMs: 0.15 };

const expectedScale = { ms: 10.9, perMs: 0.3, perSpread: 0.74 };

/** Past subnets that a round looks at, those that are alike apart: of the likeliest candidates of a small fleet, of a larger one. */
const mostVectors = { small: 128, large: 32 };
const largestSmallFleet = 64;

/** A vector lighter than this, against the heaviest place, is dropped for the rest of the round. */
const leastKept = 1e-4;

/** How far off the fit of an answer to a target beside a candidate may be: the longer the path, the farther. */
export const fitScale = { ms: 5, perMs: 0.3 };

/** A target beside a crawler is about so far from it. */
export const besideMs = 1;

/** Below it, weights are scaled up again. */
const leastHeaviest = 1e-100;

export class RttMixture {
  readonly fleet: CandidateFleet;
  readonly placement: Placement;
  readonly learned: LearnedRtts;
  /** Belief that each candidate is the nearest before any answer, from the tree; without `floor`. */
  readonly shares: Float64Array;
  /** Belief that every candidate keeps. */
  readonly floor: number;
  /** Weight of the candidates as places; 0 for those that the round does not look at. */
  readonly weights: Float64Array;
  /** The candidates that it looks at: all, or a short list of a very large fleet. */
  members: Int32Array;
  /** Of the triangle inequality, in ms: |D − y| at most over the answers; below 0 where none is known. */
  readonly gapsMs: Float64Array;
  /** The past subnets that count: rows, who won each (as a candidate), and their weights. */
  readonly rows: Int32Array;
  readonly winners: Int32Array;
  readonly vectorWeights: Float64Array;
  /** Of all places, of both sorts. */
  heaviest = 0;
  /** By what the weights were multiplied, all answers together, to keep them from vanishing. */
  #scaledBy = 1;
  readonly #generations: Int32Array;
  readonly #startWeights: Float64Array;
  /** What was worked out after the answers so far, by whoever did; null: nothing yet. */
  memo: unknown = null;
  #followed: readonly ObservedProbe[] = [];
  /** The best answer followed so far, in ms. */
  #bestMs = Number.POSITIVE_INFINITY;
  readonly #firstMembers: Int32Array;

  constructor(given: {
    readonly fleet: CandidateFleet;
    readonly placement: Placement;
    readonly learned: LearnedRtts;
    readonly shares: Float64Array;
    readonly floor: number;
    /** The largest fleet that is looked at whole, where it is not the usual one. */
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

  /** True: it looks at a short list. */
  get isPart(): boolean {
    return this.#firstMembers.length < this.weights.length;
  }

  belief(index: number): number {
    return this.shares[index]! + this.floor;
  }

  /** The slots that past subnets know the candidates by. */
  get slots(): FleetSlots {
    return this.learned.slotsIn(this.fleet);
  }

  /** After these answers, and no others. */
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

  /** Of those that the round looks at, whose way to the candidate is known; to be read at once. */
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
    // A landmark has measured everybody.
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

  /** Before any answer. The prior of a candidate is shared out among itself and the subnets that it won. */
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

  /** Of a short list: the one who answered, and, if no answer was better, whom it calls in. Earlier answers weigh them, too. */
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

  /** How well a target beside the candidate fits these answers; notes the gaps that they leave. */
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

  /** By how well a target beside each of those whose way to the asked one is known fits the answer. */
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

  /** Past subnets that are alike, and those of the likeliest candidates. */
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

/** The first `count` of both columns. */
interface KnownCandidates {
  count: number;
  indices: Int32Array;
  rttsMs: Float64Array;
}

/** What was asked for last. */
const known: KnownCandidates = { count: 0, indices: new Int32Array(0), rttsMs: new Float64Array(0) };

interface Scales {
  readonly measuredMs: number;
  readonly expectedMs: number;
}

/** 0, 1, 2 … of the latest fleet's size: every round of a whole fleet looks at the same. */
let identity = new Int32Array(0);

function everybody(count: number): Int32Array {
  if (identity.length !== count) identity = Int32Array.from({ length: count }, (_, index) => index);
  return identity;
}

// What a finished round knows of its subnet, as entries for `LearnedRtts`: measured where a crawler answered;
// elsewhere the mean over the places that fit, kept within what the triangle inequality allows, with its spread.

/** Places lighter than this, against the heaviest, are left out of the mean. */
const leastWeight = 1e-1;

/** Of a fleet that does not fit into a vector whole, so many of the nearest are kept besides what was measured. */
const nearestKept = 64;

/** A place that only expects a crawler's RTT counts so much of one that measured it. */
const weightOfExpected = 0.1;

/** Of a place's own spread, what goes into the mean's (variances). */
const spreadHandedOn = 0.43;

/** Of a round with these answers. */
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
    // Never 0: that stands for measured.
    spreadsMs.push(Math.max(0.1, Math.hypot(means.spreadsMs[at]!, keptMs - meanMs)));
  }
  return { slots, rttsMs, spreadsMs };
}

/** Of each of these candidates the least y + D over the answers; infinite where nothing is known. */
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

/** Weighted mean and standard deviation of the candidates that some place knows of. */
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

/** A target beside the candidate: of a small fleet all whose way to it is known, of a larger one the nearest. */
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

  /** The sums make way for the next. */
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

/** Who won, and what the crawlers measured: for later rounds. */
export function keepRound(mixture: RttMixture, winner: CrawlerId, probes: readonly ObservedProbe[]): void {
  mixture.learned.keep(winner, mixture.placement, entriesOf(mixture, probes));
}

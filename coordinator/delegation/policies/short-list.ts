/**
 * Whom a round of `nearest` looks at in a large fleet. Everything that the policy works out is per candidate, and of
 * 10,000 nearly all are out of the question: so it looks at a short list, and answers call others in.
 *
 *   at first      the likeliest by the tree and the location hint, and their neighbours; who won subnets like this one,
 *                 and who was near to those; landmarks, and some drawn by a hash, so that no part of the world is missing
 *   the best      the neighbours of the crawler that gave it; of those that it knows, the ones at the distance that it
 *   answer so far answered with, the likeliest first
 *   all asked     the next likeliest
 *
 * Who is not on the list is not asked, and no runner-up. A fleet of up to 1,000 is its own list.
 */
import { mix32 } from "#core/random";
import { smallestOf } from "#core/small-collections";
import { type CandidateFleet, partOfFleet } from "../fleet.ts";
import { landmarkCount } from "../peers.ts";
import type { RoundInput } from "./round.ts";

/**
 * The largest fleet that is looked at whole, unless a round says otherwise. Among 1,000 crawlers a list costs a point of
 * accuracy (test/bench/results/delegation-cost.md) and looking at all of them little more than a list.
 */
export const largestWholeFleet = 1000;

const likeliestListed = 48;
/** Of so many of these, so many neighbours each. */
const likeliestFollowed = 6;
const neighboursOfEach = 6;
/** Of each past subnet like this one, besides its winner. */
const nearestToAlike = 3;
/** Landmarks, and more of the same draw where little is known. */
const mostDrawn = 64;
const leastListed = 80;

/** An answer calls in so many of either sort. */
const calledAsNeighbours = 12;
const calledAsFitting = 12;
/** A crawler fits an answer when the difference is at most this part of how far off such a fit may be. */
const fittingPart = 0.5;

const nextLikeliest = 32;

export interface ShortList {
  readonly whole: CandidateFleet;
  /** Belief from the tree, of the whole fleet. */
  readonly shares: Float64Array;
  readonly mayTake: (index: number) => boolean;
  /** Positions in the whole fleet, in the order of the list. */
  readonly members: readonly number[];
  /** Those on the list. */
  readonly fleet: CandidateFleet;
}

/** The list that a round begins with; null: the fleet is looked at whole. */
export function firstList(input: RoundInput, shares: Float64Array): ShortList | null {
  const { fleet: whole, learned, placement, mayTake: may } = input;
  if (whole.candidates.length <= (input.listFrom ?? largestWholeFleet)) return null;
  const mayTake = may === undefined ? () => true : (index: number) => may(whole.candidates[index]!);
  const { drawn, indexOfSlot } = chartOf(whole);
  const listed = new Set<number>();
  const add = (index: number | undefined) => {
    if (index !== undefined && index >= 0 && mayTake(index)) listed.add(index);
  };
  const likeliest = likeliestOf(shares, likeliestListed);
  for (const index of likeliest) add(index);
  for (const index of likeliest.slice(0, likeliestFollowed)) {
    const { slots } = whole.peerRtts.nearestOf(whole.peerSlots[index]!);
    for (const slot of slots.subarray(0, neighboursOfEach)) add(indexOfSlot[slot]);
  }
  for (const vector of learned.alike(placement)) {
    add(whole.indexOf.get(vector.crawlerId));
    for (const crawlerId of learned.nearestTo(vector, nearestToAlike)) add(whole.indexOf.get(crawlerId));
  }
  drawn.forEach((index, rank) => {
    if (rank < landmarkCount || listed.size < leastListed) add(index);
  });
  // Where many may not take it.
  for (let index = 0; index < whole.candidates.length && listed.size < leastListed; index++) add(index);
  return listOf(
    { whole, shares, mayTake },
    Array.from(listed).sort((a, b) => a - b),
  );
}

/** Whom an answer calls in; empty where everybody whom it speaks for is listed. */
export function calledByAnswer(
  { whole, shares, mayTake, fleet }: ShortList,
  answer: {
    readonly asked: number;
    readonly rttMs: number;
    readonly scaleMs: number;
  },
): number[] {
  const { indexOfSlot } = chartOf(whole);
  const slot = whole.peerSlots[answer.asked]!;
  const isNew = (index: number | undefined): index is number =>
    index !== undefined && index >= 0 && !fleet.indexOf.has(whole.candidates[index]!) && mayTake(index);
  const called: number[] = [];
  for (const peer of whole.peerRtts.nearestOf(slot).slots) {
    if (called.length === calledAsNeighbours) break;
    const index = indexOfSlot[peer];
    if (isNew(index)) called.push(index);
  }
  const reachMs = fittingPart * answer.scaleMs;
  const fitting = new Likeliest(shares, calledAsFitting);
  const rangeMs = { leastMs: answer.rttMs - reachMs, mostMs: answer.rttMs + reachMs };
  whole.peerRtts.eachWithin(slot, rangeMs, (peer) => {
    const index = indexOfSlot[peer];
    // Who is likely enough is few; whether they are new takes longer to tell.
    if (index !== undefined && index >= 0 && fitting.takes(index) && isNew(index) && !called.includes(index))
      fitting.add(index);
  });
  for (const index of fitting.found) called.push(index);
  return called;
}

/** Everybody on the list was asked: who comes next. */
export function calledWhenExhausted({ whole, shares, mayTake, fleet, members }: ShortList): number[] {
  const called: number[] = [];
  const add = (index: number) => {
    const isListed = fleet.indexOf.has(whole.candidates[index]!) || called.includes(index);
    if (!isListed && called.length < nextLikeliest && mayTake(index)) called.push(index);
  };
  likeliestOf(shares, members.length + nextLikeliest).forEach(add);
  for (let index = 0; index < whole.candidates.length && called.length < nextLikeliest; index++) add(index);
  return called;
}

/** A crawler of the whole fleet by its position; added at the end of the list. */
export function withCalled(list: ShortList, called: readonly number[]): ShortList {
  return listOf(list, [...list.members, ...called]);
}

function listOf(
  { whole, shares, mayTake }: Pick<ShortList, "whole" | "shares" | "mayTake">,
  members: readonly number[],
): ShortList {
  return { whole, shares, mayTake, members, fleet: partOfFleet(whole, members) };
}

/** Positions of those of whom anything is believed, the likeliest first; of equals the one that was added first. */
class Likeliest {
  readonly found: number[] = [];
  readonly #shares: Float64Array;
  readonly #most: number;
  /** Who is no likelier is not taken. */
  #least = 0;

  constructor(shares: Float64Array, most: number) {
    this.#shares = shares;
    this.#most = most;
  }

  takes(index: number): boolean {
    return this.#shares[index]! > this.#least;
  }

  /** One that it takes. */
  add(index: number): void {
    const shares = this.#shares;
    const found = this.found;
    const share = shares[index]!;
    let at = found.length < this.#most ? found.push(index) - 1 : found.length - 1;
    for (; at > 0 && shares[found[at - 1]!]! < share; at--) found[at] = found[at - 1]!;
    found[at] = index;
    if (found.length === this.#most) this.#least = shares[found[found.length - 1]!]!;
  }
}

function likeliestOf(shares: Float64Array, most: number): readonly number[] {
  const likeliest = new Likeliest(shares, most);
  for (let index = 0; index < shares.length; index++) if (likeliest.takes(index)) likeliest.add(index);
  return likeliest.found;
}

interface Chart {
  /** Positions drawn by a hash of the crawler's number; the landmarks of the whole fleet come first. */
  readonly drawn: readonly number[];
  /** By slot of the peers' table the position in the fleet; −1: it is not in it. */
  readonly indexOfSlot: Int32Array;
}

const charts = new WeakMap<CandidateFleet, Chart>();

/** Made once for a fleet. */
function chartOf(whole: CandidateFleet): Chart {
  const known = charts.get(whole);
  if (known !== undefined) return known;
  const { candidates, peerSlots } = whole;
  const indexOfSlot = new Int32Array(1 + peerSlots.reduce((most, slot) => Math.max(most, slot), 0)).fill(-1);
  peerSlots.forEach((slot, index) => {
    indexOfSlot[slot] = index;
  });
  const hashes = Float64Array.from(candidates, (crawlerId: number) => mix32(crawlerId));
  const chart = { drawn: Array.from(smallestOf(hashes, mostDrawn)), indexOfSlot };
  charts.set(whole, chart);
  return chart;
}

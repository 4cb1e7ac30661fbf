/**
 * Whom a round of `nearest` considers in a very large fleet. Of 10,000 crawlers each has measured some two hundred others,
 * and unknown places outnumber all known ones. So the round uses a short list that answers extend:
 *
 *     at first      the likeliest by the tree, and their neighbours; who won subnets like this one;
 *                   landmarks, and some drawn by a hash, so that no part of the world is missing
 *     the best      the neighbours of the crawler that gave it; of those that it knows, the ones at the distance that it
 *     answer so far answered with, the likeliest first
 *
 * A fleet of up to 3,000 is considered as a whole, since a list there is no more accurate and costs more
 * (test/bench/results/delegation-cost.md).
 */
import { mix32 } from "#core/random";
import { smallestOf } from "#core/small-collections";
import { landmarkCount } from "../../distances/peers.ts";
import type { CandidateFleet } from "../fleet.ts";

export const largestWholeFleet = 3000;

const likeliestListed = 48;
const likeliestFollowed = 6;
const neighboursOfEach = 6;
/** Maximum crawlers drawn: the landmarks, and more of the same draw if little is known. */
const mostDrawn = 64;
const leastListed = 80;

/** Crawlers of each kind that an answer adds. */
const calledAsNeighbours = 12;
const calledAsFitting = 12;
/** Tolerated difference from an answer, as a share of the fit's scale. */
const fittingPart = 0.5;

/** Initial candidates' positions without repetition. `winners` won similar past subnets. */
export function firstList(
  fleet: CandidateFleet,
  shares: Float64Array,
  winners: readonly number[],
): readonly number[] {
  const listed = new Set<number>();
  const likeliest = likeliestOf(shares, likeliestListed);
  for (const index of likeliest) listed.add(index);
  for (const index of likeliest.slice(0, likeliestFollowed))
    for (const neighbour of neighboursOf(fleet, index).slice(0, neighboursOfEach)) listed.add(neighbour);
  for (const winner of winners) listed.add(winner);
  drawnOf(fleet).forEach((index, rank) => {
    if (rank < landmarkCount || listed.size < leastListed) listed.add(index);
  });
  return [...listed];
}

/** The candidates that the best answer so far adds, without repetition but possibly already listed. */
export function calledByAnswer(
  fleet: CandidateFleet,
  shares: Float64Array,
  answer: { readonly asked: number; readonly rttMs: number; readonly scaleMs: number },
): readonly number[] {
  const called = neighboursOf(fleet, answer.asked).slice(0, calledAsNeighbours);
  const reachMs = fittingPart * answer.scaleMs;
  const fitting = new Likeliest(shares, calledAsFitting);
  const { length, peers, bestMs } = fleet.peerRtts.knownTo(fleet.peerSlots[answer.asked]!);
  for (let at = 0; at < length; at++) {
    if (!(Math.abs(bestMs[at]! - answer.rttMs) <= reachMs)) continue;
    const index = fleet.indexOfPeer[peers[at]!] ?? -1;
    if (index >= 0 && fitting.takes(index) && !called.includes(index)) fitting.add(index);
  }
  return called.concat(fitting.found);
}

function neighboursOf({ peerRtts, peerSlots, indexOfPeer }: CandidateFleet, index: number): number[] {
  const { from, to, slots } = peerRtts.nearestAtHand(peerSlots[index]!);
  const neighbours: number[] = [];
  for (let at = from; at < to; at++) {
    const peer = indexOfPeer[slots[at]!] ?? -1;
    if (peer >= 0) neighbours.push(peer);
  }
  return neighbours;
}

/** The positions of the largest positive values, largest first. Ties keep insertion order. */
class Likeliest {
  readonly found: number[] = [];
  readonly #shares: Float64Array;
  readonly #most: number;
  /** Values up to this are not taken. */
  #least = 0;

  constructor(shares: Float64Array, most: number) {
    this.#shares = shares;
    this.#most = most;
  }

  takes(index: number): boolean {
    return this.#shares[index]! > this.#least;
  }

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

/** Positions with any belief, likeliest first. Ties keep their order. */
export function likeliestOf(shares: Float64Array, most: number): readonly number[] {
  const likeliest = new Likeliest(shares, most);
  if (most > 0)
    for (let index = 0; index < shares.length; index++) if (likeliest.takes(index)) likeliest.add(index);
  return likeliest.found;
}

/** Candidates ordered by a hash of the crawler's number, the fleet's landmarks first. Cached per fleet. */
const draws = new WeakMap<CandidateFleet, Int32Array>();

function drawnOf(fleet: CandidateFleet): Int32Array {
  const known = draws.get(fleet);
  if (known !== undefined) return known;
  const hashes = Float64Array.from(fleet.candidates, (crawlerId: number) => mix32(crawlerId));
  const drawn = smallestOf(hashes, mostDrawn);
  draws.set(fleet, drawn);
  return drawn;
}

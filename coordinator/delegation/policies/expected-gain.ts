/**
 * What asking one more crawler is expected to save, in ms. The mixture (`rtt-mixture.ts`) gives a first estimate,
 * the mean of what each place promises; it knows nothing of how often such promises hold. So it is corrected by
 * a regression (Poisson, log link) on figures that every round has at hand:
 *
 *     saving = exp(w · features)        counted up to 15 ms, so that far-off hopes do not eat the probes
 *
 * The weights were fitted on rounds over fleets of 12, 50 and 200 crawlers drawn from measured round trips, with
 * trees of four kinds, and over generated worlds. In a fleet they do not fit, `GainCalibration` scales them.
 */

import type { CandidateColumns } from "./candidate-columns.ts";
import { trustInTriangle } from "./round.ts";
import { largestOf, type RttMixture } from "./rtt-mixture.ts";

/** What is known of the candidates after the answers so far, in the fleet's order. */
export interface Outlook {
  readonly mixture: RttMixture;
  readonly columns: CandidateColumns;
  /** The candidate with the best answer. */
  readonly best: number;
  /** How many were asked, with or without an answer. */
  readonly askedCount: number;
  /** Crawlers of the whole fleet, of which these may be a part. */
  readonly fleetSize: number;
}

/** A column each, in the fleet's order. */
export interface ExpectedGains {
  /** Saved by this probe for the subnet at hand, in ms; NaN: it was asked, or cannot be nearer. */
  readonly gainsMs: Float64Array;
  /** How many past subnets like this one the candidate has measured. */
  readonly alikeMeasured: Float64Array;
}

/** Places lighter than this, against the heaviest, say nothing any more. */
const leastWeight = 1e-2;
/** Spread of the saving around a place's promise, in ms: of what was measured and what is only expected. */
const measuredSpread = { ms: 2, perMs: 0.1 };
const expectedSpread = { ms: 2, perMs: 0.414, perSpread: 0.5 };
/** A candidate farther from the best than the triangle allows is asked only where a place speaks for it. */
const leastShare = 1e-3;

const fitted = {
  constant: -1.289,
  promise: 0.288,
  violation: 0.661,
  nearestShare: 0.236,
  fit: -0.008,
  belief: -0.172,
  bestRtt: 0.669,
  apart: -0.35,
  apartByBest: -0.124,
  answers: -0.573,
  fleet: 0.231,
} as const;

/** For every candidate that may be nearer than the best: what asking it is expected to save. */
export function expectedGains(outlook: Outlook): ExpectedGains {
  const { mixture, best } = outlook;
  const { rttsMs, beliefs, fits, gapsMs, asked } = outlook.columns;
  const { weights } = mixture;
  const candidates = rttsMs.length;
  const bestMs = rttsMs[best]!;
  const sums = sumsOver(mixture, bestMs);
  const total = sums.weight;
  const strongestFit = strongest(outlook.columns);
  const fromBest = mixture.view.rttsFrom(best);
  const { gainsMs, alikeMeasured } = sums;
  const perFleet =
    fitted.constant + fitted.fleet * Math.log(outlook.fleetSize) + fitted.bestRtt * Math.log(bestMs + 1);
  const perRound = perFleet + fitted.answers * Math.log(outlook.askedCount);
  for (let index = 0; index < candidates; index++) {
    gainsMs[index] = Number.NaN;
    if (asked[index] === 1) continue;
    const promiseMs = sums.promisesMs[index]! / total;
    const share = (sums.nearest[index]! + weights[index]!) / total;
    const gapMs = gapsMs[index]!;
    if (promiseMs <= leastShare && share <= leastShare && trustInTriangle * gapMs >= bestMs) continue;
    const belief = beliefs[index]!;
    const fit = Math.max(-10, Math.log(belief * fits[index]!) - strongestFit);
    const apartMs = fromBest[index]!;
    const apart = Math.log((Number.isNaN(apartMs) ? bestMs : apartMs) + 2);
    const apartByBest = apart - Math.log(bestMs + 1);
    const exponent =
      perRound +
      fitted.promise * Math.log(promiseMs + 1e-2) +
      fitted.violation * (gapMs > bestMs ? Math.log((bestMs + 1) / (gapMs + 1)) : 0) +
      fitted.nearestShare * Math.log(share + leastShare) +
      fitted.fit * fit +
      fitted.belief * Math.log(belief) +
      fitted.apart * apart +
      fitted.apartByBest * apartByBest * apartByBest;
    gainsMs[index] = Math.exp(Math.min(6, exponent));
  }
  return { gainsMs, alikeMeasured };
}

interface Sums {
  readonly weight: number;
  /** Per candidate, weighted: what the places promise to save against the best answer. */
  readonly promisesMs: Float64Array;
  /** Per candidate, weighted: vectors that it won. */
  readonly nearest: Float64Array;
  /** Per candidate: past subnets like this one that it measured, each counted by its likeness. */
  readonly alikeMeasured: Float64Array;
  /** Room for the result. */
  readonly gainsMs: Float64Array;
}

function sumsOver(mixture: RttMixture, bestMs: number): Sums {
  const { weights, vectors, winners, view, learned } = mixture;
  const candidates = weights.length - vectors.length;
  // One piece of memory: four would cost more than what is put into them.
  const { buffer } = new Float64Array(4 * candidates);
  const column = (at: number) => new Float64Array(buffer, 8 * at * candidates, candidates);
  const [promisesMs, nearest, alikeMeasured, gainsMs] = [column(0), column(1), column(2), column(3)];
  const heaviest = largestOf(weights);
  const leastCounted = heaviest * leastWeight;
  const reachMs = 2.5 * bestMs + 3;
  let weight = 0;
  for (let at = 0; at < candidates; at++) {
    weight += weights[at]!;
    if (weights[at]! < leastCounted) continue;
    const { count, indices: order, rttsMs } = view.nearestTo(at);
    for (let rank = 0; rank < count; rank++) {
      const rttMs = rttsMs[rank]!;
      if (rttMs > reachMs) break;
      promisesMs[order[rank]!]! += weights[at]! * promise(bestMs, rttMs, measuredSpreadMs(rttMs, bestMs));
    }
  }
  const indices = vectors.length === 0 ? noIndices : view.indicesIn(learned);
  for (let at = 0; at < vectors.length; at++) {
    const own = weights[candidates + at]!;
    weight += own;
    nearest[winners[at]!]! += own;
    if (own < leastCounted) continue;
    const { slots, rttsMs, spreadsMs, nearest: order, measured } = vectors[at]!;
    for (let rank = 0; rank < order.length; rank++) {
      const entry = order[rank]!;
      const rttMs = rttsMs[entry]!;
      if (rttMs > reachMs) break;
      const index = indices[slots === null ? entry : slots[entry]!]!;
      if (index < 0) continue;
      const spreadMs = spreadsMs[entry]!;
      const scaleMs =
        spreadMs === 0 ? measuredSpreadMs(rttMs, bestMs) : expectedSpreadMs(rttMs, spreadMs, bestMs);
      promisesMs[index]! += own * promise(bestMs, rttMs, scaleMs);
    }
    const likeness = own / heaviest;
    if (likeness < 0.02) continue;
    for (let rank = 0; rank < measured.length; rank++) {
      const index = indices[measured[rank]!]!;
      if (index >= 0) alikeMeasured[index]! += likeness;
    }
  }
  return { weight, promisesMs, nearest, alikeMeasured, gainsMs };
}

const noIndices = new Int32Array(0);

function measuredSpreadMs(rttMs: number, bestMs: number): number {
  return measuredSpread.ms + measuredSpread.perMs * Math.min(rttMs, 1.5 * bestMs);
}

function expectedSpreadMs(rttMs: number, spreadMs: number, bestMs: number): number {
  const { ms, perMs, perSpread } = expectedSpread;
  return ms + perMs * Math.min(rttMs, 1.5 * bestMs) + perSpread * Math.min(spreadMs, 2 * bestMs);
}

/** Mean of max(0, best − RTT) where the RTT lies around what is expected: a parabola between nothing and all. */
function promise(bestMs: number, expectedMs: number, spreadMs: number): number {
  const z = (bestMs - expectedMs) / spreadMs;
  if (z <= -1.5) return 0;
  return z >= 1.5 ? bestMs - expectedMs : (spreadMs * (z + 1.5) * (z + 1.5)) / 6;
}

function strongest({ beliefs, fits }: CandidateColumns): number {
  let most = 0;
  for (let index = 0; index < beliefs.length; index++) most = Math.max(most, beliefs[index]! * fits[index]!);
  return Math.log(most);
}

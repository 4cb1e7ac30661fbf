/**
 * Estimates how many ms asking one more crawler saves. The mixture (`rtt-mixture.ts`) gives the mean of what each place
 * promises, but not how often such promises hold. A regression (Poisson, log link) on figures available in every round
 * corrects it:
 *     saving = exp(w · features)        counted up to 15 ms, so that unlikely large savings do not use up the probes
 *
 * The weights were fitted on rounds over fleets of 12, 50 and 200 crawlers from measured round trips, with trees of four
 * kinds, and over generated worlds. `GainCalibration` scales them for fleets they do not fit.
 */

import { listedAsNearest } from "./learned-rtts.ts";
import { type ObservedProbe, trustInTriangle } from "./round.ts";
import { besideMs, type RttMixture } from "./rtt-mixture.ts";

interface Outlook {
  readonly mixture: RttMixture;
  readonly probes: readonly ObservedProbe[];
  readonly best: number;
  readonly bestMs: number;
}

/** The candidates that may be nearer than the best and were not asked, in columns. */
export interface ExpectedGains {
  readonly indices: Int32Array;
  /** Expected saving of this probe for this subnet, in ms. */
  readonly gainsMs: Float64Array;
  /** Past similar subnets the candidate measured, weighted by likeness. */
  readonly alikeMeasured: Float64Array;
}

/** Minimum weight of a place, relative to the heaviest. Lighter places are ignored. */
const leastWeight = 1e-2;
/** Spread of the saving around a place's promise, in ms: for measured and for expected RTTs. */
const measuredSpread = { ms: 2, perMs: 0.1 };
const expectedSpread = { ms: 2, perMs: 0.414, perSpread: 0.5 };
/** A candidate farther from the best than the triangle allows is only asked if a place supports it. */
const leastShare = 1e-3;
/** Maximum fleet of which all candidates are considered. In larger ones, only those that some place supports. */
const largestLookedAtWhole = 64;

const fitted = {
  constant: -1.289,
  promise: 0.288,
  violation: 0.661,
  nearestShare: 0.236,
  belief: -0.172,
  bestRtt: 0.669,
  apart: -0.35,
  apartByBest: -0.124,
  answers: -0.573,
  fleet: 0.231,
} as const;

export function expectedGains(outlook: Outlook): ExpectedGains {
  const { mixture } = outlook;
  mixture.follow(outlook.probes);
  mixture.memo ??= gainsOf(outlook);
  return mixture.memo as ExpectedGains;
}

/** Sums over the places for each candidate, reused between calls. */
const sums = {
  /** Weighted promised savings against the best answer. */
  promisesMs: new Float64Array(0),
  /** Weight of the past vectors in which the candidate was the winner. */
  nearest: new Float64Array(0),
  /** Past similar subnets it measured, weighted by likeness. */
  alikeMeasured: new Float64Array(0),
  isSpokenFor: new Uint8Array(0),
  spokenFor: new Int32Array(0),
  /** RTT in ms from the best. NaN if unknown. */
  apartMs: new Float64Array(0),
};

function speakFor(index: number, count: number): number {
  if (sums.isSpokenFor[index] === 1) return count;
  sums.isSpokenFor[index] = 1;
  sums.spokenFor[count] = index;
  return count + 1;
}

function gainsOf(outlook: Outlook): ExpectedGains {
  const { mixture, best, bestMs, probes } = outlook;
  const { fleet, weights, gapsMs, shares, floor } = mixture;
  const candidates = weights.length;
  if (sums.promisesMs.length < candidates) makeRoom(Math.ceil(1.25 * candidates));
  const { weight: total, count } = sumOver(mixture, bestMs);
  const { promisesMs, nearest, alikeMeasured, isSpokenFor, spokenFor, apartMs } = sums;
  const fromBest = mixture.knownTo(best);
  for (let at = 0; at < fromBest.count; at++) apartMs[fromBest.indices[at]!] = fromBest.rttsMs[at]!;
  for (const { crawlerId } of probes) isSpokenFor[fleet.indexOf.get(crawlerId)!] = 2;
  const bestLog = Math.log(bestMs + 1);
  const perRound =
    fitted.constant +
    fitted.fleet * Math.log(candidates) +
    fitted.bestRtt * bestLog +
    fitted.answers * Math.log(probes.length);
  const indices = new Int32Array(count);
  const gainsMs = new Float64Array(count);
  const alike = new Float64Array(count);
  let found = 0;
  for (let rank = 0; rank < count; rank++) {
    const index = spokenFor[rank]!;
    if (isSpokenFor[index] === 2) continue;
    const promiseMs = promisesMs[index]! / total;
    const share = (nearest[index]! + weights[index]!) / total;
    const gapMs = gapsMs[index]!;
    if (promiseMs <= leastShare && share <= leastShare && trustInTriangle * gapMs >= bestMs) continue;
    const toBestMs = apartMs[index]!;
    const apart = roughLog((Number.isNaN(toBestMs) ? bestMs : toBestMs) + 2);
    const apartByBest = apart - bestLog;
    const exponent =
      perRound +
      fitted.promise * roughLog(promiseMs + 1e-2) +
      fitted.violation * (gapMs > bestMs ? bestLog - roughLog(gapMs + 1) : 0) +
      fitted.nearestShare * roughLog(share + leastShare) +
      fitted.belief * roughLog(shares[index]! + floor) +
      fitted.apart * apart +
      fitted.apartByBest * apartByBest * apartByBest;
    indices[found] = index;
    gainsMs[found] = Math.exp(Math.min(6, exponent));
    alike[found] = alikeMeasured[index]!;
    found += 1;
  }
  for (let at = 0; at < fromBest.count; at++) apartMs[fromBest.indices[at]!] = Number.NaN;
  for (const { crawlerId } of probes) isSpokenFor[fleet.indexOf.get(crawlerId)!] = 0;
  for (let rank = 0; rank < count; rank++) {
    const index = spokenFor[rank]!;
    promisesMs[index] = 0;
    nearest[index] = 0;
    alikeMeasured[index] = 0;
    isSpokenFor[index] = 0;
  }
  return {
    indices: indices.subarray(0, found),
    gainsMs: gainsMs.subarray(0, found),
    alikeMeasured: alike.subarray(0, found),
  };
}

function makeRoom(candidates: number): void {
  sums.promisesMs = new Float64Array(candidates);
  sums.nearest = new Float64Array(candidates);
  sums.alikeMeasured = new Float64Array(candidates);
  sums.isSpokenFor = new Uint8Array(candidates);
  sums.spokenFor = new Int32Array(candidates);
  sums.apartMs = new Float64Array(candidates).fill(Number.NaN);
}

/** Fills the sums. Returns the weight of all places and the number of supported candidates. */
function sumOver(mixture: RttMixture, bestMs: number): { readonly weight: number; readonly count: number } {
  const { fleet, weights, heaviest, members, isPart } = mixture;
  const { promisesMs } = sums;
  const leastCounted = heaviest * leastWeight;
  const reachMs = 2.5 * bestMs + 3;
  let weight = 0;
  let count = 0;
  if (weights.length <= largestLookedAtWhole)
    for (let index = 0; index < weights.length; index++) count = speakFor(index, count);
  for (let member = 0; member < members.length; member++) {
    const at = members[member]!;
    const own = weights[at]!;
    weight += own;
    if (own < leastCounted) continue;
    count = speakFor(at, count);
    promisesMs[at]! += own * promise(bestMs, besideMs, measuredSpreadMs(besideMs, bestMs));
    const { from, to, slots, rttsMs } = fleet.peerRtts.nearestAtHand(fleet.peerSlots[at]!);
    let left = listedAsNearest - 1;
    for (let rank = from; rank < to && left > 0; rank++) {
      const index = fleet.indexOfPeer[slots[rank]!] ?? -1;
      if (index < 0 || (isPart && weights[index] === 0)) continue;
      const rttMs = rttsMs[rank]!;
      if (rttMs > reachMs) break;
      left -= 1;
      count = speakFor(index, count);
      promisesMs[index]! += own * promise(bestMs, rttMs, measuredSpreadMs(rttMs, bestMs));
    }
  }
  return sumOverVectors(mixture, bestMs, { weight, count });
}

function sumOverVectors(
  { rows, winners, weights, vectorWeights, heaviest, learned, isPart, slots: { indexOf } }: RttMixture,
  bestMs: number,
  so: { readonly weight: number; readonly count: number },
): { readonly weight: number; readonly count: number } {
  const { promisesMs, nearest, alikeMeasured } = sums;
  const { figures, slots, nearest: listed, measured } = learned.vectors;
  const leastCounted = heaviest * leastWeight;
  const reachMs = 2.5 * bestMs + 3;
  let { weight, count } = so;
  for (let at = 0; at < rows.length; at++) {
    const own = vectorWeights[at]!;
    if (own === 0) continue;
    weight += own;
    count = speakFor(winners[at]!, count);
    nearest[winners[at]!]! += own;
    if (own < leastCounted) continue;
    const row = rows[at]!;
    for (let rank = 0; rank < listed.counts[row]!; rank++) {
      const entry = listed.at(row, rank);
      const rttMs = figures[2 * entry]!;
      if (rttMs > reachMs) break;
      const index = indexOf[slots[entry]!] ?? -1;
      if (index < 0 || (isPart && weights[index] === 0)) continue;
      const spreadMs = figures[2 * entry + 1]!;
      const scaleMs =
        spreadMs === 0 ? measuredSpreadMs(rttMs, bestMs) : expectedSpreadMs(rttMs, spreadMs, bestMs);
      count = speakFor(index, count);
      promisesMs[index]! += own * promise(bestMs, rttMs, scaleMs);
    }
    const likeness = own / heaviest;
    if (likeness < 0.02) continue;
    for (let rank = 0; rank < measured.counts[row]!; rank++) {
      const index = indexOf[slots[measured.at(row, rank)]!] ?? -1;
      if (index < 0 || (isPart && weights[index] === 0)) continue;
      count = speakFor(index, count);
      alikeMeasured[index]! += likeness;
    }
  }
  return { weight, count };
}

function measuredSpreadMs(rttMs: number, bestMs: number): number {
  return measuredSpread.ms + measuredSpread.perMs * Math.min(rttMs, 1.5 * bestMs);
}

function expectedSpreadMs(rttMs: number, spreadMs: number, bestMs: number): number {
  const { ms, perMs, perSpread } = expectedSpread;
  return ms + perMs * Math.min(rttMs, 1.5 * bestMs) + perSpread * Math.min(spreadMs, 2 * bestMs);
}

/**
 * Approximates the mean of max(0, best − RTT) for RTTs spread around the expected one: zero when far above best, the full
 * difference when far below, and a parabola in between.
 */
function promise(bestMs: number, expectedMs: number, spreadMs: number): number {
  const z = (bestMs - expectedMs) / spreadMs;
  if (z <= -1.5) return 0;
  return z >= 1.5 ? bestMs - expectedMs : (spreadMs * (z + 1.5) * (z + 1.5)) / 6;
}

// Takes logarithms from a table of the mantissa's first ten bits, to within 0.0005: precise enough for a regression,
// and hundreds are needed per answer.

const mantissaBits = 10;
const logOfMantissa = Float64Array.from({ length: 2 ** mantissaBits }, (_, at) =>
  Math.log(1 + (at + 0.5) / 2 ** mantissaBits),
);
const asNumber = new Float64Array(1);
const asBits = new Int32Array(asNumber.buffer);

function roughLog(value: number): number {
  asNumber[0] = value;
  const bits = asBits[1]!;
  return (
    ((bits >>> 20) - 1023) * Math.LN2 +
    logOfMantissa[(bits >>> (20 - mantissaBits)) & (2 ** mantissaBits - 1)]!
  );
}

/**
 * What a finished round knows of its subnet, as a vector for `LearnedRtts`: measured where a crawler answered;
 * elsewhere the mean over the places that fit, kept within what the triangle inequality allows, with its spread.
 */
import type { CrawlerId } from "#core/ids";
import type { Placement } from "../placement.ts";
import type { LearnedVector } from "./learned-rtts.ts";
import { type RoundState, rttOf } from "./round.ts";
import { largestOf, type RttMixture } from "./rtt-mixture.ts";
import { trustInTriangle } from "./triangle.ts";

interface MeasuredRound extends RoundState {
  readonly placement: Placement;
  readonly mixture: RttMixture;
  readonly gapsMs: Float64Array;
}

/** Places lighter than this, against the heaviest, are left out of the mean. */
const leastWeight = 1e-2;
/** A place that only expects a crawler's RTT counts so much of one that measured it. */
const weightOfExpected = 0.1;
/** Of a place's own spread, what goes into the mean's (variances). */
const spreadHandedOn = 0.43;

/** Of a round that this crawler won. */
export function vectorOf(crawlerId: CrawlerId, round: MeasuredRound): Omit<LearnedVector, "nearest"> {
  const { mixture, fleet, placement } = round;
  const slots = mixture.view.slotsIn(mixture.learned);
  const means = meansOver(mixture);
  const mostMs = upperBounds(round);
  const rttsMs = new Float32Array(mixture.learned.slots).fill(Number.NaN);
  const spreadsMs = new Float32Array(mixture.learned.slots);
  means.rttsMs.forEach((meanMs, index) => {
    if (Number.isNaN(meanMs)) return;
    const leastMs = trustInTriangle * round.gapsMs[index]!;
    const keptMs = Math.min(mostMs[index]!, Math.max(leastMs, meanMs));
    rttsMs[slots[index]!] = keptMs;
    // Never 0: that stands for measured.
    spreadsMs[slots[index]!] = Math.max(0.1, Math.hypot(means.spreadsMs[index]!, keptMs - meanMs));
  });
  const measured: number[] = [];
  for (const probe of round.probes) {
    const rttMs = rttOf(probe.observation);
    if (rttMs === null) continue;
    const slot = slots[fleet.indexOf.get(probe.crawlerId)!]!;
    rttsMs[slot] = rttMs;
    spreadsMs[slot] = 0;
    measured.push(slot);
  }
  return { crawlerId, placement, rttsMs, spreadsMs, measured: Int32Array.from(measured) };
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
  for (let at = 0; at < candidates; at++)
    if (weights[at]! >= leastCounted) addPlace(moments, weights[at]!, view.placeOf(at).rttsMs);
  const slots = view.slotsIn(mixture.learned);
  for (let at = 0; at < vectors.length; at++)
    if (weights[candidates + at]! >= leastCounted)
      addVector(moments, weights[candidates + at]!, vectors[at]!, slots);
  const means = moments.firsts.map((first, index) => first / moments.weights[index]!);
  const spreads = moments.seconds.map((second, index) =>
    Math.sqrt(Math.max(0, second / moments.weights[index]! - means[index]! * means[index]!)),
  );
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

function addVector(moments: Moments, weight: number, vector: LearnedVector, slots: Int32Array): void {
  const { weights, firsts, seconds } = moments;
  const { rttsMs, spreadsMs } = vector;
  for (let index = 0; index < weights.length; index++) {
    const rttMs = rttsMs[slots[index]!];
    if (rttMs === undefined || Number.isNaN(rttMs)) continue;
    const spreadMs = spreadsMs[slots[index]!]!;
    const counted = spreadMs === 0 ? weight : weight * weightOfExpected;
    weights[index]! += counted;
    firsts[index]! += counted * rttMs;
    seconds[index]! += counted * (rttMs * rttMs + spreadHandedOn * spreadMs * spreadMs);
  }
}

/** At most y + D from a crawler that answered (triangle inequality); infinite where nothing is known. */
function upperBounds({ probes, fleet, mixture }: MeasuredRound): Float64Array {
  const mostMs = new Float64Array(fleet.candidates.length).fill(Number.POSITIVE_INFINITY);
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    if (rttMs === null) continue;
    const apart = mixture.view.placeOf(fleet.indexOf.get(crawlerId)!).rttsMs;
    for (let index = 0; index < mostMs.length; index++)
      if (rttMs + apart[index]! < mostMs[index]!) mostMs[index] = rttMs + apart[index]!;
  }
  return mostMs;
}

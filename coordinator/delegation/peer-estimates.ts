/**
 * RTTs between crawlers that have not measured each other yet, from the landmarks that both have measured. By
 * the triangle inequality the RTT from a to b lies, for each landmark l, between |D[a][l] − D[b][l]| and
 * D[a][l] + D[b][l]; the estimate is the middle of what all landmarks leave.
 *
 * Estimates are off by some 20 ms, and by 50 in one of ten (the Internet violates the inequality). They say
 * whom a crawler should measure next, and nothing else: given to `nearest` as if measured they cost five to
 * ten points of accuracy in simulation, and as hints of whom to ask they saved probes with 200 crawlers and
 * cost some with 1,000 (test/bench/results/calibration.md). A pair that is not measured stays unknown to it.
 */
import type { CrawlerId } from "#core/ids";
import type { PeerMatrix } from "./peers.ts";

/** In ms from one slot to every slot of the matrix, measured or not; NaN where nothing can be said. */
export function estimatedRow(matrix: PeerMatrix, own: number, landmarks: readonly CrawlerId[]): Float32Array {
  const least = new Float32Array(matrix.size);
  const most = new Float32Array(matrix.size).fill(Number.POSITIVE_INFINITY);
  for (const landmark of landmarks) {
    const slot = matrix.slots.get(landmark);
    const ownMs = slot === undefined ? Number.NaN : matrix.rttMs(own, slot);
    if (slot === undefined || Number.isNaN(ownMs)) continue;
    const row = matrix.rows[slot]!;
    for (let index = 0; index < least.length; index++) {
      const gap = Math.abs(row[index]! - ownMs);
      // Comparisons with NaN are false: what the landmark does not know leaves the bounds alone.
      if (gap > least[index]!) least[index] = gap;
      if (row[index]! + ownMs < most[index]!) most[index] = row[index]! + ownMs;
    }
  }
  for (let index = 0; index < least.length; index++) {
    const isBounded = Number.isFinite(most[index]!) && index !== own;
    least[index] = isBounded ? (least[index]! + most[index]!) / 2 : Number.NaN;
  }
  return least;
}

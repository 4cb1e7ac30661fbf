/**
 * RTTs between crawlers that have not measured each other yet, from the landmarks that both have measured. By
 * the triangle inequality the RTT from a to b lies, for each landmark l, between |D[a][l] − D[b][l]| and
 * D[a][l] + D[b][l]; the estimate is the middle of what all landmarks leave, the doubt a quarter of its width.
 *
 * Estimates are off by some 20 ms, and by 50 in one of ten (the Internet violates the inequality), so they
 * only help to choose whom to ask next. They rule nobody out: used as if measured, they cost `nearest` five
 * to ten points of accuracy in simulation; used for the order alone, none.
 */
import type { CrawlerId } from "../ids.ts";
import type { PeerMatrix } from "./peer-matrix.ts";

/** Per slot of the matrix; NaN where nothing can be said. */
export interface EstimatedRow {
  readonly rttsMs: Float32Array;
  /** How far off the estimate may well be, in ms. */
  readonly doubtsMs: Float32Array;
}

const doubtOfWidth = 0.25;
const leastDoubtMs = 1;

/** What can be said of the RTTs from one slot, measured or not. */
export function estimatedRow(matrix: PeerMatrix, own: number, landmarks: readonly CrawlerId[]): EstimatedRow {
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
    const widthMs = Math.abs(most[index]! - least[index]!);
    least[index] = Number.isFinite(widthMs) ? (least[index]! + most[index]!) / 2 : Number.NaN;
    most[index] = Number.isFinite(widthMs) ? Math.max(leastDoubtMs, doubtOfWidth * widthMs) : Number.NaN;
  }
  return { rttsMs: least, doubtsMs: most };
}

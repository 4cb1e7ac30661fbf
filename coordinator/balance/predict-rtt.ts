/**
 * The round-trip time between a crawler and a subnet that it never probed, from what others measured and from the
 * crawlers' distances to each other (design section 6). By the triangle inequality, what crawler `a` measured as
 * `y` is for crawler `c` between |D[a][c] − y| and D[a][c] + y; the bounds of all who measured are put together.
 * Half way between them is the prediction; what rounds have taught about it is added elsewhere (learned-offsets).
 */

/** Taken where nothing at all is known of a pair: about half way round the world by cable. */
export const unknownRttMs = 200;

/** Stands for the RTT of a crawler that could not measure the subnet: any other is better, and it tells nothing of the others. */
export const unmeasurableMs = 10_000;

/** Measurements of one subnet: at `from` up to `to` who measured, by index, and what (ms). */
export interface Measurements {
  readonly from: number;
  readonly to: number;
  readonly crawlers: Uint16Array;
  readonly rttsMs: Float64Array;
  /** Per crawler its RTTs (ms; NaN: unknown) to all crawlers. */
  readonly apartMs: readonly Float64Array[];
}

/** Writes the least and the most that each crawler's RTT can be; `most` stays infinite where nothing is known. */
export function boundsInto(known: Measurements, least: Float64Array, most: Float64Array): void {
  let isFirst = true;
  for (let at = known.from; at < known.to; at++) {
    if (known.rttsMs[at]! >= unmeasurableMs) continue;
    if (isFirst) setBounds(known.apartMs[known.crawlers[at]!]!, known.rttsMs[at]!, least, most);
    else tightenBounds(known.apartMs[known.crawlers[at]!]!, known.rttsMs[at]!, least, most);
    isFirst = false;
  }
  if (!isFirst) return;
  least.fill(0);
  most.fill(Number.POSITIVE_INFINITY);
}

function setBounds(apartMs: Float64Array, rttMs: number, least: Float64Array, most: Float64Array): void {
  for (let crawler = 0; crawler < least.length; crawler++) {
    const apart = apartMs[crawler]!;
    const isKnown = apart >= 0;
    least[crawler] = isKnown ? Math.abs(apart - rttMs) : 0;
    most[crawler] = isKnown ? apart + rttMs : Number.POSITIVE_INFINITY;
  }
}

function tightenBounds(apartMs: Float64Array, rttMs: number, least: Float64Array, most: Float64Array): void {
  for (let crawler = 0; crawler < least.length; crawler++) {
    const apart = apartMs[crawler]!;
    // False for NaN: what is unknown leaves the bounds alone.
    if (!(apart >= 0)) continue;
    least[crawler] = Math.max(least[crawler]!, Math.abs(apart - rttMs));
    most[crawler] = Math.min(most[crawler]!, apart + rttMs);
  }
}

/** Half way between the bounds. Where triangles are violated the bounds cross; the middle is still the best guess. */
export function middleOf(leastMs: number, mostMs: number): number {
  return mostMs === Number.POSITIVE_INFINITY ? unknownRttMs : (leastMs + mostMs) / 2;
}

/**
 * What would be predicted for one crawler from all measurements but its own. Null when nothing is known of its
 * distance to any other that measured.
 */
export function predictedWithout(known: Measurements, crawler: number): number | null {
  const { least, most } = boundsFor(known, crawler);
  return most === Number.POSITIVE_INFINITY ? null : middleOf(least, most);
}

/**
 * How far off the prediction for a crawler is, as the standard deviation in ms: on PlanetLab's matrices and on
 * generated worlds the error has a floor and grows with the width that the bounds leave.
 */
export function predictionSpreadMs(known: Measurements, crawler: number): number {
  const { least, most } = boundsFor(known, crawler);
  if (most === Number.POSITIVE_INFINITY) return unknownRttMs / 2;
  return 8 + 0.25 * Math.max(0, most - least);
}

/** Bounds for one crawler from the others' measurements. */
export function boundsFor(
  known: Measurements,
  crawler: number,
): { readonly least: number; readonly most: number } {
  let least = 0;
  let most = Number.POSITIVE_INFINITY;
  for (let at = known.from; at < known.to; at++) {
    if (known.crawlers[at] === crawler || known.rttsMs[at]! >= unmeasurableMs) continue;
    const apart = known.apartMs[known.crawlers[at]!]![crawler]!;
    const rtt = known.rttsMs[at]!;
    if (Math.abs(apart - rtt) > least) least = Math.abs(apart - rtt);
    if (apart + rtt < most) most = apart + rtt;
  }
  return { least, most };
}

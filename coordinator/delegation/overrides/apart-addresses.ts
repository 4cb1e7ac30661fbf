/**
 * Which addresses of a leaf measure apart from the rest, by the connect times of ordinary fetches: a
 * suspicion that costs nothing, to be confirmed by probing (`leaf-parts.ts` then cuts the range).
 *
 * Noise and a busy crawler only ever add to a connect time, so an address's level is the lower quartile of
 * its latest times: with exponential noise of 4 ms the level of three times is 1.3 ms above the truth on
 * average, and more than 15 ms above it for one address in 77,000 (e^-11.25). Two limits have to be passed at
 * once: a number of ms, and a share of the usual level (long paths differ by more, within one place).
 *
 * Only times of one crawler may be compared, and only connect times: a first byte contains the server.
 */

export interface AddressTimes {
  readonly address: string;
  /** Connect times in ms of the latest fetches, in any order. */
  readonly timesMs: readonly number[];
}

export interface ApartRule {
  /** Fewer times than this say nothing of an address. */
  readonly leastTimes: number;
  /** Apart by more than so many ms … */
  readonly marginMs: number;
  /** … and by more than this share of the usual level. */
  readonly marginShare: number;
}

export const defaultApartRule: ApartRule = { leastTimes: 3, marginMs: 15, marginShare: 0.2 };

export interface ApartVerdict {
  /** What the rest of the leaf measures, in ms; null when nothing is known well enough. */
  readonly usualMs: number | null;
  readonly alike: readonly JudgedLevel[];
  readonly apart: readonly JudgedLevel[];
}

export interface JudgedLevel {
  readonly address: string;
  readonly levelMs: number;
}

/**
 * `expectedMs`: what this crawler measured by connect when the leaf was delegated to it; null where that is
 * not known, then the middle address is taken for the usual. When no address is as expected, the way to the
 * whole leaf has changed, which is recalibration's business: then nothing is apart.
 */
export function apartAddresses(
  addresses: readonly AddressTimes[],
  expectedMs: number | null,
  rule: ApartRule = defaultApartRule,
): ApartVerdict {
  const levels = addresses
    .map(({ address, timesMs }) => ({ address, levelMs: levelOf(timesMs, rule.leastTimes) }))
    .filter((one): one is JudgedLevel => one.levelMs !== null)
    .toSorted((a, b) => a.levelMs - b.levelMs);
  const usualMs = expectedMs ?? levels[(levels.length - 1) >> 1]?.levelMs ?? null;
  if (usualMs === null) return { usualMs, alike: [], apart: [] };
  const alike = levels.filter(({ levelMs }) => isAlike(levelMs, usualMs, rule));
  if (alike.length === 0) return { usualMs, alike, apart: [] };
  return { usualMs, alike, apart: levels.filter((one) => !alike.includes(one)) };
}

/** True when two levels can be of one place. */
export function isAlike(aMs: number, bMs: number, rule: ApartRule = defaultApartRule): boolean {
  return Math.abs(aMs - bMs) <= Math.max(rule.marginMs, rule.marginShare * Math.max(aMs, bMs));
}

/** The lower quartile; null for fewer times than that. */
function levelOf(timesMs: readonly number[], leastTimes: number): number | null {
  const valid = timesMs.filter((timeMs) => timeMs >= 0 && Number.isFinite(timeMs)).toSorted((a, b) => a - b);
  return valid.length < leastTimes ? null : valid[(valid.length - 1) >> 2]!;
}

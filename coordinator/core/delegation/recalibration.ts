/**
 * Recalibration (paper section 4.4): the time of each fetch is compared with the same host's past; slower
 * than usual by the operator's factor more than once in a row, and the subnet is probed again.
 *
 * "Usual" is the median of the earlier fetches, which one slow page does not move. Three limits have to be
 * passed at once, each against another kind of false alarm: the factor (the operator's), a multiple of the
 * host's own spread (hosts that are always restless), and a floor in ms (hosts so near that noise alone
 * doubles their time).
 *
 * The caller gives the times of one kind (connect, or first byte) of fetches by the crawler that owns the
 * subnet now: after a redelegation the history starts anew.
 */

export interface RecalibrationRule {
  /** Slower than usual: above the median times this. */
  readonly factor: number;
  /** So many slow fetches in a row; the paper's "more than one time continuously" is 2. */
  readonly inARow: number;
  /** Fewer earlier fetches than this are no history to compare with. */
  readonly leastHistory: number;
  /** Slower by so many robust standard deviations (1.4826 · median absolute deviation). */
  readonly spreads: number;
  /** Slower by so many ms. */
  readonly floorMs: number;
}

export const defaultRecalibrationRule: RecalibrationRule = {
  factor: 1.5,
  inARow: 2,
  leastHistory: 5,
  spreads: 6,
  floorMs: 10,
};

export interface RecalibrationVerdict {
  readonly verdict: "no-history" | "usual" | "slow" | "probe-again";
  /** Median of the earlier fetches; null without a history. */
  readonly usualMs: number | null;
  /** Above this a fetch is slow. */
  readonly limitMs: number | null;
  /** Slow fetches in a row at the end, as far as they count. */
  readonly slowInARow: number;
}

/**
 * Judges a host by its fetch times in ms, oldest first. The last `inARow` are held against those before
 * them; times that are none (negative, NaN) are left out.
 */
export function judgeFetchTimes(
  timesMs: readonly number[],
  rule: RecalibrationRule = defaultRecalibrationRule,
): RecalibrationVerdict {
  const valid = timesMs.filter((timeMs) => timeMs >= 0 && Number.isFinite(timeMs));
  const earlier = valid.slice(0, Math.max(0, valid.length - rule.inARow));
  if (earlier.length < rule.leastHistory) {
    return { verdict: "no-history", usualMs: null, limitMs: null, slowInARow: 0 };
  }
  const usualMs = median(earlier);
  const limitMs = slowLimit(earlier, usualMs, rule);
  const latest = valid.slice(-rule.inARow).reverse();
  const firstUsual = latest.findIndex((timeMs) => timeMs <= limitMs);
  const slowInARow = firstUsual < 0 ? latest.length : firstUsual;
  const verdict = slowInARow >= rule.inARow ? "probe-again" : slowInARow > 0 ? "slow" : "usual";
  return { verdict, usualMs, limitMs, slowInARow };
}

/** The middle value; of an even number, the mean of the middle two. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The median absolute deviation of normal noise, times this, is its standard deviation. */
const normalConsistency = 1.4826;

function slowLimit(earlier: readonly number[], usualMs: number, rule: RecalibrationRule): number {
  const spreadMs = normalConsistency * median(earlier.map((timeMs) => Math.abs(timeMs - usualMs)));
  return Math.max(rule.factor * usualMs, usualMs + rule.spreads * spreadMs, usualMs + rule.floorMs);
}

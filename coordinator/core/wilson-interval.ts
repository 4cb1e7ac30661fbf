/**
 * The Wilson score interval of a share (E. B. Wilson 1927, "Probable inference, the law of succession, and
 * statistical inference", JASA 22): holds for few samples and for shares near 0 and 1, where the usual ± does not.
 */

/** Of the normal distribution, for 95 % confidence. */
const z = 1.959964;

export interface ShareInterval {
  readonly low: number;
  readonly high: number;
}

/** Between which shares the true one lies with 95 % confidence; without a sample it may be any. */
export function wilsonInterval(hits: number, samples: number): ShareInterval {
  if (samples === 0) return { low: 0, high: 1 };
  const share = hits / samples;
  const weight = z ** 2 / samples;
  const centre = (share + weight / 2) / (1 + weight);
  const reach = (z / (1 + weight)) * Math.sqrt((share * (1 - share)) / samples + weight / (4 * samples));
  // At the ends the two are equal but for rounding.
  return { low: hits === 0 ? 0 : centre - reach, high: hits === samples ? 1 : centre + reach };
}

/** How steady a rate is: its mean, and how much it varies between windows, beside what chance alone would make of it. */

export interface Steadiness {
  /** Pages a second. */
  readonly mean: number;
  /** Standard deviation over mean, of pages in windows. */
  readonly variation: number;
  /** The same of arrivals by chance (Poisson) at that rate: one over the root of the pages in a window. */
  readonly byChance: number;
  /** The mean of the second half over that of the first. */
  readonly trend: number;
}

/** `pages`: by second; `from` and `to` in seconds, of which whole windows are taken. */
export function steadinessOf(
  pages: readonly number[],
  { from, to, windowSeconds }: { readonly from: number; readonly to: number; readonly windowSeconds: number },
): Steadiness {
  const windows = Array.from({ length: Math.floor((to - from) / windowSeconds) }, (_, at) => {
    const start = from + at * windowSeconds;
    return sumOf(pages.slice(start, start + windowSeconds));
  });
  const mean = meanOf(windows);
  const deviation = Math.sqrt(sumOf(windows.map((count) => (count - mean) ** 2)) / (windows.length - 1));
  const half = Math.floor(windows.length / 2);
  return {
    mean: mean / windowSeconds,
    variation: deviation / mean,
    byChance: 1 / Math.sqrt(mean),
    trend: meanOf(windows.slice(-half)) / meanOf(windows.slice(0, half)),
  };
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

const meanOf = (values: readonly number[]) => (values.length === 0 ? 0 : sumOf(values) / values.length);

/**
 * Whether a figure of a long run is flat or grows. The first tenth of the run is left out: caches and heaps fill up.
 *
 * It grows when the median of the last quarter is above that of the first by more than a share of it and more than what such
 * a figure wavers by, and when it still goes up in the second half: its slope there (Theil and Sen: the median of the slopes
 * of all pairs, which a few wild samples do not move) would bring another `creep` of it within an hour.
 */
export interface Sample {
  readonly hours: number;
  readonly value: number;
}

export interface Tolerance {
  /** Of the first quarter's median: 0.15 is fifteen hundredths. */
  readonly share: number;
  /** In the figure's own unit. */
  readonly least: number;
}

export interface Trend {
  readonly first: number;
  readonly last: number;
  readonly slopePerHour: number;
  readonly verdict: "flat" | "grows" | "too few samples";
}

/** What it may gain in an hour and still be called flat. */
const creep = 0.02;

const fewestSamples = 8;

export const trendRule = `the first tenth is left out; a figure *grows* when the median of the last quarter is above that of the first by more than its tolerance, and the slope of the second half (Theil–Sen) would still add more than ${100 * creep} % an hour; else it is *flat*`;

export function trendOf(given: readonly Sample[], { share, least }: Tolerance): Trend {
  const warm = given.slice(Math.ceil(given.length / 10));
  const quarter = Math.floor(warm.length / 4);
  const first = median(warm.slice(0, quarter).map(({ value }) => value));
  const last = median(warm.slice(-quarter).map(({ value }) => value));
  if (warm.length < fewestSamples)
    return { first, last, slopePerHour: Number.NaN, verdict: "too few samples" };
  const slopePerHour = slopeOf(warm.slice(Math.floor(warm.length / 2)));
  const isAbove = last - first > Math.max(least, share * Math.abs(first));
  const goesOn = slopePerHour > creep * Math.max(Math.abs(last), least);
  return { first, last, slopePerHour, verdict: isAbove && goesOn ? "grows" : "flat" };
}

function slopeOf(samples: readonly Sample[]): number {
  const slopes = samples.flatMap((a, at) =>
    samples.slice(at + 1).map((b) => (b.value - a.value) / (b.hours - a.hours)),
  );
  return median(slopes.filter(Number.isFinite));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const steps: readonly (readonly [untilSeconds: number, unitSeconds: number, unit: string])[] = [
  [90, 1, "s"],
  [90 * 60, 60, "min"],
  [36 * 3600, 3600, "hours"],
  [Number.POSITIVE_INFINITY, 86_400, "days"],
];

/** Formats how far an instant is from now: "now", "in 12 s", "5 min ago". */
export function whenWords(instant: string, now: Date): string {
  const seconds = (Date.parse(instant) - now.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  const span = spanWords(Math.abs(seconds));
  return seconds > 0 ? `in ${span}` : `${span} ago`;
}

/** Formats a time span in its fitting unit: "12 s", "3 hours". */
export function spanWords(seconds: number): string {
  const step = steps.find(([until]) => seconds < until);
  const [, unitSeconds, unit] = step ?? [0, 1, "s"];
  return `${Math.round(seconds / unitSeconds).toLocaleString("en-GB")} ${unit}`;
}

/** Formats an instant like `2026-03-01 10:20:30 UTC`. */
export function instantWords(instant: string): string {
  return `${instant.slice(0, 10)} ${instant.slice(11, 19)} UTC`;
}

export function howMany(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? noun : nouns}`;
}

/** Says how many visits of a URL have no stored fetch any more; empty when all have one. */
export function earlierVisitsWords(visits: number, kept: number): string {
  if (visits <= kept) return "";
  const isOne = visits - kept === 1;
  return `${howMany(visits - kept, "earlier visit")} ${isOne ? "is" : "are"} counted and not listed: fetches are kept for a time (policy retention.fetchDays)`;
}

/** With fewer samples, neither a mean nor a share is shown. */
export const leastSamples = 30;

export const enoughSamples = (samples: number): boolean => samples >= leastSamples;

export const tooFewWords = "under 30 samples";

// The Wilson score interval of a share (E. B. Wilson 1927, "Probable inference, the law of succession, and statistical
// inference", JASA 22), which also holds for few samples and for shares near 0 and 1.

/** The normal distribution's quantile for 95 % confidence. */
const z = 1.959964;

interface ShareInterval {
  readonly low: number;
  readonly high: number;
}

/** Returns the 95 % confidence interval of the true share; without samples it is 0 to 1. */
export function wilsonInterval(hits: number, samples: number): ShareInterval {
  if (samples === 0) return { low: 0, high: 1 };
  const share = hits / samples;
  const weight = z ** 2 / samples;
  const centre = (share + weight / 2) / (1 + weight);
  const reach = (z / (1 + weight)) * Math.sqrt((share * (1 - share)) / samples + weight / (4 * samples));
  // Rounding errors would leave the ends slightly off 0 and 1.
  return { low: hits === 0 ? 0 : centre - reach, high: hits === samples ? 1 : centre + reach };
}

export function percentText(share: number): string {
  return `${(100 * share).toFixed(share > 0.999 && share < 1 ? 2 : 1)} %`;
}

/** Formats a sampled share: "93.2 %", "4 of 30 samples" if there are fewer than 30, "–" if there are none. */
export function sampledShare(hits: number, samples: number): string {
  if (samples <= 0) return "–";
  return samples < leastSamples ? `${samples} of ${leastSamples} samples` : percentText(hits / samples);
}

export function rttText(rttMs: number | null): string {
  return rttMs === null ? "not measured" : `${msText(rttMs)}`;
}

/** Formats a round-trip time with three significant digits. */
export function msText(ms: number): string {
  const digits = ms >= 100 || ms === 0 ? 0 : ms >= 10 ? 1 : 2;
  return `${ms.toFixed(digits)} ms`;
}

export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

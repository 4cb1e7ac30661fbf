/**
 * Recalibration (paper section 4.4): compares each fetch time with the host's past and has the subnet probed again when the
 * path seems longer. Two rules watch one kind of times (connect or first byte) of a host fetched by its subnet's owner:
 * - Slow in a row, the paper's rule: above the operator's factor "more than one time continuously". Three limits must be
 *   exceeded, each against another false alarm: the factor, a multiple of the host's own spread (restless hosts), and a floor
 *   in ms (near hosts whose noise alone doubles their time). The number in a row is the operator's, or more if single slow
 *   fetches are common. With a share p of slow fetches, n in a row occur by chance once in p^−n fetches. n is the smallest
 *   with p^n ≤ 1 in 100,000. p starts at 1 in 30 (n = 4) and is learned: a clean host reaches 2 after some 300 fetches, and
 *   one that loses 1 % of its packets stays at 3.
 * - Change point: a lasting shift too small for the factor (`leastChangeFactor`, `leastChangeMs`).
 *
 * After an alarm the new level is the usual one, so a host that became slow for good alarms once.
 */

export interface RecalibrationRule {
  /** A fetch is slow if it exceeds the median times this. */
  readonly factor: number;
  /** Minimum slow fetches in a row. The paper's "more than one time continuously" is 2. */
  readonly inARow: number;
  readonly leastHistory: number;
  /** A fetch is slow if it exceeds the median by this many robust standard deviations (1.4826 · median absolute deviation). */
  readonly spreads: number;
  /** A fetch is slow if it exceeds the median by this many ms. */
  readonly floorMs: number;
  /** A change point needs times above the median times this and by this many ms. Smaller changes are not worth a probe. */
  readonly leastChangeFactor: number;
  readonly leastChangeMs: number;
}

export const defaultRecalibrationRule: RecalibrationRule = {
  factor: 1.5,
  inARow: 2,
  leastHistory: 8,
  spreads: 6,
  floorMs: 10,
  leastChangeFactor: 1.1,
  leastChangeMs: 3,
};

export interface TimesAlarm {
  readonly rule: "slow-in-a-row" | "change-point";
  readonly usualMs: number;
  readonly nowMs: number;
  readonly fetches: number;
}

/** Accepted rate of runs of slow fetches by chance, per fetch. */
const runsByChance = 1e-5;

/** Prior: one in 30 fetches of an unknown host is slow. */
const priorSlow = 1;

const priorFetches = 30;

/** Slow fetches and all fetches are halved at this count, so that they follow changes. */
const mostCounted = 2000;

/** Maximum times that may be part of a change and await the verdict. */
const mostPending = 24;

export class HostTimes {
  readonly #usual = new TimeWindow();
  readonly #pending: number[] = [];
  #score = 0;
  #inARow = 0;
  #slow = 0;
  #fetches = 0;

  /** Median of the usual times in ms. Null if there is too little history. */
  usualMs(rule: RecalibrationRule): number | null {
    return this.#usual.count < rule.leastHistory ? null : this.#usual.median();
  }

  /** True while the latest times look like an uncertain change. */
  get isSuspect(): boolean {
    return this.#score > 0 || this.#inARow > 0;
  }

  /** Takes a time in ms and ignores invalid ones (negative, NaN). An alarm with another cause is suppressed. */
  note(
    timeMs: number,
    rule: RecalibrationRule,
    hasOtherCause: (alarm: TimesAlarm) => boolean = () => false,
  ): TimesAlarm | null {
    if (!(timeMs >= 0) || !Number.isFinite(timeMs)) return null;
    if (this.#usual.count < rule.leastHistory) {
      this.#usual.add(timeMs);
      return null;
    }
    const usualMs = this.#usual.median();
    this.#weigh(timeMs, usualMs, rule);
    this.#pending.push(timeMs);
    const alarm = this.#verdict(usualMs, rule);
    if (alarm && hasOtherCause(alarm)) {
      this.dismiss();
      return null;
    }
    if (alarm) this.startAnew();
    else if (!this.isSuspect) this.dismiss();
    else if (this.#pending.length > mostPending) this.#usual.add(this.#pending.shift()!);
    return alarm;
  }

  /** Treats the pending times as usual after all. */
  dismiss(): void {
    for (const timeMs of this.#pending) this.#usual.add(timeMs);
    this.#pending.length = 0;
    this.#score = 0;
    this.#inARow = 0;
  }

  startAnew(): void {
    this.#usual.clear();
    this.dismiss();
  }

  #weigh(timeMs: number, usualMs: number, rule: RecalibrationRule): void {
    const slowMs = Math.max(
      rule.factor * usualMs,
      usualMs + rule.floorMs,
      usualMs + rule.spreads * this.#usual.spread(usualMs),
    );
    const isSlow = timeMs > slowMs;
    this.#inARow = isSlow ? this.#inARow + 1 : 0;
    this.#countSlow(isSlow);
    const matters = timeMs > Math.max(rule.leastChangeFactor * usualMs, usualMs + rule.leastChangeMs);
    const score = changeScore(this.#usual.shareAbove(timeMs));
    this.#score = Math.max(0, this.#score + (matters ? score : Math.min(score, irrelevantScore)));
  }

  /** Counts only the first of a run, since the share is of independent slow fetches. */
  #countSlow(isSlow: boolean): void {
    this.#fetches += 1;
    if (isSlow && this.#inARow === 1) this.#slow += 1;
    if (this.#fetches < mostCounted) return;
    this.#fetches /= 2;
    this.#slow /= 2;
  }

  #verdict(usualMs: number, rule: RecalibrationRule): TimesAlarm | null {
    if (this.#inARow >= this.#neededInARow(rule)) {
      return alarmOf("slow-in-a-row", usualMs, this.#pending.slice(-this.#inARow));
    }
    return this.#score >= changeThreshold ? alarmOf("change-point", usualMs, this.#pending) : null;
  }

  #neededInARow(rule: RecalibrationRule): number {
    // The current run is no evidence of how common such runs are.
    const slowBefore = Math.max(0, this.#slow - (this.#inARow > 0 ? 1 : 0));
    const share = (slowBefore + priorSlow) / (this.#fetches + priorFetches);
    return Math.max(rule.inARow, Math.ceil(Math.log(runsByChance) / Math.log(share)));
  }
}

function alarmOf(rule: TimesAlarm["rule"], usualMs: number, times: readonly number[]): TimesAlarm {
  return { rule, usualMs, nowMs: median(times), fetches: times.length };
}

/** NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// Detects a lasting upward shift of a host's fetch times by a CUSUM (Page 1954) over ranks: each time's rank among earlier
// times gives a score, how much likelier that rank is after a shift than before. Scores add up, never below zero, and a large
// enough sum is a change.
//
// Ranks need no noise model: without a change, the rank is uniform whatever the host's times look like (exponential, spiky,
// pages of many sizes). The scores are log likelihood ratios against the uniform, so by Lorden (1971) the mean number of
// fetches until a false alarm is at least e^h at threshold h if the earlier times were the whole truth: h = 12 is one in
// 162,000 fetches, 0.15 % of host-days at 240 fetches a day. A window of 40 knows its upper tail only roughly, and one slow
// fetch counts at most ln 8. Simulation (test/bench/results/calibration.md) gives the figures with all of that.
//
//     rank among earlier times, from the slow end    0–3 %   3–12.5 %   12.5–25 %   25–50 %   50–100 %
//     likelihood after a shift, over before            8       3.6         2         0.5       0.08

export const changeThreshold = 12;

const steps = [
  { upTo: 0.03, score: Math.log(8) },
  { upTo: 0.125, score: Math.log(3.6) },
  { upTo: 0.25, score: Math.log(2) },
  { upTo: 0.5, score: Math.log(0.5) },
  { upTo: 1, score: Math.log(0.08) },
] as const;

/**
 * The score of a time by the share of earlier times above it, 0 to 1 (both exclusive).
 *
 * 0.03·8 + 0.095·3.6 + 0.125·2 + 0.25·0.5 + 0.5·0.08 = 0.997: on average no evidence where nothing changed.
 */
export function changeScore(shareAbove: number): number {
  return steps.find(({ upTo }) => shareAbove <= upTo)?.score ?? steps[4].score;
}

/** Score of a time too little above the usual to matter, however rare it is. */
const irrelevantScore = Math.log(0.5);

// The latest usual times of one kind (connect or first byte) of a host: a bounded window with its median, spread and ranks. A
// time takes 4 bytes. Nothing is kept sorted, since sorting 40 takes about a microsecond.

/** Window size: enough for an upper tail of a few per cent, few enough to follow a slow drift. */
const windowTimes = 40;

/** Converts the median absolute deviation of normal noise to its standard deviation. */
const normalConsistency = 1.4826;

const scratch = new Float32Array(windowTimes);

class TimeWindow {
  readonly #times = new Float32Array(windowTimes);
  #count = 0;
  #next = 0;
  /** Null if it must be recomputed. */
  #medianMs: number | null = null;

  get count(): number {
    return this.#count;
  }

  add(timeMs: number): void {
    this.#times[this.#next] = timeMs;
    this.#next = (this.#next + 1) % windowTimes;
    this.#medianMs = null;
    if (this.#count < windowTimes) this.#count += 1;
  }

  clear(): void {
    this.#count = 0;
    this.#next = 0;
    this.#medianMs = null;
  }

  /** The median in ms. NaN for an empty window. */
  median(): number {
    this.#medianMs ??= middle(this.#sorted());
    return this.#medianMs;
  }

  /** Robust standard deviation in ms around a known median. */
  spread(medianMs: number): number {
    const away = scratch.subarray(0, this.#count);
    for (let index = 0; index < this.#count; index++) away[index] = Math.abs(this.#times[index]! - medianMs);
    return normalConsistency * middle(away.sort());
  }

  /** The share of the window above a time, never quite 0 or 1. Ties count half. */
  shareAbove(timeMs: number): number {
    let above = 0.5;
    for (let index = 0; index < this.#count; index++) {
      const known = this.#times[index]!;
      if (known > timeMs) above += 1;
      else if (known === timeMs) above += 0.5;
    }
    return Math.min(above, this.#count + 0.5) / (this.#count + 1);
  }

  #sorted(): Float32Array {
    const copy = scratch.subarray(0, this.#count);
    copy.set(this.#times.subarray(0, this.#count));
    return copy.sort();
  }
}

function middle(sorted: Float32Array): number {
  const half = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[half]!;
  return (sorted[half - 1]! + sorted[half]!) / 2;
}

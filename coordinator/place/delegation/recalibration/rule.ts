/**
 * Recalibration (paper section 4.4): the time of each fetch is compared with the same host's past, and where
 * the path seems to have become longer, the subnet is probed again. Two rules over one kind of times
 * (connect, or first byte) of one host, fetched by the crawler that owns its subnet:
 *
 * - slow in a row, the paper's: above the operator's factor "more than one time continuously". Three limits
 *   have to be passed at once, each against another kind of false alarm: the factor, a multiple of the host's
 *   own spread (hosts that are always restless), and a floor in ms (hosts so near that noise alone doubles
 *   their time). How often in a row: as the operator says, and more often where single slow fetches are
 *   common at this host. With a share p of slow fetches n in a row come about by chance once in p^−n
 *   fetches; n is the least with p^n ≤ 1 in 100,000. p starts at 1 in 30 (n = 4) and is learned: a clean
 *   host is at 2 after some 300 fetches, one that loses 1 % of its packets stays at 3.
 * - change point: a lasting shift that is too small for the factor (`leastChangeFactor`, `leastChangeMs`).
 *
 * After an alarm the new level is the usual one: a host that became slow for good alarms once.
 */

export interface RecalibrationRule {
  /** Slower than usual: above the median times this. */
  readonly factor: number;
  /** So many slow fetches in a row at least; the paper's "more than one time continuously" is 2. */
  readonly inARow: number;
  /** Fewer earlier fetches than this are no history to compare with. */
  readonly leastHistory: number;
  /** Slower by so many robust standard deviations (1.4826 · median absolute deviation). */
  readonly spreads: number;
  /** Slower by so many ms. */
  readonly floorMs: number;
  /** A change point needs times above the median times this, and by so many ms: less is not worth a probe. */
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
  /** Median of the times before. */
  readonly usualMs: number;
  /** Median of the times that led to the alarm. */
  readonly nowMs: number;
  /** How many those were. */
  readonly fetches: number;
}

/** By chance n slow fetches in a row may come about once in so many fetches. */
const runsByChance = 1e-5;

/** Before anything is known of a host, one in 30 of its fetches counts as slow. */
const priorSlow = 1;

const priorFetches = 30;

/** The counts behind the share of slow fetches are halved when they reach this, so that they stay young. */
const mostCounted = 2000;

/** Times that may be part of a change and wait for the verdict. */
const mostPending = 24;

export class HostTimes {
  readonly #usual = new TimeWindow();
  readonly #pending: number[] = [];
  #score = 0;
  #inARow = 0;
  #slow = 0;
  #fetches = 0;

  /** Median of the usual times in ms; null while there is too little history. */
  usualMs(rule: RecalibrationRule): number | null {
    return this.#usual.count < rule.leastHistory ? null : this.#usual.median();
  }

  /** True while the latest times look like a change that is not certain yet. */
  get isSuspect(): boolean {
    return this.#score > 0 || this.#inARow > 0;
  }

  /** Takes a time in ms; what is none (negative, NaN) is left out. An alarm that has another cause is none. */
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

  /** What looked like a change was none (or was looked into): the times count as usual. */
  dismiss(): void {
    for (const timeMs of this.#pending) this.#usual.add(timeMs);
    this.#pending.length = 0;
    this.#score = 0;
    this.#inARow = 0;
  }

  /** The pending times are the beginning of a new level. */
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

  /** Of a run only the first counts: the share is that of slow fetches that come by themselves. */
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
    // The run that is looked at now is no evidence for how common such runs are.
    const slowBefore = Math.max(0, this.#slow - (this.#inARow > 0 ? 1 : 0));
    const share = (slowBefore + priorSlow) / (this.#fetches + priorFetches);
    return Math.max(rule.inARow, Math.ceil(Math.log(runsByChance) / Math.log(share)));
  }
}

function alarmOf(rule: TimesAlarm["rule"], usualMs: number, times: readonly number[]): TimesAlarm {
  return { rule, usualMs, nowMs: median(times), fetches: times.length };
}

/** The middle value; of an even number, the mean of the middle two. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// Has the level of a host's fetch times shifted upward for good? A CUSUM (Page 1954) over ranks: each time is
// placed among the host's earlier times, and the place gives a score that says how much likelier it is after
// a shift than before; the scores add up, never below zero, and enough of them is a change.
//
// Ranks need no model of the noise: as long as nothing changed, the place is uniform whatever the host's times
// look like (exponential, spiky, with pages of many sizes). The scores are logarithms of a likelihood ratio
// against the uniform, so by Lorden (1971) the mean number of fetches until a false alarm is at least e^h at
// threshold h, were the earlier times the whole truth: h = 12 is one in 162,000 fetches, 0.15 % of host-days
// at 240 fetches a day. A window of 40 knows its own upper tail only roughly, and one slow fetch counts at
// most ln 8; simulation (test/bench/results/calibration.md) gives the figures with all that.
//
// place among earlier times, from the slow end   0–3 %   3–12.5 %   12.5–25 %   25–50 %   50–100 %
// likelihood after a shift, over before             8       3.6         2         0.5       0.08

/** Scores needed for an alarm. */
export const changeThreshold = 12;

const steps = [
  { upTo: 0.03, score: Math.log(8) },
  { upTo: 0.125, score: Math.log(3.6) },
  { upTo: 0.25, score: Math.log(2) },
  { upTo: 0.5, score: Math.log(0.5) },
  { upTo: 1, score: Math.log(0.08) },
] as const;

/**
 * The score of a time by the share of earlier times above it, 0 to 1 (both ends excluded).
 * 0.03·8 + 0.095·3.6 + 0.125·2 + 0.25·0.5 + 0.5·0.08 = 0.997: on average no evidence where nothing changed.
 */
export function changeScore(shareAbove: number): number {
  return steps.find(({ upTo }) => shareAbove <= upTo)?.score ?? steps[4].score;
}

/** For a time that is too little above the usual to matter, however rare it is. */
const irrelevantScore = Math.log(0.5);

// The latest usual times of one kind (connect, or first byte) of one host: a bounded window with its median,
// its spread and the place of a new time in it. 4 bytes a time; nothing is kept sorted, since a window of 40
// is sorted in about a microsecond.

/** Times in a window: enough for an upper tail of a few per cent, few enough to follow a slow drift. */
const windowTimes = 40;

/** The median absolute deviation of normal noise, times this, is its standard deviation. */
const normalConsistency = 1.4826;

const scratch = new Float32Array(windowTimes);

class TimeWindow {
  readonly #times = new Float32Array(windowTimes);
  #count = 0;
  #next = 0;
  /** Null: to be found anew. */
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

  /** Forgets everything: a new level begins. */
  clear(): void {
    this.#count = 0;
    this.#next = 0;
    this.#medianMs = null;
  }

  /** The middle time in ms; NaN for an empty window. */
  median(): number {
    this.#medianMs ??= middle(this.#sorted());
    return this.#medianMs;
  }

  /** Robust standard deviation in ms around a median that the caller has already. */
  spread(medianMs: number): number {
    const away = scratch.subarray(0, this.#count);
    for (let index = 0; index < this.#count; index++) away[index] = Math.abs(this.#times[index]! - medianMs);
    return normalConsistency * middle(away.sort());
  }

  /** The share of the window above a time, never quite 0 or 1: ties count half. */
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

/** Of an even number, the mean of the middle two. */
function middle(sorted: Float32Array): number {
  const half = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[half]!;
  return (sorted[half - 1]! + sorted[half]!) / 2;
}

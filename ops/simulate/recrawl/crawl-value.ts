/**
 * What fetching a page again is worth, when somebody signals some of its changes and signals some that were none: the
 * crawl value of R. Busa-Fekete, J. Zimmert, A. György et al., "A scalable crawling algorithm utilizing noisy
 * change-indicating signals" (GREEDY-NCIS, WWW 2025, arXiv 2502.02430, 4 February 2025), derived here from its model.
 *
 * A page changes as a Poisson process. Each change is signalled with probability `recall`; of the signals, `falseShare`
 * (q) are of no change. Times are in mean times between two changes (days · changes a day), so that changes that nobody
 * signals come at rate α = 1 − recall, signals at γ = recall/(1 − q), and false ones at ν = qγ. After a time t with n
 * signals the copy is current with probability e^(−αt) · q^n: a signal ages it as much as −ln(q)/α of time does, and
 * time with its signals is the effective time t + n·(−ln q)/α.
 *
 * A page is fetched when its effective time comes to its *wait*. From a fetch to the next it takes on the average
 *   length(wait) = Σ over n of 1/γ · P(Poisson(γ·(wait − n·step)) > n)
 * of which the copy is current for
 *   fresh(wait) = Σ over n of ν^n/(1 + ν)^(n+1) · P(Poisson((1 + ν)·(wait − n·step)) > n)
 * with step = −ln(q)/α and n as long as n·step < wait. One more fetch adds, for each unit of importance and time,
 *   value(wait) = fresh(wait) − e^(−α·wait) · length(wait)
 * which grows with the wait from 0 to 1 (its slope is α·e^(−α·wait)·length). At the optimum it is the same for all pages:
 * importance/changes · value = multiplier, as in optimal-rates.ts, whose value 1 − (1 + x)e^(−x) this is without signals.
 */
/** Of a host's signals. */
export interface SignalQuality {
  /** Of its changes, the share that is signalled: 0 to 1. */
  readonly recall: number;
  /** Of its signals, the share that is of no change: 0 to 1. */
  readonly falseShare: number;
}

export interface Cycle {
  /** From a fetch to the next, in mean times between two changes. */
  readonly length: number;
  /** Of that, how long the copy is current. */
  readonly fresh: number;
}

/** Nobody signals everything: time alone has to bring a page's turn, too. */
export const mostRecall = 0.95;

/** A signal is never believed entirely. */
export const leastFalseShare = 0.02;

/** Signals that are of no change more often say nothing, nor do those of fewer changes. */
const mostFalseShare = 0.95;

const leastRecall = 0.1;

/** What is far enough from 0 to count. */
const negligible = 1e-16;

/** In the bounds of what is believed; null: the signals say nothing, and a page's fetches are at even distances. */
export function believed({ recall, falseShare }: SignalQuality): SignalQuality | null {
  if (!(recall >= leastRecall) || !(falseShare <= mostFalseShare)) return null;
  return { recall: Math.min(mostRecall, recall), falseShare: Math.max(leastFalseShare, falseShare) };
}

/** How far a signal moves a page's effective time, in mean times between two changes; Infinity: to any wait. */
export function signalStep(quality: SignalQuality | null): number {
  if (quality === null) return 0;
  return -Math.log(quality.falseShare) / (1 - quality.recall);
}

/** The time from a fetch to the next with this wait. */
export function cycleAt(wait: number, quality: SignalQuality | null): Cycle {
  if (!(wait > 0)) return { length: 0, fresh: 0 };
  if (quality === null || quality.recall === 0) return { length: wait, fresh: -Math.expm1(-wait) };
  const signals = quality.recall / (1 - quality.falseShare);
  const falseSignals = signals * quality.falseShare;
  const step = signalStep(quality);
  const cycle = { length: 0, fresh: 0 };
  let weight = 1 / (1 + falseSignals);
  for (let n = 0, left = wait; left > 0; n++, left = wait - n * step) {
    const length = poissonAbove(n, signals * left) / signals;
    const fresh = weight * poissonAbove(n, (1 + falseSignals) * left);
    cycle.length += length;
    cycle.fresh += fresh;
    if (length <= negligible * cycle.length && fresh <= negligible * cycle.fresh) break;
    weight *= falseSignals / (1 + falseSignals);
  }
  return cycle;
}

/** What a fetch adds at this wait, of importance over changes: 0 to 1. */
export function crawlValue(wait: number, quality: SignalQuality | null): number {
  const { recall } = quality ?? noSignals;
  // The difference of what is nearly equal: below, α·wait²/2 is exact to a millionth.
  if (!(wait >= seriesEnd)) return Math.max(0, ((1 - recall) * wait ** 2) / 2) || 0;
  if ((1 - recall) * wait > certain) return 1;
  const { length, fresh } = cycleAt(wait, quality);
  return Math.min(1, Math.max(0, fresh - Math.exp(-(1 - recall) * wait) * length));
}

const noSignals: SignalQuality = { recall: 0, falseShare: 1 };

const seriesEnd = 1e-6;

/** e^(−40) is nothing in 16 digits. */
const certain = 40;

/** P(N > n) for N of a Poisson distribution of that mean: from whichever end is shorter, with all terms positive. */
export function poissonAbove(n: number, mean: number): number {
  if (!(mean > 0)) return 0;
  // The weight of n itself; what it is multiplied with is at most a few times the root of the mean.
  const at = Math.exp(n * Math.log(mean) - mean - lnFactorial(n));
  if (mean < n + 1) {
    let [term, sum] = [mean / (n + 1), 0];
    for (let k = n + 2; term > negligible * sum; k++) {
      sum += term;
      term *= mean / k;
    }
    return Math.min(1, at * sum);
  }
  let [term, sum] = [1, 0];
  for (let k = n; k >= 0 && term > negligible * sum; k--) {
    sum += term;
    term *= k / mean;
  }
  return Math.min(1, Math.max(0, 1 - at * sum));
}

const lnFactorials: number[] = [0];

function lnFactorial(n: number): number {
  for (let k = lnFactorials.length; k <= n; k++) lnFactorials.push(lnFactorials[k - 1]! + Math.log(k));
  return lnFactorials[n]!;
}

// The same from a table: every turn of a simulation compares the values of all pages.

/** Steps of the table, closer where the wait is short: value and wait are nearly straight over the step's square. */
const tableSteps = 800;

/** Up to here, in units of 1/α: beyond it a fetch adds all that it ever does but for e^(−20). */
const tableEnd = 20;

/** Waits and cycles of a quality, each in O(log steps), to a hundredth. */
export class SignalledWaits {
  readonly quality: SignalQuality;
  readonly #unit: number;
  readonly #roots = new Float64Array(tableSteps + 1);
  readonly #lengths = new Float64Array(tableSteps + 1);
  readonly #fresh = new Float64Array(tableSteps + 1);

  constructor(quality: SignalQuality) {
    this.quality = quality;
    this.#unit = tableEnd / (1 - quality.recall);
    for (let step = 1; step <= tableSteps; step++) {
      const wait = this.#waitOf(step);
      const { length, fresh } = cycleAt(wait, quality);
      const root = Math.sqrt(crawlValue(wait, quality));
      // Rounding near 1 must not turn it round.
      this.#roots[step] = Math.max(root, this.#roots[step - 1]!);
      this.#lengths[step] = length;
      this.#fresh[step] = fresh;
    }
  }

  /** The wait at which a fetch is worth this share of importance over changes; Infinity: it never is. */
  waitAt(share: number): number {
    if (!(share < 1)) return Infinity;
    const root = Math.sqrt(Math.max(0, share));
    let [low, high] = [0, tableSteps];
    if (root >= this.#roots[high]!) return this.#waitOf(high);
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#roots[middle]! <= root) low = middle;
      else high = middle;
    }
    if (low === 0) return Math.sqrt((2 * share) / (1 - this.quality.recall));
    const part = (root - this.#roots[low]!) / (this.#roots[high]! - this.#roots[low]!);
    return this.#waitOf(low + part);
  }

  cycleAt(wait: number): Cycle {
    if (wait < this.#waitOf(1)) return cycleAt(wait, this.quality);
    // A wait beyond the end goes on as it ended.
    const beyond = Math.max(1, wait / this.#unit);
    return { length: this.#between(this.#lengths, wait) * beyond, fresh: this.#between(this.#fresh, wait) };
  }

  /** What a fetch adds at this wait, as `crawlValue`. */
  valueAt(wait: number): number {
    return this.#between(this.#roots, wait) ** 2;
  }

  #between(values: Float64Array, wait: number): number {
    const at = Math.min(tableSteps, Math.sqrt(Math.max(0, wait) / this.#unit) * tableSteps);
    const low = Math.min(tableSteps - 1, Math.floor(at));
    return values[low]! + (at - low) * (values[low + 1]! - values[low]!);
  }

  #waitOf(step: number): number {
    return this.#unit * (step / tableSteps) ** 2;
  }
}

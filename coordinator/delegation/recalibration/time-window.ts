/**
 * The latest usual times of one kind (connect, or first byte) of one host: a bounded window with its median,
 * its spread and the place of a new time in it. 4 bytes a time; nothing is kept sorted, since a window of 40
 * is sorted in about a microsecond.
 */

/** Times in a window: enough for an upper tail of a few per cent, few enough to follow a slow drift. */
export const windowTimes = 40;
/** The median absolute deviation of normal noise, times this, is its standard deviation. */
const normalConsistency = 1.4826;

const scratch = new Float32Array(windowTimes);

export class TimeWindow {
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

/** How many starts there were in the last second: no second, wherever it begins, holds more than so many. */

const windowMs = 1000;

export class StartWindow {
  readonly #most: number;
  /** The times of the last `most` starts, in a ring; only as long as it was ever full. */
  readonly #timesMs: number[] = [];
  #next = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(mostPerSecond: number) {
    this.#most = mostPerSecond;
  }

  /** How long until one more may start; 0: now. */
  waitMs(nowMs: number): number {
    if (this.#timesMs.length < this.#most) return 0;
    return Math.max(0, this.#timesMs[this.#next]! + windowMs - nowMs);
  }

  note(nowMs: number): void {
    this.#timesMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % this.#most;
    this.#lastMs = nowMs;
  }

  /** Nothing started in the last second. */
  isIdle(nowMs: number): boolean {
    return nowMs - this.#lastMs >= windowMs;
  }
}

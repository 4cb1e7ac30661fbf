/** How many starts there were in the last second: no second, wherever it begins, holds more than so many. */

const windowMs = 1000;

export class StartWindow {
  readonly #mostNow: () => number;
  #most: number;
  /** The times of the last `most` starts, in a ring; only as long as it was ever full. */
  #timesMs: number[] = [];
  #next = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** Asked for at each start: it may change. */
  constructor(mostPerSecond: () => number) {
    this.#mostNow = mostPerSecond;
    this.#most = mostPerSecond();
  }

  /** How long until one more may start; 0: now. */
  waitMs(nowMs: number): number {
    this.#fit();
    if (this.#timesMs.length < this.#most) return 0;
    return Math.max(0, this.#timesMs[this.#next]! + windowMs - nowMs);
  }

  note(nowMs: number): void {
    this.#fit();
    this.#timesMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % this.#most;
    this.#lastMs = nowMs;
  }

  /** Nothing started in the last second. */
  isIdle(nowMs: number): boolean {
    return nowMs - this.#lastMs >= windowMs;
  }

  /** A ring for another number of starts, with the latest of them. */
  #fit(): void {
    const most = this.#mostNow();
    if (most === this.#most) return;
    const inOrder = [...this.#timesMs.slice(this.#next), ...this.#timesMs.slice(0, this.#next)];
    this.#timesMs = inOrder.slice(-most);
    this.#next = this.#timesMs.length % most;
    this.#most = most;
  }
}

/**
 * A token bucket for bytes: how much one crawler may make the coordinator inflate in a second. Overspending
 * once is allowed (a message's size is known only after it was inflated) and paid for by waiting.
 */
export class ByteBudget {
  readonly #bytesPerSecond: number;
  readonly #now: () => number;
  #left: number;
  #filledAt: number;

  /** `now` in ms, monotonic. The bucket holds one second's worth and starts full. */
  constructor(bytesPerSecond: number, now: () => number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#now = now;
    this.#left = bytesPerSecond;
    this.#filledAt = now();
  }

  spend(bytes: number): void {
    this.#fill();
    this.#left -= bytes;
  }

  /** Until something may be spent again; 0 when it may now. */
  waitMs(): number {
    this.#fill();
    return this.#left > 0 ? 0 : Math.ceil((-this.#left / this.#bytesPerSecond) * 1000) + 1;
  }

  #fill(): void {
    const now = this.#now();
    const gained = ((now - this.#filledAt) / 1000) * this.#bytesPerSecond;
    this.#left = Math.min(this.#bytesPerSecond, this.#left + gained);
    this.#filledAt = now;
  }
}

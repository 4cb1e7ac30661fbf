/**
 * Keeps the answer of a question whose cost grows with the tables, so that pages may ask as often as they
 * like: it is asked anew only after `rest` times as long as asking took, and by one caller at a time.
 */
export class KeptAnswer<T> {
  readonly #ask: () => Promise<T>;
  readonly #nowMs: () => number;
  readonly #leastMs: number;
  #answer: { readonly value: T; readonly staleAtMs: number } | null = null;
  #asking: Promise<T> | null = null;

  /** `leastMs`: so long it is kept in any case. */
  constructor(ask: () => Promise<T>, nowMs: () => number, leastMs = defaultLeastMs) {
    this.#ask = ask;
    this.#nowMs = nowMs;
    this.#leastMs = leastMs;
  }

  async get(): Promise<T> {
    if (this.#answer && this.#nowMs() < this.#answer.staleAtMs) return this.#answer.value;
    this.#asking ??= this.#askNow().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #askNow(): Promise<T> {
    const startedMs = this.#nowMs();
    const value = await this.#ask();
    const doneMs = this.#nowMs();
    const keepMs = Math.max(this.#leastMs, rest * (doneMs - startedMs));
    this.#answer = { value, staleAtMs: doneMs + keepMs };
    return value;
  }
}

/** Fresh enough for a page that is renewed every two seconds. */
const defaultLeastMs = 1000;
/** At most one part in so many of a database connection goes into these questions. */
const rest = 20;

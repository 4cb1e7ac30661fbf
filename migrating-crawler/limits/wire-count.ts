/**
 * Counts what the connections have carried as exactly as possible: the sockets' own counts, read several times a
 * second, and between two readings what the readers report.
 */

/** The minimum between two readings of all sockets while bytes arrive; only a few are read each time. */
const lookEveryMs = 5;
const fewSockets = 64;

export interface Wire {
  /** Bytes in both directions since the start. */
  carriedBytes(): number;
  readonly openConnections: number;
}

export class WireCount {
  readonly #wire: Wire;
  readonly #nowMs: () => number;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** The carried and the taken bytes at the last reading. */
  #seenBytes = 0;
  #takenThen = 0;
  #taken = 0;
  #counted = 0;

  constructor(wire: Wire, nowMs: () => number = () => performance.now()) {
    this.#wire = wire;
    this.#nowMs = nowMs;
  }

  /** Returns the bytes that are new since the last call, including these, which the sockets also count. */
  take(bytes: number): number {
    this.#taken += bytes;
    const isDue = this.#nowMs() - this.#lookedAtMs >= lookEveryMs;
    if (isDue || this.#wire.openConnections <= fewSockets) this.#look();
    return this.#news();
  }

  /** Returns the bytes that are new since the last call. */
  settle(): number {
    this.#look();
    return this.#news();
  }

  #look(): void {
    this.#lookedAtMs = this.#nowMs();
    this.#seenBytes = this.#wire.carriedBytes();
    this.#takenThen = this.#taken;
  }

  /** A reading may already include bytes taken after it, so the next one adds less. */
  #news(): number {
    const known = Math.max(this.#taken, this.#seenBytes + this.#taken - this.#takenThen);
    const news = Math.max(0, known - this.#counted);
    this.#counted += news;
    return news;
  }
}

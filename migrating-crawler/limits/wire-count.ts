/**
 * How much the connections have carried, as exactly as can be known at each moment: the sockets' own counts, looked
 * at several times a second, and between two looks what readers say that they have taken.
 */

/** Between two looks at all sockets, when bytes are taken; few sockets are looked at each time. */
const lookEveryMs = 5;
const fewSockets = 64;

export interface Wire {
  /** Both ways, since the start. */
  carriedBytes(): number;
  readonly openConnections: number;
}

export class WireCount {
  readonly #wire: Wire;
  readonly #nowMs: () => number;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** At the last look: carried, and taken. */
  #seenBytes = 0;
  #takenThen = 0;
  #taken = 0;
  #counted = 0;

  constructor(wire: Wire, nowMs: () => number = () => performance.now()) {
    this.#wire = wire;
    this.#nowMs = nowMs;
  }

  /** Bytes that are new since the last call, these with them. They are among what the sockets carried. */
  take(bytes: number): number {
    this.#taken += bytes;
    const isDue = this.#nowMs() - this.#lookedAtMs >= lookEveryMs;
    if (isDue || this.#wire.openConnections <= fewSockets) this.#look();
    return this.#news();
  }

  /** Bytes that are new since the last call. */
  settle(): number {
    this.#look();
    return this.#news();
  }

  #look(): void {
    this.#lookedAtMs = this.#nowMs();
    this.#seenBytes = this.#wire.carriedBytes();
    this.#takenThen = this.#taken;
  }

  /** What was taken after a look may have been seen by it: then the next look has less news. */
  #news(): number {
    const known = Math.max(this.#taken, this.#seenBytes + this.#taken - this.#takenThen);
    const news = Math.max(0, known - this.#counted);
    this.#counted += news;
    return news;
  }
}

/**
 * Who waits to be let in, first come first served: so many are worked on at once, nothing is begun for who has gone,
 * and who would wait for too long is told when to come back. Those get times one after another, as fast as others were
 * let in until now, so that they do not all come back at once.
 *
 *   now ├── half of mostWaitMs ──┤ 1st sent away ┤ 2nd ┤ 3rd … ┤ mostAwayMs: from the 1st on again
 */

export interface AdmissionLineSettings {
  /** Worked on at the same time; more of them only make each other wait, for the same connections to the database. */
  readonly atOnce: number;
  /** Who would wait longer is to come back later. */
  readonly mostWaitMs: number;
}

interface Waiting {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  readonly skip: () => void;
}

/** Before anything was measured. */
const firstGuessMs = 10;
/** Nobody is sent away for longer: it may go faster than it did, and asking again costs little. */
const mostAwayMs = 20_000;
/** Of each admission in the mean time of the last ones. */
const newShare = 0.1;

export class AdmissionLine {
  readonly #settings: AdmissionLineSettings;
  readonly #nowMs: () => number;
  /** Those that were let in halfway; they go first. */
  readonly #halfway: Waiting[] = [];
  #line: Waiting[] = [];
  /** Where the line begins: what is before it has had its turn. */
  #head = 0;
  readonly #starts = new Set<{ readonly atMs: number }>();
  #workMs = firstGuessMs;
  #lastReturnMs = Number.NEGATIVE_INFINITY;

  /** `nowMs`: monotonic. */
  constructor(settings: AdmissionLineSettings, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
  }

  get waiting(): number {
    return this.#line.length - this.#head;
  }

  /** When the next one who is sent away is to come back; null: there is room in the line. */
  comeBackMs(): number | null {
    const { mostWaitMs } = this.#settings;
    const eachMs = this.#eachMs();
    if (this.waiting * eachMs <= mostWaitMs) return null;
    const nowMs = this.#nowMs();
    const firstMs = nowMs + mostWaitMs / 2;
    const returnMs = Math.max(firstMs, this.#lastReturnMs + eachMs);
    this.#lastReturnMs = returnMs <= nowMs + mostAwayMs ? returnMs : firstMs;
    return Math.ceil(this.#lastReturnMs - nowMs);
  }

  /** Null: it had gone before its turn came, and nothing was begun. */
  take<Done>(isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return this.#enter(this.#line, isGone, work);
  }

  /** For who has had its turn, had to wait for something else, and is worked on again. */
  takeUp<Done>(isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return this.#enter(this.#halfway, isGone, work);
  }

  #enter<Done>(line: Waiting[], isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return new Promise((resolve, reject) => {
      const begin = () => void this.#work(work).then(resolve, reject);
      line.push({ isGone, begin, skip: () => resolve(null) });
      this.#next();
    });
  }

  async #work<Done>(work: () => Promise<Done>): Promise<Done> {
    const start = { atMs: this.#nowMs() };
    this.#starts.add(start);
    try {
      return await work();
    } finally {
      this.#starts.delete(start);
      this.#workMs += newShare * (this.#nowMs() - start.atMs - this.#workMs);
      this.#next();
    }
  }

  #next(): void {
    while (this.#starts.size < this.#settings.atOnce) {
      const next = this.#halfway.shift() ?? this.#shift();
      if (next === undefined) return;
      if (next.isGone()) next.skip();
      else next.begin();
    }
  }

  /** As `shift`, without moving those that wait. */
  #shift(): Waiting | undefined {
    const next = this.#line[this.#head];
    if (next === undefined) return undefined;
    this.#head += 1;
    if (this.#head * 2 > this.#line.length) {
      this.#line = this.#line.slice(this.#head);
      this.#head = 0;
    }
    return next;
  }

  /** From one admission to the next. What is under way counts as soon as it takes longer than the others took. */
  #eachMs(): number {
    const [oldest] = this.#starts;
    const oldestMs = oldest === undefined ? 0 : this.#nowMs() - oldest.atMs;
    return Math.max(this.#workMs, oldestMs) / this.#settings.atOnce;
  }
}

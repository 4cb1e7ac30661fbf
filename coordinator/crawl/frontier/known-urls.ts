/**
 * Caches URLs that this coordinator recently saw in the frontier, since most links lead to known URLs and need no look-up. It
 * stores whole 64-bit hashes, the frontier's own keys, so no unknown URL passes for known. A removed row (excluded by its
 * channel, or given to another coordinator) may pass for known for an hour at most. When it is named after that, it is stored
 * again.
 *
 * There are two sets. The older is dropped when the newer is full and every half hour. Together they take 32 MB and hold 0.8
 * to 1.6 million URLs.
 */
import type { UrlHash } from "#core/ids";

const halfHourMs = 30 * 60_000;

const defaultSlots = 2 ** 21;

const fullestShare = 0.4;

/** Maximum probe distance. Only an attacker produces longer runs of equal bits. */
const furthest = 32;

export class KnownUrls {
  readonly #mask: number;
  readonly #most: number;
  #newer: Int32Array;
  #older: Int32Array;
  #count = 0;
  #halfHour = Number.NaN;

  /** `slots` are per set, 8 bytes each, and must be a power of two. */
  constructor(slots: number = defaultSlots) {
    this.#mask = slots - 1;
    this.#most = Math.floor(fullestShare * slots);
    this.#newer = new Int32Array(2 * slots);
    this.#older = new Int32Array(2 * slots);
  }

  has(url: UrlHash, now: Date): boolean {
    this.#turn(now);
    readHash(url);
    return this.#placeIn(this.#newer) === "there" || this.#placeIn(this.#older) === "there";
  }

  /** Call after the transaction that saw or admitted them has committed. */
  add(urls: Iterable<UrlHash>, now: Date): void {
    this.#turn(now);
    for (const url of urls) {
      readHash(url);
      const place = this.#placeIn(this.#newer);
      if (typeof place === "string") continue;
      this.#newer[place] = words[0]!;
      this.#newer[place + 1] = words[1]!;
      this.#count += 1;
      if (this.#count >= this.#most) this.#start();
    }
  }

  /** Returns the empty slot for the hash last read. */
  #placeIn(set: Int32Array): number | "there" | "no-room" {
    const [low, high] = [words[0]!, words[1]!];
    for (let step = 0; step < furthest; step++) {
      const place = 2 * ((low + step) & this.#mask);
      const [first, second] = [set[place]!, set[place + 1]!];
      if (first === 0 && second === 0) return place;
      if (first === low && second === high) return "there";
    }
    return "no-room";
  }

  /** A clock that was set back drops both sets. */
  #turn(now: Date): void {
    const halfHour = Math.floor(now.getTime() / halfHourMs);
    if (halfHour === this.#halfHour) return;
    if (halfHour !== this.#halfHour + 1) this.#newer.fill(0);
    this.#halfHour = halfHour;
    this.#start();
  }

  #start(): void {
    [this.#newer, this.#older] = [this.#older, this.#newer];
    this.#newer.fill(0);
    this.#count = 0;
  }
}

const hash = new BigInt64Array(1);
const words = new Int32Array(hash.buffer);

function readHash(url: UrlHash): void {
  hash[0] = BigInt(url);
}

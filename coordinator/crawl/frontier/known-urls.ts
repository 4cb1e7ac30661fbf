/**
 * URLs that the frontier holds, as far as this coordinator has seen lately: most links of a page lead to such, and need no
 * look-up. Whole 64-bit hashes, which are the frontier's own keys, so that nothing unknown passes for known. What is
 * forgotten is looked up again. A row that went away meanwhile (its channel leaves it out, its host was given to another
 * coordinator) passes for known for an hour at most; then whoever names it brings it back.
 *
 * Two sets, of which the older one goes when the newer is full, and at every half hour: 32 MB, and 0.8 to 1.6 million URLs.
 */
import type { UrlHash } from "#core/ids";

const halfHourMs = 30 * 60_000;

/** A power of two. */
const defaultSlots = 2 ** 21;

const fullestShare = 0.4;

/** Further than that a URL has no place: so many with the same bits are of somebody who chose them. */
const furthest = 32;

export class KnownUrls {
  readonly #mask: number;
  readonly #most: number;
  #newer: Int32Array;
  #older: Int32Array;
  #count = 0;
  /** Since 1970. */
  #halfHour = Number.NaN;

  /** `slots`: of one set, 8 bytes each; a power of two. */
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

  /** When the transaction that saw or admitted them is committed. */
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

  /** Of the hash that was read: the empty slot where it belongs. */
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

  /** A clock that went back ends both. */
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
/** The hash's two halves. */
const words = new Int32Array(hash.buffer);

function readHash(url: UrlHash): void {
  hash[0] = BigInt(url);
}

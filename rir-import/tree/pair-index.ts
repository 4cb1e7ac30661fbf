/**
 * Pairs of small numbers, each once, numbered 0, 1, 2 … in the order of first sight: 30 to 60 bytes a pair. Open
 * addressing over a table that holds the pairs themselves, so that a look-up costs one place in memory.
 */

const firstPlaces = 256;
const pairsAtOnce = 128;

/** The pairs by their numbers. */
export interface PairParts {
  readonly firsts: Int32Array;
  readonly seconds: Int32Array;
}

/** A place in the table: number + 1 (0 where none), first, second, and nothing, so that none lies across two lines of cache. */
const placeLength = 4;

export class PairIndex {
  #firsts = new Int32Array(firstPlaces);
  #seconds = new Int32Array(firstPlaces);
  #table = new Int32Array(placeLength * firstPlaces);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The pair's number; the same for the same pair. */
  intern(first: number, second: number): number {
    const place = this.#placeOf(first, second);
    const found = (this.#table[place] as number) - 1;
    return found >= 0 ? found : this.#add(place, first, second);
  }

  /** Interns so many, in their order, into `numbers`: the waits for memory, which are most of the work, overlap. */
  internMany(firsts: Int32Array, seconds: Int32Array, numbers: Int32Array, count: number): void {
    for (let from = 0; from < count; from += pairsAtOnce) {
      const to = Math.min(count, from + pairsAtOnce);
      const table = this.#table;
      const mask = table.length - placeLength;
      // Reads what looking them up will read; the numbers are written over below.
      for (let at = from; at < to; at += 1) {
        const place = (hashOf(firsts[at] as number, seconds[at] as number) * placeLength) & mask;
        numbers[at] = table[place] as number;
      }
      for (let at = from; at < to; at += 1)
        numbers[at] = this.intern(firsts[at] as number, seconds[at] as number);
    }
  }

  /** The pair's number, or −1 when it was never seen. */
  find(first: number, second: number): number {
    return (this.#table[this.#placeOf(first, second)] as number) - 1;
  }

  /** As they lie in memory, without a copy: valid until the next `intern`. */
  parts(): PairParts {
    return {
      firsts: this.#firsts.subarray(0, this.#count),
      seconds: this.#seconds.subarray(0, this.#count),
    };
  }

  firstAt(number: number): number {
    return this.#firsts[number] as number;
  }

  secondAt(number: number): number {
    return this.#seconds[number] as number;
  }

  #add(place: number, first: number, second: number): number {
    const number = this.#count++;
    if (number === this.#firsts.length) this.#growColumns();
    this.#firsts[number] = first;
    this.#seconds[number] = second;
    this.#put(place, number, first, second);
    if (4 * placeLength * this.#count > 3 * this.#table.length) this.#growTable();
    return number;
  }

  #put(place: number, number: number, first: number, second: number): void {
    this.#table[place] = number + 1;
    this.#table[place + 1] = first;
    this.#table[place + 2] = second;
  }

  #placeOf(first: number, second: number): number {
    const table = this.#table;
    const mask = table.length - placeLength;
    for (let place = (hashOf(first, second) * placeLength) & mask; ; place = (place + placeLength) & mask) {
      if (table[place] === 0 || (table[place + 1] === first && table[place + 2] === second)) return place;
    }
  }

  #growColumns(): void {
    const firsts = new Int32Array(2 * this.#firsts.length);
    const seconds = new Int32Array(2 * this.#firsts.length);
    firsts.set(this.#firsts);
    seconds.set(this.#seconds);
    this.#firsts = firsts;
    this.#seconds = seconds;
  }

  #growTable(): void {
    const old = this.#table;
    this.#table = new Int32Array(2 * old.length);
    for (let at = 0; at < old.length; at += placeLength) {
      const number = (old[at] as number) - 1;
      if (number < 0) continue;
      const first = old[at + 1] as number;
      const second = old[at + 2] as number;
      this.#put(this.#placeOf(first, second), number, first, second);
    }
  }
}

/** In 28 bits, so that four times as much is a whole number of 32. */
function hashOf(first: number, second: number): number {
  let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) & 0xfffffff;
}

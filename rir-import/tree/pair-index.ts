/**
 * Pairs of small numbers, each once, numbered 0, 1, 2 … in the order of first sight: 16 to 32 bytes a pair.
 * Open addressing over a table that is never more than half full.
 */

const firstPairs = 256;

/** The pairs by their numbers. */
export interface PairParts {
  readonly firsts: Int32Array;
  readonly seconds: Int32Array;
}

export class PairIndex {
  #firsts = new Int32Array(firstPairs);
  #seconds = new Int32Array(firstPairs);
  /** Number + 1 at the place of the pair's hash or behind; 0 where none. */
  #table = new Int32Array(2 * firstPairs);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The pair's number; the same for the same pair. */
  intern(first: number, second: number): number {
    if (this.#count === this.#firsts.length) this.#grow();
    const place = this.#placeOf(first, second);
    const found = (this.#table[place] as number) - 1;
    if (found >= 0) return found;
    const number = this.#count++;
    this.#firsts[number] = first;
    this.#seconds[number] = second;
    this.#table[place] = number + 1;
    return number;
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

  #placeOf(first: number, second: number): number {
    const mask = this.#table.length - 1;
    for (let place = hashOf(first, second) & mask; ; place = (place + 1) & mask) {
      const number = (this.#table[place] as number) - 1;
      if (number < 0 || (this.#firsts[number] === first && this.#seconds[number] === second)) return place;
    }
  }

  #grow(): void {
    const firsts = new Int32Array(2 * this.#count);
    const seconds = new Int32Array(2 * this.#count);
    firsts.set(this.#firsts);
    seconds.set(this.#seconds);
    this.#firsts = firsts;
    this.#seconds = seconds;
    this.#table = new Int32Array(4 * this.#count);
    for (let number = 0; number < this.#count; number += 1) {
      this.#table[this.#placeOf(firsts[number] as number, seconds[number] as number)] = number + 1;
    }
  }
}

function hashOf(first: number, second: number): number {
  let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

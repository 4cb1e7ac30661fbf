/**
 * From whole numbers to whole numbers, for millions of entries: pairs in one typed array, open addressing with
 * linear probing (Knuth, volume 3, section 6.4, algorithms L and R), 10.7 to 16 bytes an entry; a JavaScript
 * Map takes 28 to 56. Keys and values are signed 32-bit numbers; a value is never 0, which stands for none.
 */
import { mix32 } from "./random.ts";

const smallest = 16;

/** Share of the places that may be taken: at 3 in 4 a miss looks at 8.5 places on average, all side by side. */
const mostTaken = 0.75;

/** Times as many places when they are. Doubling would leave more than half of them empty. */
const growth = 1.5;

export class NumberMap {
  /** Key, value, key, value …; a place whose value is 0 is free. */
  #pairs = new Int32Array(2 * smallest);
  #places = smallest;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#pairs.byteLength;
  }

  /** The key's value, 0 for none. */
  get(key: number): number {
    return this.valueAt(this.placeOf(key));
  }

  /** A value of 0 takes the key out. */
  set(key: number, value: number): void {
    this.put(this.placeOf(key), key, value);
  }

  /** The value at the key's place, 0 for none. */
  valueAt(place: number): number {
    return this.#pairs[2 * place + 1] as number;
  }

  /** `set` for one who has the key's place already. */
  put(place: number, key: number, value: number): void {
    if (value === 0) {
      this.#remove(place);
      return;
    }
    const at = 2 * place;
    if (this.#pairs[at + 1] === 0) this.#size += 1;
    this.#pairs[at] = key;
    this.#pairs[at + 1] = value;
    if (this.#size > mostTaken * this.#places) this.#grow();
  }

  /** Where the key stands, or the free place where it would; until the next write. */
  placeOf(key: number): number {
    const pairs = this.#pairs;
    let place = this.#homeOf(key);
    while (pairs[2 * place + 1] !== 0 && pairs[2 * place] !== key) {
      place += 1;
      if (place === this.#places) place = 0;
    }
    return place;
  }

  /** The hash as a fraction, times the number of places: any number of places will do, not only powers of two. */
  #homeOf(key: number): number {
    return Math.floor((mix32(key) * this.#places) / 2 ** 32);
  }

  /** Moves up what stands behind the gap and belongs at it or before, so that no search ends too early. */
  #remove(removed: number): void {
    const pairs = this.#pairs;
    if (pairs[2 * removed + 1] === 0) return;
    this.#size -= 1;
    let gap = removed;
    for (let place = this.#after(gap); pairs[2 * place + 1] !== 0; place = this.#after(place)) {
      const home = this.#homeOf(pairs[2 * place] as number);
      if (this.#distance(home, place) < this.#distance(gap, place)) continue;
      pairs[2 * gap] = pairs[2 * place] as number;
      pairs[2 * gap + 1] = pairs[2 * place + 1] as number;
      gap = place;
    }
    pairs[2 * gap + 1] = 0;
  }

  #after(place: number): number {
    return place + 1 === this.#places ? 0 : place + 1;
  }

  #distance(from: number, to: number): number {
    return to >= from ? to - from : to - from + this.#places;
  }

  #grow(): void {
    const before = this.#pairs;
    this.#places = Math.ceil(this.#places * growth);
    this.#pairs = new Int32Array(2 * this.#places);
    for (let at = 0; at < before.length; at += 2) {
      if (before[at + 1] === 0) continue;
      const place = this.placeOf(before[at] as number);
      this.#pairs[2 * place] = before[at] as number;
      this.#pairs[2 * place + 1] = before[at + 1] as number;
    }
  }
}

/** The positions of the smallest values, smallest first, without sorting them all. NaN is no value. */
export function smallestOf(values: ArrayLike<number>, most: number): Int32Array {
  const found = new Int32Array(Math.min(most, values.length));
  let count = 0;
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!;
    if (Number.isNaN(value)) continue;
    if (count === found.length && value >= values[found[count - 1]!]!) continue;
    let at = count < found.length ? count++ : count - 1;
    while (at > 0 && values[found[at - 1]!]! > value) {
      found[at] = found[at - 1]!;
      at -= 1;
    }
    found[at] = index;
  }
  return found.subarray(0, count);
}

/** For an LRUCache that grows to its bound: with `max` it takes the room of all entries, and milliseconds, at once. */
export const growingTo = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 }) as const;

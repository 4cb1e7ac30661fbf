/**
 * Where words occur: for each word the documents that contain it, in order, and a place in each. Both take two bytes
 * in plain arrays: nothing needs unpacking, and a list is a range of two arrays.
 */
import { grown } from "./term-table.ts";

/** As in a tsvector: the weight (3: A, 0: D) in the upper two bits, the position in the other 14. */
export type Place = number;

export const positionMask = 0x3fff;

export const weightOf = (place: Place): number => place >>> 14;

export class Postings {
  /** The words' numbers, ascending. */
  readonly terms: Uint32Array;
  /** One more than `terms`: where each list begins, and where the last one ends. */
  readonly starts: Uint32Array;
  readonly docs: Uint16Array;
  readonly places: Uint16Array;
  /**
   * Where in `terms` each range of numbers begins: a question looks up each word in each segment, and most are not in
   * the CPU's cache.
   */
  readonly #stretches: Uint32Array;

  constructor(parts: Pick<Postings, "terms" | "starts" | "docs" | "places">) {
    ({ terms: this.terms, starts: this.starts, docs: this.docs, places: this.places } = parts);
    this.#stretches = stretchesOf(this.terms);
  }

  get byteLength(): number {
    const { terms, starts, docs, places } = this;
    const lists = starts.byteLength + docs.byteLength + places.byteLength;
    return terms.byteLength + this.#stretches.byteLength + lists;
  }

  /** The first entry of the word's list and the one after its last; both 0: in no document. */
  rangeOf(term: number): readonly [from: number, to: number] {
    const stretch = term >>> stretchBits;
    if (stretch + 1 >= this.#stretches.length) return [0, 0];
    const at = lowestFrom(this.terms, term, this.#stretches[stretch]!, this.#stretches[stretch + 1]!);
    if (this.terms[at] !== term) return [0, 0];
    return [this.starts[at]!, this.starts[at + 1]!];
  }

  /** Whether any document contains the word. */
  has(term: number): boolean {
    const [from, to] = this.rangeOf(term);
    return from < to;
  }
}

/** 64 numbers each, so that a look-up touches few cache lines. */
const stretchBits = 6;

function stretchesOf(terms: Uint32Array): Uint32Array {
  const last = terms.length === 0 ? -1 : terms[terms.length - 1]! >>> stretchBits;
  const stretches = new Uint32Array(last + 2);
  for (let at = 0; at < terms.length; at++) stretches[(terms[at]! >>> stretchBits) + 1] = at + 1;
  for (let stretch = 1; stretch < stretches.length; stretch++) {
    stretches[stretch] = Math.max(stretches[stretch]!, stretches[stretch - 1]!);
  }
  return stretches;
}

/** The first index whose number is not less. */
export function lowestFrom(
  numbers: Uint32Array | Uint16Array,
  least: number,
  from: number,
  to: number,
): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Collects occurrences document by document; `sorted` turns them into lists. */
export class OccurrenceLog {
  #terms = new Uint32Array(1 << 12);
  #docs = new Uint16Array(1 << 12);
  #places = new Uint16Array(1 << 12);
  #count = 0;

  add(term: number, doc: number, place: Place): void {
    if (this.#count === this.#terms.length) {
      const length = 2 * this.#count;
      this.#terms = grown(this.#terms, length);
      this.#docs = grown(this.#docs, length);
      this.#places = grown(this.#places, length);
    }
    this.#terms[this.#count] = term;
    this.#docs[this.#count] = doc;
    this.#places[this.#count] = place;
    this.#count += 1;
  }

  /** Shrinks buffers that were hardly used. */
  clear(): void {
    if (this.#terms.length > 1 << 16 && this.#count < this.#terms.length / 8) {
      this.#terms = new Uint32Array(1 << 12);
      this.#docs = new Uint16Array(1 << 12);
      this.#places = new Uint16Array(1 << 12);
    }
    this.#count = 0;
  }

  /** A counting sort: one pass through all word numbers, two through the occurrences. */
  sorted(): Postings {
    let most = -1;
    for (let at = 0; at < this.#count; at++) most = Math.max(most, this.#terms[at]!);
    /** At first the count of the previous word, then the next free position of each list, and finally its end. */
    const next = new Uint32Array(most + 2);
    for (let at = 0; at < this.#count; at++) next[this.#terms[at]! + 1]! += 1;
    let distinct = 0;
    for (let term = 0; term <= most; term++) {
      if (next[term + 1]! > 0) distinct += 1;
      next[term + 1]! += next[term]!;
    }
    const docs = new Uint16Array(this.#count);
    const places = new Uint16Array(this.#count);
    for (let at = 0; at < this.#count; at++) {
      const to = next[this.#terms[at]!]!++;
      docs[to] = this.#docs[at]!;
      places[to] = this.#places[at]!;
    }
    const terms = new Uint32Array(distinct);
    const starts = new Uint32Array(distinct + 1);
    let [number, start] = [0, 0];
    for (let term = 0; term <= most; term++) {
      if (next[term]! === start) continue;
      terms[number] = term;
      starts[number++] = start;
      start = next[term]!;
    }
    starts[number] = start;
    return new Postings({ terms, starts, docs, places });
  }
}

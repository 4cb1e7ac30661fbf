/** How often each of a growing list of words has occurred: a Fenwick tree (1994), every step in log(words). */
export class WordCounts {
  readonly #tree: Int32Array;
  readonly #highest: number;
  /** Occurrences so far, of all words. */
  total = 0;

  constructor(words: number) {
    this.#tree = new Int32Array(words + 1);
    this.#highest = words === 0 ? 0 : 2 ** Math.floor(Math.log2(words));
  }

  add(word: number): void {
    this.total++;
    for (let at = word + 1; at < this.#tree.length; at += at & -at) this.#tree[at]!++;
  }

  /** Occurrences of the words before this one. */
  before(word: number): number {
    let sum = 0;
    for (let at = word; at > 0; at -= at & -at) sum += this.#tree[at]!;
    return sum;
  }

  /** The word that the occurrence number `place` (from 0, word by word) is one of. */
  wordAt(place: number): number {
    let word = 0;
    let left = place;
    for (let step = this.#highest; step > 0; step >>= 1) {
      const next = word + step;
      if (next >= this.#tree.length || this.#tree[next]! > left) continue;
      word = next;
      left -= this.#tree[next]!;
    }
    return word;
  }
}

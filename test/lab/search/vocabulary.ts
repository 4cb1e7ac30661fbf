/**
 * A generated language: words of syllables, distributed by the law of Zipf and Mandelbrot (the n-th most frequent word's share falls
 * as 1 / (n + shift)). The shift accounts for stop words, which are not indexed: the most frequent remaining word is on about a
 * third of the language's pages, as on real sites.
 */

const shift = 100;
const onsets = ["", ..."b br c d f g gr h k l m n p pl r s st t tr v w".split(" ")];
const nuclei = ["a", "e", "i", "o", "u", "ai", "ea", "ou"];
const codas = ["", "", "l", "m", "n", "r", "rk", "s", "t", "nd"];

export class Vocabulary {
  readonly words: readonly string[];
  readonly #random: () => number;
  /** Walker's alias method: one draw takes two look-ups. */
  readonly #threshold: Float64Array;
  readonly #alias: Int32Array;

  constructor(size: number, random: () => number) {
    this.#random = random;
    this.words = makeWords(size, random);
    const weights = Float64Array.from({ length: size }, (_, rank) => 1 / (rank + 1 + shift));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    [this.#threshold, this.#alias] = aliasTable(weights.map((weight) => (weight * size) / total));
  }

  /** The rank of a word, 0 for the most frequent. */
  draw(): number {
    const place = this.#random() * this.words.length;
    const at = Math.floor(place);
    return place - at < this.#threshold[at]! ? at : this.#alias[at]!;
  }
}

function makeWords(size: number, random: () => number): string[] {
  const words = new Set<string>();
  const one = (parts: readonly string[]) => parts[Math.floor(random() * parts.length)]!;
  while (words.size < size) {
    // Frequent words are short.
    const syllables = 2 + Math.floor((random() * Math.log10(10 + words.size)) / 2);
    const word = Array.from({ length: syllables }, () => one(onsets) + one(nuclei) + one(codas)).join("");
    if (word.length >= 3) words.add(word);
  }
  return [...words];
}

function aliasTable(shares: Float64Array): [Float64Array, Int32Array] {
  const alias = new Int32Array(shares.length);
  const threshold = Float64Array.from(shares);
  const small: number[] = [];
  const large: number[] = [];
  for (const [at, share] of shares.entries()) (share < 1 ? small : large).push(at);
  while (small.length > 0 && large.length > 0) {
    const [low, high] = [small.pop()!, large.at(-1)!];
    alias[low] = high;
    threshold[high] = threshold[high]! - (1 - threshold[low]!);
    if (threshold[high]! < 1) small.push(large.pop()!);
  }
  for (const at of [...small, ...large]) threshold[at] = 1;
  return [threshold, alias];
}

/** The index at this position (0 to 1) when all shares are laid side by side. */
export function byShare<T extends { readonly share: number }>(some: readonly T[], place: number): T {
  let left = place;
  for (const each of some) {
    left -= each.share;
    if (left < 0) return each;
  }
  return some[0]!;
}

/**
 * Computes a 64-bit simhash of a page's terms (Charikar 2002, Manku and others 2007): pages that share most words differ in few
 * bits. A term's hash is two mixed rounds of FNV-1a with different bases. Crawlers of different versions compare the results,
 * so hash, weights and bit order must never change.
 */
import { type Stemming, wordsIn } from "#core/words/words";

export class Simhash {
  readonly #stemming: Stemming;
  readonly #counts = new Map<string, number>();
  words = 0;

  constructor(stemming: Stemming) {
    this.#stemming = stemming;
  }

  /** Stop words count as words only, because all pages of a language share them. */
  add(text: string): void {
    for (const { word } of wordsIn(text)) {
      this.words++;
      if (this.#stemming.isStopWord(word)) continue;
      const term = this.#stemming.stemOf(word);
      this.#counts.set(term, (this.#counts.get(term) ?? 0) + 1);
    }
  }

  /** Sets the bits that have more than half of the total weight, and writes them in 16 hex digits. */
  toString(): string {
    const weights = new Float64Array(64);
    let total = 0;
    for (const [term, count] of this.#counts) {
      // The weight is 1 for one occurrence and 4 for eight. Integers are several times faster than logarithms.
      const weight = 32 - Math.clz32(count);
      total += weight;
      const [high, low] = [mixed(fnv(term, 0x01000193)), mixed(fnv(term, 0x811c9dc5))];
      for (let bit = 0; bit < 32; bit++) {
        weights[bit]! += weight * ((low >>> bit) & 1);
        weights[32 + bit]! += weight * ((high >>> bit) & 1);
      }
    }
    let bits = 0n;
    for (const [bit, weight] of weights.entries()) if (2 * weight > total) bits |= 1n << BigInt(bit);
    return bits.toString(16).padStart(16, "0");
  }
}

function fnv(text: string, basis: number): number {
  let hash = basis;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Spreads every input bit over the word (the finaliser of MurmurHash3). */
function mixed(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

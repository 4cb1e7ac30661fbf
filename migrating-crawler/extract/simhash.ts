/**
 * A 64-bit simhash of a page's lexemes (Charikar 2002; Manku and others 2007): pages that share most words
 * differ in few bits. Hash of a lexeme: two rounds of FNV-1a with different bases, mixed. The hash, the weights
 * and the order of the bits are part of what crawlers of different versions compare: they never change.
 */

/** The two halves of a lexeme's hash. */
export interface LexemeHash {
  readonly low: number;
  readonly high: number;
}

export function lexemeHash(lexeme: string): LexemeHash {
  return { low: mixed(fnv(lexeme, 0x811c9dc5)), high: mixed(fnv(lexeme, 0x01000193)) };
}

/** Sums' binary digits: more than enough for the weights of a page's lexemes. */
const planeCount = 26;

/**
 * For each of the 64 bits, the weights of the lexemes whose hash has it set. Counted for 32 bits at once: plane `k` holds
 * digit `k` of each bit's sum, and adding a hash is a carry that runs up the planes.
 */
export class SimhashSum {
  readonly #lowPlanes = new Int32Array(planeCount);
  readonly #highPlanes = new Int32Array(planeCount);
  #total = 0;

  add(hash: LexemeHash, count: number): void {
    // 1 for a word met once, 4 for eight times: whole numbers are several times faster than logarithms.
    const weight = 32 - Math.clz32(count);
    this.#total += weight;
    for (let plane = 0; weight >> plane !== 0; plane++) {
      if (((weight >> plane) & 1) === 0) continue;
      addAt(this.#lowPlanes, plane, hash.low);
      addAt(this.#highPlanes, plane, hash.high);
    }
  }

  /** A bit is set where more than half of the weight has it set. */
  toString(): string {
    return hexOf(this.#highPlanes, this.#total) + hexOf(this.#lowPlanes, this.#total);
  }
}

function addAt(planes: Int32Array, plane: number, bits: number): void {
  let carry = bits;
  for (let at = plane; carry !== 0 && at < planeCount; at++) {
    const both = planes[at]! & carry;
    planes[at]! ^= carry;
    carry = both;
  }
}

function hexOf(planes: Int32Array, total: number): string {
  let value = 0;
  for (let bit = 0; bit < 32; bit++) {
    let sum = 0;
    for (let plane = 0; plane < planeCount; plane++) sum += ((planes[plane]! >>> bit) & 1) << plane;
    if (2 * sum > total) value |= 1 << bit;
  }
  return (value >>> 0).toString(16).padStart(8, "0");
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

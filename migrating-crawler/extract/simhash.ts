/**
 * A 64-bit simhash of a page's lexemes (Charikar 2002; Manku and others 2007): pages that share most words
 * differ in few bits. Hash of a lexeme: two rounds of FNV-1a with different bases, mixed.
 */

/** 16 hex digits. `0000000000000000` for a page without words. */
export function simhash(counts: Iterable<readonly [lexeme: string, count: number]>): string {
  const sums = new Int32Array(64);
  for (const [lexeme, count] of counts) {
    // Whole numbers are several times faster here: 1 for a word met once, 4 for eight times.
    const weight = 32 - Math.clz32(count);
    addBits(sums, 0, mixed(fnv(lexeme, 0x811c9dc5)), weight);
    addBits(sums, 32, mixed(fnv(lexeme, 0x01000193)), weight);
  }
  return hexOf(sums, 32) + hexOf(sums, 0);
}

/** How many of the 64 bits differ. */
export function simhashDistance(a: string, b: string): number {
  let bits = BigInt(`0x${a}`) ^ BigInt(`0x${b}`);
  let distance = 0;
  for (; bits > 0n; bits &= bits - 1n) distance++;
  return distance;
}

function addBits(sums: Int32Array, from: number, hash: number, weight: number): void {
  for (let bit = 0; bit < 32; bit++) sums[from + bit]! += (((hash >>> bit) & 1) * 2 - 1) * weight;
}

function hexOf(sums: Int32Array, from: number): string {
  let value = 0;
  for (let bit = 0; bit < 32; bit++) if (sums[from + bit]! > 0) value |= 1 << bit;
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
  return (h ^ (h >>> 16)) >>> 0;
}

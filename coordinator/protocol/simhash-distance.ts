/** How far two simhashes (64 bits, 16 hex digits) are from each other: crawler and coordinator reckon it alike. */

/** How many of the 64 bits differ. */
export function simhashDistance(a: string, b: string): number {
  return bitCount(halfOf(a, 0) ^ halfOf(b, 0)) + bitCount(halfOf(a, 8) ^ halfOf(b, 8));
}

/** How many bits of a 32-bit word are set (Hacker's Delight, section 5-1). */
export function bitCount(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

const halfOf = (simhash: string, at: 0 | 8) => Number.parseInt(simhash.slice(at, at + 8), 16);

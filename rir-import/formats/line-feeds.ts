/**
 * Finds and counts line feeds four bytes at a time. A word less its line feeds (exclusive or) has a zero byte
 * for each; subtracting one from every byte borrows exactly there:
 *
 *   word              6d 65 0a 3a      n e t w o r k s …, a line feed in the third byte
 *   x = word ^ 0a…    67 6f 00 30
 *   (x − 01…) & ~x & 80…     00 00 80 00     the lowest bit set is the first line feed's
 *
 * A dump is nearly all text between line ends: this is where its reading spends the time that it must.
 */

const lineFeed = 0x0a;
const colon = 0x3a;

/** The bytes as aligned words. The first word may begin up to three bytes before them. */
export function wordsOf(bytes: Buffer): Int32Array {
  const before = bytes.byteOffset & 3;
  return new Int32Array(bytes.buffer, bytes.byteOffset - before, (before + bytes.length) >> 2);
}

/**
 * The position of the first line feed at `from` or behind it, or `end`. `words` are those of the bytes, `before`
 * is `bytes.byteOffset & 3`. Little-endian, as every machine that Node runs on but one.
 */
export function lineFeedAt(
  bytes: Buffer,
  words: Int32Array,
  before: number,
  from: number,
  end: number,
): number {
  let at = from;
  while (((at + before) & 3) !== 0) {
    if (at >= end) return end;
    if (bytes[at] === lineFeed) return at;
    at++;
  }
  const lastWord = (end + before) >> 2;
  let word = (at + before) >> 2;
  for (; word < lastWord; word++) {
    const x = (words[word] as number) ^ 0x0a0a0a0a;
    const zeros = (x - 0x01010101) & ~x & 0x80808080;
    if (zeros !== 0) return (word << 2) - before + ((31 - Math.clz32(zeros & -zeros)) >> 3);
  }
  for (at = Math.max(at, (word << 2) - before); at < end; at++) if (bytes[at] === lineFeed) return at;
  return end;
}

/** The position of the first colon or line feed at `from` or behind it, or `end`; the rest as above. */
export function colonOrLineFeedAt(
  bytes: Buffer,
  words: Int32Array,
  before: number,
  from: number,
  end: number,
): number {
  let at = from;
  while (((at + before) & 3) !== 0) {
    if (at >= end) return end;
    const code = bytes[at];
    if (code === colon || code === lineFeed) return at;
    at++;
  }
  const lastWord = (end + before) >> 2;
  let word = (at + before) >> 2;
  for (; word < lastWord; word++) {
    const x = (words[word] as number) ^ 0x0a0a0a0a;
    const y = (words[word] as number) ^ 0x3a3a3a3a;
    const zeros = (((x - 0x01010101) & ~x) | ((y - 0x01010101) & ~y)) & 0x80808080;
    if (zeros !== 0) return (word << 2) - before + ((31 - Math.clz32(zeros & -zeros)) >> 3);
  }
  for (at = Math.max(at, (word << 2) - before); at < end; at++) {
    if (bytes[at] === lineFeed || bytes[at] === colon) return at;
  }
  return end;
}

/** How many line feeds lie between two positions; `words` are those of the bytes. */
export function countLineFeeds(bytes: Buffer, words: Int32Array, start: number, end: number): number {
  let count = 0;
  let at = start;
  const before = bytes.byteOffset & 3;
  for (; at < end && ((at + before) & 3) !== 0; at++) if (bytes[at] === lineFeed) count++;
  if (at >= end) return count;
  const lastWord = (end + before) >> 2;
  let word = (at + before) >> 2;
  for (; word < lastWord; word++) {
    const x = (words[word] as number) ^ 0x0a0a0a0a;
    const zeros = ~(((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x | 0x7f7f7f7f);
    if (zeros !== 0) count += Math.imul(zeros >>> 7, 0x01010101) >>> 24;
  }
  for (at = Math.max(at, (word << 2) - before); at < end; at++) if (bytes[at] === lineFeed) count++;
  return count;
}

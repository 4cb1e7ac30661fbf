/**
 * The `tsvector` input form (PostgreSQL manual, section 8.11.1), read into words and occurrences and written
 * again. Only the plain form is read that a crawler writes: one blank between entries, positions ascending
 * from 1 to 16383, no weight D written out. Whatever is read comes out the same to the letter.
 */

export interface VectorOccurrences {
  /** As they stand in the text, quotes and backslashes doubled. */
  readonly words: readonly string[];
  /** In the text's order, those at one position in the words' order: `position * 4 + weight`, and which word. */
  readonly keys: Int32Array;
  readonly ids: Int32Array;
}

/** tsvector's own bound. */
export const maxPosition = 16_383;
/** By weight code; D, the default, is not written. */
const weightLetters = ["", "C", "B", "A"] as const;

const [quote, colon, comma, zero, letterA] = [0x27, 0x3a, 0x2c, 0x30, 0x41] as const;
const [blank, lineEnd] = [0x20, 0x0a] as const;

/** Null when the text is in any other form. */
export function readVector(text: string): VectorOccurrences | null {
  const words: string[] = [];
  // An occurrence takes two characters at least.
  const read: Occurrences = {
    keys: new Int32Array(text.length >> 1),
    ids: new Int32Array(text.length >> 1),
    count: 0,
  };
  for (let at = 0; at < text.length; at++) {
    const end = closingQuote(text, at);
    if (end < 0 || text.charCodeAt(end + 1) !== colon) return null;
    at = readPositions(text, { start: end + 2, word: words.push(text.slice(at + 1, end)) - 1 }, read);
    if (at < 0) return null;
  }
  return { words, ...byPosition(read) };
}

/** `keys` must ascend. */
export function writeVector({ words, keys, ids }: VectorOccurrences): string {
  const written: string[] = words.map((word) => `'${word}':`);
  const isFirst = new Uint8Array(words.length).fill(1);
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!;
    const word = ids[at]!;
    written[word] += `${isFirst[word] ? "" : ","}${key >> 2}${weightLetters[key & 3]!}`;
    isFirst[word] = 0;
  }
  return written.join(" ");
}

/** Where the quote that opens at `at` is closed; a doubled one is one of the word's. -1: nowhere that counts. */
function closingQuote(text: string, at: number): number {
  if (text.charCodeAt(at) !== quote) return -1;
  for (let end = at + 1; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code === blank || code === lineEnd) return -1;
    if (code !== quote) continue;
    if (text.charCodeAt(end + 1) !== quote) return end;
    end++;
  }
  return -1;
}

/** Reads `1A,5`; returns where the blank after it stands, or the text's end. -1: it is not in order. */
function readPositions(
  text: string,
  { start, word }: { start: number; word: number },
  into: Occurrences,
): number {
  let before = 0;
  for (let at = start; ; at++) {
    let position = 0;
    let digit = text.charCodeAt(at) - zero;
    if (digit === 0) return -1;
    for (; digit >= 0 && digit <= 9 && position <= maxPosition; digit = text.charCodeAt(++at) - zero) {
      position = position * 10 + digit;
    }
    if (position <= before || position > maxPosition) return -1;
    before = position;
    const weight = letterA + 3 - text.charCodeAt(at);
    const isWeighted = weight >= 1 && weight <= 3;
    into.keys[into.count] = position * 4 + (isWeighted ? weight : 0);
    into.ids[into.count++] = word;
    if (isWeighted) at++;
    if (at >= text.length) return at;
    const code = text.charCodeAt(at);
    if (code === blank && at + 1 < text.length) return at;
    if (code !== comma) return -1;
  }
}

interface Occurrences {
  readonly keys: Int32Array;
  readonly ids: Int32Array;
  count: number;
}

/** A counting sort: stable, and positions are few. */
function byPosition({ keys, ids, count }: Occurrences) {
  let last = 0;
  for (let at = 0; at < count; at++) if (keys[at]! > last) last = keys[at]!;
  const starts = new Int32Array((last >> 2) + 2);
  for (let at = 0; at < count; at++) starts[(keys[at]! >> 2) + 1]!++;
  for (let at = 1; at < starts.length; at++) starts[at]! += starts[at - 1]!;
  const sorted = { keys: new Int32Array(count), ids: new Int32Array(count) };
  for (let at = 0; at < count; at++) {
    const place = starts[keys[at]! >> 2]!++;
    sorted.keys[place] = keys[at]!;
    sorted.ids[place] = ids[at]!;
  }
  return sorted;
}

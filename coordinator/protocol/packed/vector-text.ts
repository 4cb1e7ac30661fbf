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

const [quote, colon, comma, blank, zero, letterA] = [0x27, 0x3a, 0x2c, 0x20, 0x30, 0x41] as const;

/** Null when the text is in any other form. */
export function readVector(text: string): VectorOccurrences | null {
  const reader = new VectorReader(text);
  while (!reader.isAtEnd) if (!reader.entry()) return null;
  return { words: reader.words, ...byPosition(reader.keys, reader.ids) };
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

class VectorReader {
  readonly words: string[] = [];
  readonly keys: number[] = [];
  readonly ids: number[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Reads `'word':1A,5` and the blank before it. */
  entry(): boolean {
    if (this.words.length > 0 && this.#text.charCodeAt(this.#at++) !== blank) return false;
    if (this.#text.charCodeAt(this.#at) !== quote) return false;
    const end = this.#closingQuote();
    if (end < 0 || this.#text.charCodeAt(end + 1) !== colon) return false;
    const word = this.#text.slice(this.#at + 1, end);
    if (/[ \n]/.test(word)) return false;
    this.words.push(word);
    this.#at = end + 1;
    return this.#positions();
  }

  /** A doubled quote is one of the word's. */
  #closingQuote(): number {
    let end = this.#text.indexOf("'", this.#at + 1);
    while (end >= 0 && this.#text.charCodeAt(end + 1) === quote) end = this.#text.indexOf("'", end + 2);
    return end;
  }

  #positions(): boolean {
    const id = this.words.length - 1;
    let before = 0;
    do {
      this.#at++;
      const position = this.#position();
      if (position <= before) return false;
      before = position;
      this.keys.push(position * 4 + this.#weight());
      this.ids.push(id);
    } while (this.#text.charCodeAt(this.#at) === comma);
    return true;
  }

  /** 0 when there is none that counts. */
  #position(): number {
    let position = 0;
    for (;;) {
      const digit = this.#text.charCodeAt(this.#at) - zero;
      if (!(digit >= 0 && digit <= 9)) return position;
      position = position * 10 + digit;
      if (position === 0 || position > maxPosition) return 0;
      this.#at++;
    }
  }

  #weight(): number {
    const letter = this.#text.charCodeAt(this.#at) - letterA;
    if (!(letter >= 0 && letter <= 2)) return 0;
    this.#at++;
    return 3 - letter;
  }
}

/** A counting sort: stable, and positions are few. */
function byPosition(keys: readonly number[], ids: readonly number[]) {
  const last = keys.reduce((most, key) => Math.max(most, key >> 2), 0);
  const starts = new Int32Array(last + 2);
  for (const key of keys) starts[(key >> 2) + 1] = starts[(key >> 2) + 1]! + 1;
  let sum = 0;
  for (let at = 0; at < starts.length; at++) {
    sum += starts[at]!;
    starts[at] = sum;
  }
  const sorted = { keys: new Int32Array(keys.length), ids: new Int32Array(keys.length) };
  for (let at = 0; at < keys.length; at++) {
    const position = keys[at]! >> 2;
    const place = starts[position]!;
    starts[position] = place + 1;
    sorted.keys[place] = keys[at]!;
    sorted.ids[place] = ids[at]!;
  }
  return sorted;
}

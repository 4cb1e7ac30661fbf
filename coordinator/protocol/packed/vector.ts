/**
 * A page's `tsvector` as its words, in order of first occurrence, and the positions of all occurrences in text order, range
 * coded. As text, positions take most of a result; in text order they take almost nothing. The code holds how many words were
 * skipped (stop words), whether a word is new (the next of the list), and otherwise which word it is. That word is predicted
 * from what followed the same word last time, or else coded by how often each has occurred.
 */
import { ProtocolError } from "#core/errors";
import { freshChances, RangeDecoder, RangeEncoder } from "./numbers.ts";

interface PackedVector {
  /** The words as in the vector, with quotes and backslashes doubled. They contain no blank and no line end. */
  readonly words: readonly string[];
  readonly occurrences: number;
  readonly places: Buffer;
}

/** An occurrence takes at least two characters of the vector, which has at most 900,000. */
const maxOccurrences = 450_000;

/** Returns null when `unpackVector` could not restore the text exactly. */
export function packVector(text: string): PackedVector | null {
  const vector = readVector(text);
  if (vector === null || vector.keys.length > maxOccurrences) return null;
  const { words, keys, ids } = vector;
  if (!isNumberedByOccurrence(ids)) return null;
  const coder = new RangeEncoder();
  const model = new PlaceModel(words.length);
  let position = 0;
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!;
    model.encodeStep(coder, (key >> 2) - position);
    model.encodeWeight(coder, key & 3);
    model.encodeWord(coder, ids[at]!);
    position = key >> 2;
  }
  return { words, occurrences: keys.length, places: coder.finish() };
}

/** Throws ProtocolError when the positions do not fit these words. */
export function unpackVector({ words, occurrences, places }: PackedVector): string {
  if (occurrences > maxOccurrences) throw new ProtocolError("a vector has too many occurrences");
  const coder = new RangeDecoder(places);
  const model = new PlaceModel(words.length);
  const vector = { words, keys: new Int32Array(occurrences), ids: new Int32Array(occurrences) };
  let position = 0;
  for (let at = 0; at < occurrences; at++) {
    position += model.decodeStep(coder);
    if (position > maxPosition) throw new ProtocolError("a vector's position is out of range");
    vector.keys[at] = position * 4 + model.decodeWeight(coder);
    vector.ids[at] = model.decodeWord(coder);
  }
  if (model.known !== words.length) throw new ProtocolError("a vector has words without a place");
  return writeVector(vector);
}

function isNumberedByOccurrence(ids: VectorOccurrences["ids"]): boolean {
  let known = 0;
  for (const id of ids) {
    if (id > known) return false;
    if (id === known) known++;
  }
  return true;
}

/** How a word was coded: as new, by its count, or by prediction. */
const [asNew, asCounted, asGuessed] = [0, 1, 2] as const;

type Coming = typeof asNew | typeof asCounted | typeof asGuessed;

/** A step of this length or more is followed by its remainder in bits. */
const unaryStep = 15;

const stepBits = 14;

/** The state that encoder and decoder have in common when the next occurrence is coded. */
class PlaceModel {
  known = 0;
  readonly #counts: WordCounts;
  /** The word that last followed each word, plus 1; 0 if none has. */
  readonly #followers: Int32Array;
  readonly #steps = freshChances(3 * (unaryStep + 1));
  readonly #sameWeight = freshChances(4);
  readonly #guessed = freshChances(3 * 4);
  readonly #isNew = freshChances(3 * 3 * 2);
  #coming: Coming = asNew;
  #comingBefore: Coming = asNew;
  #weight = 3;
  #word = -1;

  constructor(words: number) {
    this.#counts = new WordCounts(words);
    this.#followers = new Int32Array(words);
  }

  /** Codes the distance from the previous position as a row of 1s and a 0. */
  encodeStep(coder: RangeEncoder, step: number): void {
    const context = this.#coming * (unaryStep + 1);
    for (let at = 0; at < unaryStep; at++) {
      coder.bit(this.#steps, context + at, step > at ? 1 : 0);
      if (step <= at) return;
    }
    coder.bits(step - unaryStep, stepBits);
  }

  decodeStep(coder: RangeDecoder): number {
    const context = this.#coming * (unaryStep + 1);
    for (let at = 0; at < unaryStep; at++) if (coder.bit(this.#steps, context + at) === 0) return at;
    return unaryStep + coder.bits(stepBits);
  }

  encodeWeight(coder: RangeEncoder, weight: number): void {
    coder.bit(this.#sameWeight, this.#weight, weight === this.#weight ? 0 : 1);
    if (weight !== this.#weight) coder.bits(weight, 2);
    this.#weight = weight;
  }

  decodeWeight(coder: RangeDecoder): number {
    if (coder.bit(this.#sameWeight, this.#weight) === 1) this.#weight = coder.bits(2);
    return this.#weight;
  }

  encodeWord(coder: RangeEncoder, word: number): void {
    const guess = this.#guess();
    if (guess >= 0) coder.bit(this.#guessed, this.#guessContext(), word === guess ? 1 : 0);
    if (word === guess) {
      this.#learn(word, asGuessed);
      return;
    }
    const isNew = word === this.known;
    coder.bit(this.#isNew, this.#newContext(guess), isNew ? 1 : 0);
    if (!isNew) this.#encodeCounted(coder, word);
    this.#learn(word, isNew ? asNew : asCounted);
  }

  decodeWord(coder: RangeDecoder): number {
    const guess = this.#guess();
    if (guess >= 0 && coder.bit(this.#guessed, this.#guessContext()) === 1) {
      this.#learn(guess, asGuessed);
    } else if (coder.bit(this.#isNew, this.#newContext(guess)) === 1) {
      if (this.known >= this.#followers.length)
        throw new ProtocolError("a vector has more places than words");
      this.#learn(this.known, asNew);
    } else {
      this.#learn(this.#decodeCounted(coder), asCounted);
    }
    return this.#word;
  }

  #encodeCounted(coder: RangeEncoder, word: number): void {
    const start = this.#counts.before(word);
    coder.symbol(start, this.#counts.before(word + 1) - start, this.#counts.total);
  }

  #decodeCounted(coder: RangeDecoder): number {
    if (this.#counts.total === 0) throw new ProtocolError("a vector repeats a word before its first");
    const word = this.#counts.wordAt(coder.place(this.#counts.total));
    const start = this.#counts.before(word);
    coder.take(start, this.#counts.before(word + 1) - start, this.#counts.total);
    return word;
  }

  #learn(word: number, coming: Coming): void {
    if (coming === asNew) this.known++;
    this.#counts.add(word);
    if (this.#word >= 0) this.#followers[this.#word] = word + 1;
    this.#word = word;
    this.#comingBefore = this.#coming;
    this.#coming = coming;
  }

  #guess(): number {
    return this.#word < 0 ? -1 : this.#followers[this.#word]! - 1;
  }

  #guessContext(): number {
    return this.#coming * 4 + (this.#comingBefore === asGuessed ? 1 : 0);
  }

  #newContext(guess: number): number {
    return (this.#coming * 3 + this.#comingBefore) * 2 + (guess >= 0 ? 1 : 0);
  }
}

/**
 * Parses and writes the `tsvector` input form (PostgreSQL manual, section 8.11.1). Only the form that a crawler writes is
 * accepted: one blank between entries, positions ascending from 1 to 16383, weight D omitted. Accepted texts are restored
 * exactly.
 */

interface VectorOccurrences {
  readonly words: readonly string[];
  /** `position * 4 + weight` of each occurrence, in text order and within a position in word order. */
  readonly keys: Int32Array;
  readonly ids: Int32Array;
}

const maxPosition = 16_383;

/** Letters by weight code. The default D is not written. */
const weightLetters = ["", "C", "B", "A"] as const;

const [quote, colon, comma, zero, letterA] = [0x27, 0x3a, 0x2c, 0x30, 0x41] as const;
const [blank, lineEnd] = [0x20, 0x0a] as const;

function readVector(text: string): VectorOccurrences | null {
  const words: string[] = [];
  // An occurrence takes at least two characters.
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
function writeVector({ words, keys, ids }: VectorOccurrences): string {
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

/** Returns the position of the closing quote of the word that opens at `at`, skipping doubled quotes, or -1. */
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

/** Reads `1A,5` and returns the position of the blank after it or the text's end, or -1 when it is malformed. */
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

/** A counting sort, because it is stable and there are few positions. */
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

/** Counts the occurrences of each word of a growing list, in a Fenwick tree (1994) with logarithmic steps. */
class WordCounts {
  readonly #tree: Int32Array;
  readonly #highest: number;
  total = 0;

  constructor(words: number) {
    this.#tree = new Int32Array(words + 1);
    this.#highest = words === 0 ? 0 : 2 ** Math.floor(Math.log2(words));
  }

  add(word: number): void {
    this.total++;
    for (let at = word + 1; at < this.#tree.length; at += at & -at) this.#tree[at]!++;
  }

  /** Returns the number of occurrences of all words before this one. */
  before(word: number): number {
    let sum = 0;
    for (let at = word; at > 0; at -= at & -at) sum += this.#tree[at]!;
    return sum;
  }

  /** Returns the word of occurrence number `place`, counted from 0 word by word. */
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

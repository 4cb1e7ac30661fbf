/**
 * A page's `tsvector` text as its words, in the order of their first occurrence, and the places of all
 * occurrences in the text's order, range coded. Written as text, positions take most of a result; in the
 * text's order they are nearly free. What has to be said is how many words were left out (stop words),
 * whether a word is new (then it is the next of the list), and else which one it is: guessed first by what
 * followed the same word last time, then coded by how often each has occurred.
 */
import { ProtocolError } from "#core/errors";
import { freshChances, RangeDecoder, RangeEncoder } from "./range-coder.ts";
import { maxPosition, readVector, type VectorOccurrences, writeVector } from "./vector-text.ts";
import { WordCounts } from "./word-counts.ts";

export interface PackedVector {
  /** As they stand in the vector, quotes and backslashes doubled. None has a blank or a line end. */
  readonly words: readonly string[];
  readonly occurrences: number;
  readonly places: Buffer;
}

/** An occurrence takes at least two characters of the vector, of which a page has at most 900,000. */
const maxOccurrences = 450_000;

/** Null when the text is not one that `unpackVector` would give back to the letter. */
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

/** Throws ProtocolError when the places make no vector of these words. */
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

/** How the word before came: as a new one, by its count, or as guessed. */
const [asNew, asCounted, asGuessed] = [0, 1, 2] as const;
type Coming = typeof asNew | typeof asCounted | typeof asGuessed;
/** Longer steps than this are written out in bits after it. */
const unaryStep = 15;
const stepBits = 14;

/** What encoder and decoder both know when the next occurrence is coded. */
class PlaceModel {
  /** Words that have occurred. */
  known = 0;
  readonly #counts: WordCounts;
  /** What followed each word last, + 1; 0: nothing yet. */
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

  /** How far the position is from the one before: a row of 1s and a 0. */
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

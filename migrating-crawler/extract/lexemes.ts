/**
 * Writes a page's words in the input form of Postgres' `tsvector`, identical to `to_tsvector` of the same texts in sequence,
 * so that the server only has to cast it. Positions run through the whole page, and each part has a weight. The limits are
 * those of tsvector (tokens under 2047 bytes, positions up to 16383, 255 per lexeme) and of the message.
 */

import type { Dictionary } from "./dictionaries.ts";
import { flat } from "./source-text.ts";
import { splitTokens, type Token, type TokenSink } from "./tokens.ts";

/** A is the title, B is headings and description, and D (the default, which is not written) is text. */
export type Weight = "A" | "B" | "D";

const maxPosition = 16_383;
const maxPositionsPerLexeme = 255;
const maxTokenBytes = 2046;

/** The message allows 900,000 characters. */
const maxVectorCharacters = 800_000;

const weights: readonly Weight[] = ["D", "B", "A"];
const firstCapacity = 1024;
const [countField, firstField, lastField, slotFields] = [0, 1, 2, 3];

let pagesBegun = 0;

/** The page to which the lexemes' `page` and `slot` currently belong. */
let pageAtWork = 0;

export class LexemeVector implements TokenSink {
  readonly #page = ++pagesBegun;
  readonly #table: LexemeTable;
  readonly #formatCharactersBreakWords: boolean;
  /** Lexemes for which the table had no room. */
  readonly #own = new Map<string, Lexeme>();
  readonly #lexemes: Lexeme[] = [];
  /** For each slot of `#lexemes`: the number of occurrences, and the first and last one kept. */
  #slots = new Int32Array(slotFields * firstCapacity);
  /** Pairs of `position * 4 + weight` and the index of the lexeme's next occurrence, where 0 means none. */
  #occurrences = new Int32Array(4 * firstCapacity);
  #kept = 0;
  #position = 0;
  #characters = 0;
  #weight = 0;

  constructor(dictionary: Dictionary) {
    this.#table = lexemeTableOf(dictionary);
    this.#formatCharactersBreakWords = dictionary.formatCharactersBreakWords;
  }

  get words(): number {
    return this.#position;
  }

  get isFull(): boolean {
    return this.#characters > maxVectorCharacters;
  }

  add(text: string, weight: Weight): void {
    this.#resume();
    this.#weight = weights.indexOf(weight);
    splitTokens(this.#formatCharactersBreakWords ? withFormatCharactersAsBreaks(text) : text, this);
  }

  *counts(): Iterable<readonly [lexeme: string, count: number]> {
    for (let slot = 0; slot < this.#lexemes.length; slot++)
      yield [this.#lexemes[slot]!.text, this.#countOf(slot)];
  }

  /** The 64-bit simhash of `counts()` in 16 hex digits. */
  simhash(): string {
    const sum = new SimhashSum();
    for (let slot = 0; slot < this.#lexemes.length; slot++)
      sum.add(this.#lexemes[slot]!, this.#countOf(slot));
    return sum.toString();
  }

  /** Writes `'word':1A,5 'other':2B`, with quotes and backslashes doubled. */
  toString(): string {
    const text = new VectorText(
      this.#lexemes.every((lexeme) => lexeme.isNarrow),
      this.#characters,
    );
    for (let slot = 0; slot < this.#lexemes.length; slot++) {
      text.addLexeme(this.#lexemes[slot]!.written);
      const first = this.#slots[slot * slotFields + firstField]!;
      for (let at = first; at !== 0; at = this.#occurrences[at + 1]!) {
        text.addPosition(this.#occurrences[at]! >> 2, this.#occurrences[at]! & 3);
      }
    }
    return text.finish();
  }

  #countOf(slot: number): number {
    return this.#slots[slot * slotFields + countField]!;
  }

  take(token: Token): void {
    if (token.to - token.from > maxTokenBytes / 3 && isTooLong(token)) return;
    this.#position++;
    const lexeme = this.#table.lexemeOf(token, this.#own);
    if (lexeme === null || lexeme.text === "") return;
    const position = Math.min(this.#position, maxPosition);
    if (lexeme.page !== this.#page) this.#enter(lexeme, position);
    else this.#again(lexeme.slot * slotFields, position);
  }

  #enter(lexeme: Lexeme, position: number): void {
    const slot = this.#lexemes.length;
    const at = slot * slotFields;
    if (at === this.#slots.length) this.#slots = doubled(this.#slots);
    lexeme.page = this.#page;
    lexeme.slot = slot;
    this.#lexemes.push(lexeme);
    const kept = this.#keep(position);
    this.#slots[at + countField] = 1;
    this.#slots[at + firstField] = kept;
    this.#slots[at + lastField] = kept;
    this.#characters += lexeme.written.length + 7;
  }

  #again(at: number, position: number): void {
    const count = ++this.#slots[at + countField]!;
    const last = this.#slots[at + lastField]!;
    if (this.#occurrences[last]! >> 2 === position || count > maxPositionsPerLexeme) return;
    const kept = this.#keep(position);
    this.#occurrences[last + 1] = kept;
    this.#slots[at + lastField] = kept;
    this.#characters += 7;
  }

  #keep(position: number): number {
    this.#kept += 2;
    if (this.#kept === this.#occurrences.length) this.#occurrences = doubled(this.#occurrences);
    this.#occurrences[this.#kept] = position * 4 + this.#weight;
    return this.#kept;
  }

  /** Another page may have used the lexemes since the last text of this page. */
  #resume(): void {
    if (pageAtWork === this.#page) return;
    pageAtWork = this.#page;
    for (let slot = 0; slot < this.#lexemes.length; slot++) {
      const lexeme = this.#lexemes[slot]!;
      lexeme.page = this.#page;
      lexeme.slot = slot;
    }
  }
}

function withFormatCharactersAsBreaks(text: string): string {
  return text.replace(/\p{Cf}/gu, "\ufffd");
}

function isTooLong({ text, from, to }: Token): boolean {
  return to - from > maxTokenBytes || Buffer.byteLength(text.slice(from, to)) > maxTokenBytes;
}

function doubled(values: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * values.length);
  larger.set(values);
  return larger;
}

/** Writes a tsvector into a reused buffer, because joining thousands of strings costs more than writing their characters. */

const weightLetters = [0, 0x42, 0x41];

const [blank, comma, zero] = [0x20, 0x2c, 0x30];

const keptCharacters = 65_536;

let kept: Uint16Array<ArrayBuffer> | null = null;

class VectorText {
  readonly #isNarrow: boolean;
  #units: Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;
  #length = 0;
  #isFirstPosition = true;

  /** `isNarrow` means that all characters are Latin-1. `atMost` is the maximum length. */
  constructor(isNarrow: boolean, atMost: number) {
    this.#isNarrow = isNarrow;
    const spare =
      atMost <= keptCharacters ? (kept ?? new Uint16Array(keptCharacters)) : new Uint16Array(atMost);
    kept = null;
    this.#units = isNarrow ? new Uint8Array(spare.buffer) : spare;
  }

  /** `written` is quoted and ends with its colon. */
  addLexeme(written: string): void {
    const units = this.#units;
    let at = this.#length;
    if (at > 0) units[at++] = blank;
    for (let from = 0; from < written.length; from++) units[at++] = written.charCodeAt(from);
    this.#length = at;
    this.#isFirstPosition = true;
  }

  /** `position` is at most 16383. `weight` is 0 for D, 1 for B and 2 for A. */
  addPosition(position: number, weight: number): void {
    const units = this.#units;
    let at = this.#length;
    if (!this.#isFirstPosition) units[at++] = comma;
    this.#isFirstPosition = false;
    const end =
      at + (position < 10 ? 1 : position < 100 ? 2 : position < 1000 ? 3 : position < 10_000 ? 4 : 5);
    let rest = position;
    for (let digitAt = end - 1; digitAt >= at; digitAt--) {
      const tenth = (rest / 10) | 0;
      units[digitAt] = zero + rest - 10 * tenth;
      rest = tenth;
    }
    at = end;
    if (weight !== 0) units[at++] = weightLetters[weight]!;
    this.#length = at;
  }

  finish(): string {
    const { buffer } = this.#units;
    if (buffer.byteLength === 2 * keptCharacters) kept = new Uint16Array(buffer);
    return this.#isNarrow
      ? Buffer.from(buffer, 0, this.#length).toString("latin1")
      : Buffer.from(buffer, 0, 2 * this.#length).toString("utf16le");
  }
}

// Caches the lexemes of recent words. All pages share one table per text search configuration, so that a known word needs one
// look-up and no string. Words are given by position, hashed while they are read (FNV-1a) and looked up with open addressing.
//
// A full table becomes the previous one, from which words still in use are copied until the next table is full. Tables of the
// least recently used configurations are dropped. A page keeps the table with which it began, and stores in its own map what
// no longer fits.

/** A word of the index. `page` and `slot` belong to the page that is being read (lexemes.ts). */
interface Lexeme extends LexemeHash {
  readonly text: string;
  /** The quoted lexeme, with quotes and backslashes doubled, followed by the colon that precedes positions. */
  readonly written: string;
  /** True if all characters of `written` are Latin-1. */
  readonly isNarrow: boolean;
  page: number;
  slot: number;
}

/** A table of 32,768 words takes about 8 MB. A page uses several hundred words, few of them new. */
const maxWords = 32_768;

const maxWordsOverall = 3 * maxWords;
const slotCount = 2 * maxWords;

/** Limits the search. Only deliberately chosen words need more. */
const maxProbes = 32;

const maxKeptCharacters = 64;

const firstUnits = 16_384;

const tables = new Map<string, LexemeTable>();

function lexemeTableOf(dictionary: Dictionary): LexemeTable {
  const { name } = dictionary;
  const known = tables.get(name);
  const table = known === undefined || known.isFull ? new LexemeTable(dictionary, known ?? null) : known;
  tables.delete(name);
  tables.set(name, table);
  let words = 0;
  for (const each of tables.values()) words += each.size;
  for (const [oldest, each] of tables) {
    if (words <= maxWordsOverall || each === table) break;
    words -= each.size;
    tables.delete(oldest);
  }
  return table;
}

export function wordsKept(): number {
  let words = 0;
  for (const table of tables.values()) words += table.size;
  return words;
}

class LexemeTable {
  readonly #dictionary: Dictionary;
  #previous: LexemeTable | null;
  readonly #slots = new Uint16Array(slotCount);
  /** All characters in one array, where they compare faster than strings. */
  #units = new Uint16Array(firstUnits);
  /** Each word's hash beside its offset in `#units`, so that a look-up misses the cache only once. */
  readonly #words = new Int32Array(2 * (maxWords + 2));
  #count = 0;
  readonly #lexemesOfWords: (Lexeme | null)[] = [null];
  readonly #lexemes = new Map<string, Lexeme>();

  constructor(dictionary: Dictionary, previous: LexemeTable | null) {
    this.#dictionary = dictionary;
    this.#previous = previous;
    previous?.forgetPrevious();
  }

  get isFull(): boolean {
    return this.#count === maxWords;
  }

  get size(): number {
    return this.#count + (this.#previous?.size ?? 0);
  }

  forgetPrevious(): void {
    this.#previous = null;
  }

  /** Returns null for a stop word. `own` contains the page's lexemes that do not fit into the table. */
  lexemeOf(token: Token, own: Map<string, Lexeme>): Lexeme | null {
    const at = this.#placeOf(token);
    const word = at < 0 ? 0 : this.#slots[at]!;
    if (word !== 0) return this.#lexemesOfWords[word]!;
    return this.#newWord(token, at, own);
  }

  #placeOf(token: Omit<Token, "kind">): number {
    const { hash } = token;
    let at = (hash ^ (hash >>> 15)) & (slotCount - 1);
    for (let probes = 0; probes < maxProbes; probes++) {
      const word = this.#slots[at]!;
      if (word === 0 || (this.#words[2 * word] === hash && this.#isSame(word, token))) return at;
      at = (at + 1) & (slotCount - 1);
    }
    return -1;
  }

  known(token: Token): Lexeme | null | undefined {
    const at = this.#placeOf(token);
    const found = at < 0 ? 0 : this.#slots[at]!;
    return found === 0 ? undefined : this.#lexemesOfWords[found];
  }

  #newWord(token: Token, at: number, own: Map<string, Lexeme>): Lexeme | null {
    if (at < 0 || this.isFull || token.to - token.from > maxKeptCharacters)
      return this.#ownLexeme(token, own);
    const lexeme = this.#found(token, own);
    const word = ++this.#count;
    this.#lexemesOfWords.push(lexeme);
    this.#words[2 * word] = token.hash;
    this.#slots[at] = word;
    this.#keepUnits(word, token);
    return lexeme;
  }

  #isSame(word: number, { text, from, to }: Omit<Token, "kind">): boolean {
    const begin = this.#words[2 * word + 1]!;
    const length = to - from;
    if (this.#words[2 * word + 3]! - begin !== length) return false;
    const units = this.#units;
    for (let at = 0; at < length; at++) if (units[begin + at] !== text.charCodeAt(from + at)) return false;
    return true;
  }

  #keepUnits(word: number, { text, from, to }: Token): void {
    const begin = this.#words[2 * word + 1]!;
    const length = to - from;
    if (begin + length > this.#units.length) {
      const larger = new Uint16Array(2 * this.#units.length);
      larger.set(this.#units);
      this.#units = larger;
    }
    for (let at = 0; at < length; at++) this.#units[begin + at] = text.charCodeAt(from + at);
    this.#words[2 * word + 3] = begin + length;
  }

  #found(token: Token, own: ReadonlyMap<string, Lexeme>): Lexeme | null {
    const before = this.#previous?.known(token);
    if (before === null) return null;
    if (before !== undefined) return this.#interned(before.text, own.get(before.text) ?? before);
    const text = this.#lexemeText(token);
    return text === null ? null : this.#interned(flat(text), own.get(text) ?? null);
  }

  #interned(text: string, before: Lexeme | null): Lexeme {
    const known = this.#lexemes.get(text);
    if (known !== undefined) return known;
    const lexeme = before ?? newLexeme(text);
    this.#lexemes.set(text, lexeme);
    return lexeme;
  }

  #lexemeText({ kind, text, from, to }: Token): string | null {
    return this.#dictionary.lexemeOf(kind, text.slice(from, to));
  }

  #ownLexeme(token: Token, own: Map<string, Lexeme>): Lexeme | null {
    const text = this.#lexemeText(token);
    if (text === null) return null;
    const known = this.#lexemes.get(text) ?? own.get(text);
    if (known !== undefined) return known;
    const lexeme = newLexeme(text);
    own.set(text, lexeme);
    return lexeme;
  }
}

function newLexeme(text: string): Lexeme {
  const written = `'${/['\\]/.test(text) ? text.replace(/['\\]/g, "$&$&") : text}':`;
  return {
    text,
    written: flat(written),
    isNarrow: !/[^\0-\xff]/.test(text),
    ...lexemeHash(text),
    page: 0,
    slot: 0,
  };
}

// Computes a 64-bit simhash of a page's lexemes (Charikar 2002, Manku and others 2007): pages that share most words differ in
// few bits. A lexeme's hash is two mixed rounds of FNV-1a with different bases. Crawlers of different versions compare the
// results, so hash, weights and bit order must never change.

interface LexemeHash {
  readonly low: number;
  readonly high: number;
}

function lexemeHash(lexeme: string): LexemeHash {
  return { low: mixed(fnv(lexeme, 0x811c9dc5)), high: mixed(fnv(lexeme, 0x01000193)) };
}

/** Enough binary digits for the total weight of any page. */
const planeCount = 26;

/**
 * Adds up, for each of 64 bits, the weights of the lexemes that have the bit set, 32 bits at a time. Plane `k` holds digit `k`
 * of every sum, and an addition carries through the planes.
 */
class SimhashSum {
  readonly #lowPlanes = new Int32Array(planeCount);
  readonly #highPlanes = new Int32Array(planeCount);
  #total = 0;

  add(hash: LexemeHash, count: number): void {
    // The weight is 1 for one occurrence and 4 for eight. Integers are several times faster than logarithms.
    const weight = 32 - Math.clz32(count);
    this.#total += weight;
    for (let plane = 0; weight >> plane !== 0; plane++) {
      if (((weight >> plane) & 1) === 0) continue;
      addAt(this.#lowPlanes, plane, hash.low);
      addAt(this.#highPlanes, plane, hash.high);
    }
  }

  /** Sets the bits that have more than half of the total weight. */
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

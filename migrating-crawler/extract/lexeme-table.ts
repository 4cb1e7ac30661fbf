/**
 * Caches the lexemes of recent words, with a table per text search configuration that all pages share, so a known word
 * needs one look-up and no string. Words are given by position, hashed while they are read (FNV-1a) and looked up with
 * open addressing.
 *
 * A full table becomes the previous one, from which words still in use are copied until the next is full; tables of the
 * least recently used configurations are dropped. A page keeps the table with which it began, and stores in its own map
 * what no longer fits.
 */
import type { Dictionary } from "./dictionaries.ts";
import { flat } from "./source-text.ts";
import type { Token } from "./tokens.ts";

/** A word of the index. `page` and `slot` belong to the page being read (lexemes.ts). */
export interface Lexeme extends LexemeHash {
  readonly text: string;
  /** The quoted lexeme with quotes and backslashes doubled, followed by the colon before positions. */
  readonly written: string;
  /** All characters of `written` are Latin-1. */
  readonly isNarrow: boolean;
  page: number;
  slot: number;
}

/** A table of 32,768 words takes about 8 MB; a page uses some hundred, few of them new. */
const maxWords = 32_768;

const maxWordsOverall = 3 * maxWords;
const slotCount = 2 * maxWords;

/** Limits the search; only deliberately chosen words need more. */
const maxProbes = 32;

/** Longer words are rare and not cached. */
const maxKeptCharacters = 64;

const firstUnits = 16_384;

const tables = new Map<string, LexemeTable>();

export function lexemeTableOf(dictionary: Dictionary): LexemeTable {
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

export class LexemeTable {
  readonly #dictionary: Dictionary;
  #previous: LexemeTable | null;
  readonly #slots = new Uint16Array(slotCount);
  /** Stores all characters contiguously, which compares faster than strings. */
  #units = new Uint16Array(firstUnits);
  /** Stores each word's hash beside its offset in `#units`, so a look-up misses the cache only once. */
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

  /** Includes the words of the previous table. */
  get size(): number {
    return this.#count + (this.#previous?.size ?? 0);
  }

  forgetPrevious(): void {
    this.#previous = null;
  }

  /** Returns null for a stop word. `own` holds the page's lexemes that do not fit here. */
  lexemeOf(token: Token, own: Map<string, Lexeme>): Lexeme | null {
    const at = this.#placeOf(token);
    const word = at < 0 ? 0 : this.#slots[at]!;
    if (word !== 0) return this.#lexemesOfWords[word]!;
    return this.#newWord(token, at, own);
  }

  /** Returns the word's place or a free one, or -1. */
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

  /** Returns undefined for a word that is not cached. */
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

// Computes a 64-bit simhash of a page's lexemes (Charikar 2002; Manku and others 2007): pages that share most words
// differ in few bits. A lexeme's hash is two mixed rounds of FNV-1a with different bases. Crawlers of different
// versions compare the results, so hash, weights and bit order must never change.

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
 * Sums, for each of 64 bits, the weights of the lexemes that have it set, 32 bits at a time: plane `k` holds digit `k`
 * of every sum, and an addition carries through the planes.
 */
export class SimhashSum {
  readonly #lowPlanes = new Int32Array(planeCount);
  readonly #highPlanes = new Int32Array(planeCount);
  #total = 0;

  add(hash: LexemeHash, count: number): void {
    // The weight is 1 for one occurrence and 4 for eight; integers are several times faster than logarithms.
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

/**
 * The lexemes of words met lately, one table for each text search configuration, shared by all pages: a known
 * word costs a look-up and makes no string. Words come in by their place in the text; each is hashed as it is
 * read (FNV-1a) and looked for in an open-addressed table.
 *
 * Bounded: a full table becomes the previous one, from which words still met are taken over, until the next is full
 * too; the tables of the configurations used longest ago are dropped. A page that began with a table keeps it, and
 * what no longer fits is the page's own.
 */
import type { Dictionary } from "./dictionaries.ts";
import { type LexemeHash, lexemeHash } from "./simhash.ts";
import type { TokenKind } from "./token-kind.ts";

/** A word of the index. `page` and `slot` belong to the page that is being read (lexemes.ts). */
export interface Lexeme extends LexemeHash {
  readonly text: string;
  /** In single quotes, with quotes and backslashes doubled, and the colon that positions follow. */
  readonly written: string;
  /** All of `written` is within Latin-1. */
  readonly isNarrow: boolean;
  page: number;
  slot: number;
}

/** Words of a table. 16,384 take about 4 MB; a page brings some hundred, few of them new. */
const maxWords = 16_384;
const maxWordsOverall = 6 * maxWords;
const slotCount = 2 * maxWords;
/** As many places are looked at for a word; more are full only where someone chose the words to be so. */
const maxProbes = 32;
/** Longer words are rare, and not kept. */
const maxKeptCharacters = 64;

const tables = new Map<string, LexemeTable>();

/** The table for a page that begins now. */
export function lexemeTableOf(dictionary: Dictionary): LexemeTable {
  const { config } = dictionary;
  const known = tables.get(config);
  const table = known === undefined || known.isFull ? new LexemeTable(dictionary, known ?? null) : known;
  tables.delete(config);
  tables.set(config, table);
  let words = 0;
  for (const each of tables.values()) words += each.size;
  for (const [name, each] of tables) {
    if (words <= maxWordsOverall || each === table) break;
    words -= each.size;
    tables.delete(name);
  }
  return table;
}

/** Words that all tables hold now. */
export function wordsKept(): number {
  let words = 0;
  for (const table of tables.values()) words += table.size;
  return words;
}

export class LexemeTable {
  readonly #dictionary: Dictionary;
  #previous: LexemeTable | null;
  readonly #slots = new Uint16Array(slotCount);
  readonly #hashes = new Int32Array(maxWords + 1);
  readonly #words: string[] = [""];
  readonly #lexemesOfWords: (Lexeme | null)[] = [null];
  readonly #lexemes = new Map<string, Lexeme>();

  constructor(dictionary: Dictionary, previous: LexemeTable | null) {
    this.#dictionary = dictionary;
    this.#previous = previous;
    previous?.forgetPrevious();
  }

  get isFull(): boolean {
    return this.#words.length > maxWords;
  }

  /** Words held, those of the previous table included. */
  get size(): number {
    return this.#words.length - 1 + (this.#previous?.size ?? 0);
  }

  forgetPrevious(): void {
    this.#previous = null;
  }

  /** The lexeme of the word in `text`, null for a stop word. `own`: the page's own, for what does not fit here. */
  lexemeOf(kind: TokenKind, text: string, from: number, to: number, own: Map<string, Lexeme>): Lexeme | null {
    const hash = hashOf(text, from, to);
    let at = hash & (slotCount - 1);
    for (let probes = 0; probes < maxProbes; probes++) {
      const word = this.#slots[at]!;
      if (word === 0) return this.#newWord({ kind, text, from, to }, hash, at, own);
      if (this.#hashes[word] === hash && isSame(this.#words[word]!, text, from, to))
        return this.#lexemesOfWords[word]!;
      at = (at + 1) & (slotCount - 1);
    }
    return this.#ownLexeme(kind, text.slice(from, to), own);
  }

  /** The lexeme of a word held here; undefined for none. */
  known(word: string): Lexeme | null | undefined {
    const hash = hashOf(word, 0, word.length);
    let at = hash & (slotCount - 1);
    for (let probes = 0; probes < maxProbes; probes++) {
      const found = this.#slots[at]!;
      if (found === 0) return undefined;
      if (this.#words[found] === word) return this.#lexemesOfWords[found];
      at = (at + 1) & (slotCount - 1);
    }
    return undefined;
  }

  #newWord(
    token: { readonly kind: TokenKind; readonly text: string; readonly from: number; readonly to: number },
    hash: number,
    at: number,
    own: Map<string, Lexeme>,
  ): Lexeme | null {
    const { kind, text, from, to } = token;
    const part = text.slice(from, to);
    if (this.isFull || to - from > maxKeptCharacters) return this.#ownLexeme(kind, part, own);
    const word = flat(part);
    const lexeme = this.#found(kind, word, own);
    const place = this.#words.length;
    this.#words.push(word);
    this.#lexemesOfWords.push(lexeme);
    this.#hashes[place] = hash;
    this.#slots[at] = place;
    return lexeme;
  }

  #found(kind: TokenKind, word: string, own: ReadonlyMap<string, Lexeme>): Lexeme | null {
    const before = this.#previous?.known(word);
    if (before === null) return null;
    if (before !== undefined) return this.#interned(before.text, own.get(before.text) ?? before);
    const text = this.#dictionary.lexemeOf(kind, word);
    return text === null ? null : this.#interned(flat(text), own.get(text) ?? null);
  }

  #interned(text: string, before: Lexeme | null): Lexeme {
    const known = this.#lexemes.get(text);
    if (known !== undefined) return known;
    const lexeme = before ?? newLexeme(text);
    this.#lexemes.set(text, lexeme);
    return lexeme;
  }

  #ownLexeme(kind: TokenKind, word: string, own: Map<string, Lexeme>): Lexeme | null {
    const text = this.#dictionary.lexemeOf(kind, word);
    if (text === null) return null;
    const known = this.#lexemes.get(text) ?? own.get(text);
    if (known !== undefined) return known;
    const lexeme = newLexeme(text);
    own.set(text, lexeme);
    return lexeme;
  }
}

function hashOf(text: string, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash ^ (hash >>> 15);
}

function isSame(word: string, text: string, from: number, to: number): boolean {
  if (word.length !== to - from) return false;
  for (let at = 0; at < word.length; at++) {
    if (word.charCodeAt(at) !== text.charCodeAt(from + at)) return false;
  }
  return true;
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

/** A copy that does not keep the page's text alive, of which a slice of 13 units or more is a view. */
function flat(text: string): string {
  return text.length < 13 ? text : Buffer.from(text, "utf16le").toString("utf16le");
}

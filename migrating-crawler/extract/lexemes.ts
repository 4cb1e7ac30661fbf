/**
 * A page's words in Postgres' `tsvector` input form, equal to what `to_tsvector` makes of the same texts one
 * after the other, so that the server only casts. Positions run through the whole page; each part has its weight.
 * Bounds are tsvector's own (tokens under 2047 bytes, positions up to 16383, 255 for a lexeme) and the message's.
 */
import type { Dictionary } from "./dictionaries.ts";
import { type Lexeme, type LexemeTable, lexemeTableOf } from "./lexeme-table.ts";
import { SimhashSum } from "./simhash.ts";
import type { TokenKind } from "./token-kind.ts";
import { splitTokens, type TokenSink } from "./tokens.ts";
import { VectorText } from "./vector-text.ts";

/** A: title; B: headings and description; D: text (the default, not written). */
export type Weight = "A" | "B" | "D";

const maxPosition = 16_383;
const maxPositionsPerLexeme = 255;
const maxTokenBytes = 2046;
/** Characters of the finished vector; the message allows 900,000. */
const maxVectorCharacters = 800_000;

const weights: readonly Weight[] = ["D", "B", "A"];
const firstCapacity = 1024;

let pagesBegun = 0;
/** The page whose `page` and `slot` the lexemes bear. */
let pageAtWork = 0;

export class LexemeVector implements TokenSink {
  readonly #page = ++pagesBegun;
  readonly #table: LexemeTable;
  /** Lexemes that did not fit into the table. */
  readonly #own = new Map<string, Lexeme>();
  readonly #lexemes: Lexeme[] = [];
  /** By slot, which is a lexeme's place in `#lexemes`: how often, and its first and latest occurrence kept. */
  #counts = new Int32Array(firstCapacity);
  #firsts = new Int32Array(firstCapacity);
  #lasts = new Int32Array(firstCapacity);
  /** By occurrence: `position * 4 + weight`, and the next one of its lexeme. 0 is none. */
  #positions = new Int32Array(2 * firstCapacity);
  #nexts = new Int32Array(2 * firstCapacity);
  #kept = 0;
  #position = 0;
  #characters = 0;
  #weight = 0;

  constructor(dictionary: Dictionary) {
    this.#table = lexemeTableOf(dictionary);
  }

  /** Words so far, stop words included. */
  get words(): number {
    return this.#position;
  }

  get isFull(): boolean {
    return this.#characters > maxVectorCharacters;
  }

  add(text: string, weight: Weight): void {
    this.#resume();
    this.#weight = weights.indexOf(weight);
    splitTokens(text, this);
  }

  /** Each lexeme with how often it was counted. */
  *counts(): Iterable<readonly [lexeme: string, count: number]> {
    for (let slot = 0; slot < this.#lexemes.length; slot++)
      yield [this.#lexemes[slot]!.text, this.#counts[slot]!];
  }

  /** The 64-bit simhash of `counts()`, 16 hex digits. */
  simhash(): string {
    const sum = new SimhashSum();
    for (let slot = 0; slot < this.#lexemes.length; slot++)
      sum.add(this.#lexemes[slot]!, this.#counts[slot]!);
    return sum.toString();
  }

  /** `'word':1A,5 'other':2B`, with quotes and backslashes doubled. */
  toString(): string {
    const text = new VectorText(
      this.#lexemes.every((lexeme) => lexeme.isNarrow),
      this.#characters,
    );
    for (let slot = 0; slot < this.#lexemes.length; slot++) {
      text.addLexeme(this.#lexemes[slot]!.written);
      for (let at = this.#firsts[slot]!; at !== 0; at = this.#nexts[at]!) {
        text.addPosition(this.#positions[at]! >> 2, this.#positions[at]! & 3);
      }
    }
    return text.finish();
  }

  /** The splitter's: one token of the text being added. */
  take(kind: TokenKind, text: string, from: number, to: number): void {
    if (to - from > maxTokenBytes / 3 && isTooLong(text, from, to)) return;
    this.#position++;
    const lexeme = this.#table.lexemeOf(kind, text, from, to, this.#own);
    if (lexeme === null || lexeme.text === "") return;
    const position = Math.min(this.#position, maxPosition);
    if (lexeme.page !== this.#page) this.#enter(lexeme, position);
    else this.#again(lexeme.slot, position);
  }

  #enter(lexeme: Lexeme, position: number): void {
    const slot = this.#lexemes.length;
    if (slot === this.#counts.length) this.#growSlots();
    lexeme.page = this.#page;
    lexeme.slot = slot;
    this.#lexemes.push(lexeme);
    const first = this.#keep(position);
    this.#counts[slot] = 1;
    this.#firsts[slot] = first;
    this.#lasts[slot] = first;
    this.#characters += lexeme.written.length + 7;
  }

  #again(slot: number, position: number): void {
    const count = ++this.#counts[slot]!;
    const last = this.#lasts[slot]!;
    if (this.#positions[last]! >> 2 === position || count > maxPositionsPerLexeme) return;
    const kept = this.#keep(position);
    this.#nexts[last] = kept;
    this.#lasts[slot] = kept;
    this.#characters += 7;
  }

  #keep(position: number): number {
    const at = ++this.#kept;
    if (at === this.#positions.length) {
      this.#positions = doubled(this.#positions);
      this.#nexts = doubled(this.#nexts);
    }
    this.#positions[at] = position * 4 + this.#weight;
    return at;
  }

  #growSlots(): void {
    this.#counts = doubled(this.#counts);
    this.#firsts = doubled(this.#firsts);
    this.#lasts = doubled(this.#lasts);
  }

  /** Another page may have been at work since this one's last text. */
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

function isTooLong(text: string, from: number, to: number): boolean {
  return to - from > maxTokenBytes || Buffer.byteLength(text.slice(from, to)) > maxTokenBytes;
}

function doubled(values: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * values.length);
  larger.set(values);
  return larger;
}

/**
 * Writes a page's words in Postgres' `tsvector` input form, identical to `to_tsvector` of the same texts in sequence,
 * so the server only casts. Positions run through the whole page, and each part has a weight. The bounds are those of
 * tsvector (tokens under 2047 bytes, positions up to 16383, 255 per lexeme) and of the message.
 */
import type { Dictionary } from "./dictionaries.ts";
import { type Lexeme, type LexemeTable, lexemeTableOf, SimhashSum } from "./lexeme-table.ts";
import { splitTokens, type Token, type TokenSink } from "./tokens.ts";

/** A is the title, B headings and description, D (the unwritten default) text. */
export type Weight = "A" | "B" | "D";

const maxPosition = 16_383;
const maxPositionsPerLexeme = 255;
const maxTokenBytes = 2046;

/** The message allows 900,000. */
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
  /** Holds lexemes that the table had no room for. */
  readonly #own = new Map<string, Lexeme>();
  readonly #lexemes: Lexeme[] = [];
  /** Per slot of `#lexemes`: the number of occurrences, and the first and last one kept. */
  #slots = new Int32Array(slotFields * firstCapacity);
  /** Pairs of `position * 4 + weight` and the index of the lexeme's next occurrence; 0 means none. */
  #occurrences = new Int32Array(4 * firstCapacity);
  #kept = 0;
  #position = 0;
  #characters = 0;
  #weight = 0;

  constructor(dictionary: Dictionary) {
    this.#table = lexemeTableOf(dictionary);
    this.#formatCharactersBreakWords = dictionary.formatCharactersBreakWords;
  }

  /** Includes stop words. */
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

  /** Receives one token from the splitter. */
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

  /** Returns the index of the new occurrence. */
  #keep(position: number): number {
    this.#kept += 2;
    if (this.#kept === this.#occurrences.length) this.#occurrences = doubled(this.#occurrences);
    this.#occurrences[this.#kept] = position * 4 + this.#weight;
    return this.#kept;
  }

  /** Another page may have used the lexemes since this page's last text. */
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

/** Replaces them with a character that belongs to no word. */
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

/** Writes a tsvector into a reused buffer, because joining thousands of strings costs more than their characters. */

const weightLetters = [0, 0x42, 0x41];

const [blank, comma, zero] = [0x20, 0x2c, 0x30];

/** Keeps one buffer, large enough for most pages. */
const keptCharacters = 65_536;

let kept: Uint16Array<ArrayBuffer> | null = null;

class VectorText {
  readonly #isNarrow: boolean;
  #units: Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;
  #length = 0;
  #isFirstPosition = true;

  /** `isNarrow` means that all characters are Latin-1; `atMost` is the maximum length. */
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

  /** `position` is at most 16383; `weight` is 0 for D, 1 for B, 2 for A. */
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

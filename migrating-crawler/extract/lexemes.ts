/**
 * A page's words in Postgres' `tsvector` input form, equal to what `to_tsvector` makes of the same text, so
 * that the server only casts. Positions run through the whole page; each part has its weight.
 * Bounds are tsvector's own (positions up to 16383, 256 for a lexeme) and the message's.
 */
import type { Dictionary } from "./dictionaries.ts";
import { splitTokens, type TokenKind } from "./tokens.ts";

/** A: title; B: headings and description; D: text (the default, not written). */
export type Weight = "A" | "B" | "D";

const maxPosition = 16_383;
const maxPositionsPerLexeme = 255;
/** Longer tokens are not words; tsvector's own bound is 2046 bytes. */
const maxLexemeCharacters = 255;
/** Characters of the finished vector; the message allows 900,000. */
const maxVectorCharacters = 800_000;

interface Entry {
  count: number;
  lastPosition: number;
  /** Positions as they are written: `:1A,5`. */
  positions: string;
}

export class LexemeVector {
  readonly #dictionary: Dictionary;
  readonly #entries = new Map<string, Entry>();
  #position = 0;
  #characters = 0;

  constructor(dictionary: Dictionary) {
    this.#dictionary = dictionary;
  }

  /** Words so far, stop words included. */
  get words(): number {
    return this.#position;
  }

  add(text: string, weight: Weight): void {
    splitTokens(
      text,
      (kind, token) => this.#take(kind, token, weight),
      () => this.#characters > maxVectorCharacters,
    );
  }

  /** Each lexeme with how often it was counted. */
  *counts(): Iterable<readonly [lexeme: string, count: number]> {
    for (const [lexeme, entry] of this.#entries) yield [lexeme, entry.count];
  }

  /** `'word':1A,5 'other':2B`, with quotes and backslashes doubled. */
  toString(): string {
    const parts: string[] = [];
    for (const [lexeme, entry] of this.#entries) parts.push(`${quoted(lexeme)}${entry.positions}`);
    return parts.join(" ");
  }

  #take(kind: TokenKind, token: string, weight: Weight): void {
    if (token.length > maxLexemeCharacters) return;
    this.#position++;
    const lexeme = this.#dictionary(kind, token);
    if (lexeme === null || lexeme === "") return;
    const position = Math.min(this.#position, maxPosition);
    const entry = this.#entries.get(lexeme);
    const written = `${position}${weight === "D" ? "" : weight}`;
    if (entry === undefined) {
      this.#entries.set(lexeme, { count: 1, lastPosition: position, positions: `:${written}` });
      this.#characters += lexeme.length + written.length + 4;
      return;
    }
    entry.count++;
    if (entry.lastPosition === position || entry.count > maxPositionsPerLexeme) return;
    entry.lastPosition = position;
    entry.positions += `,${written}`;
    this.#characters += written.length + 1;
  }
}

function quoted(lexeme: string): string {
  return /['\\]/.test(lexeme) ? `'${lexeme.replace(/['\\]/g, "$&$&")}'` : `'${lexeme}'`;
}

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
  /** Its places in `positions`, as a chain: the first and the latest. */
  readonly first: number;
  last: number;
}

const weights: readonly Weight[] = ["D", "B", "A"];
const firstCapacity = 4096;

export class LexemeVector {
  readonly #dictionary: Dictionary;
  readonly #entries = new Map<string, Entry>();
  /** Position and weight of each occurrence kept, `position * 4 + weight`, and the next one of its lexeme. */
  #positions = new Int32Array(firstCapacity);
  #next = new Int32Array(firstCapacity);
  #kept = 0;
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
    const code = weights.indexOf(weight);
    splitTokens(
      text,
      (kind, token) => this.#take(kind, token, code),
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
    for (const [lexeme, entry] of this.#entries) parts.push(`${quoted(lexeme)}:${this.#written(entry)}`);
    return parts.join(" ");
  }

  #written(entry: Entry): string {
    let text = writtenPosition(this.#positions[entry.first]!);
    for (let at = this.#next[entry.first]!; at !== 0; at = this.#next[at]!) {
      text += `,${writtenPosition(this.#positions[at]!)}`;
    }
    return text;
  }

  #take(kind: TokenKind, token: string, weight: number): void {
    if (token.length > maxLexemeCharacters) return;
    this.#position++;
    const lexeme = this.#dictionary(kind, token);
    if (lexeme === null || lexeme === "") return;
    const position = Math.min(this.#position, maxPosition);
    const entry = this.#entries.get(lexeme);
    if (entry === undefined) {
      const first = this.#keep(position * 4 + weight);
      this.#entries.set(lexeme, { count: 1, first, last: first });
      this.#characters += lexeme.length + 10;
      return;
    }
    entry.count++;
    if (this.#positions[entry.last]! >> 2 === position || entry.count > maxPositionsPerLexeme) return;
    const last = this.#keep(position * 4 + weight);
    this.#next[entry.last] = last;
    entry.last = last;
    this.#characters += 7;
  }

  /** The place of the new occurrence; 0 is none, so that it can end a chain. */
  #keep(occurrence: number): number {
    this.#kept++;
    if (this.#kept === this.#positions.length) this.#grow();
    this.#positions[this.#kept] = occurrence;
    return this.#kept;
  }

  #grow(): void {
    const [positions, next] = [this.#positions, this.#next];
    this.#positions = new Int32Array(2 * positions.length);
    this.#next = new Int32Array(2 * next.length);
    this.#positions.set(positions);
    this.#next.set(next);
  }
}

function writtenPosition(occurrence: number): string {
  const weight = occurrence & 3;
  return weight === 0 ? `${occurrence >> 2}` : `${occurrence >> 2}${weights[weight]}`;
}

function quoted(lexeme: string): string {
  return /['\\]/.test(lexeme) ? `'${lexeme.replace(/['\\]/g, "$&$&")}'` : `'${lexeme}'`;
}

/**
 * Cuts blocks of statistics into lines and fields, by position: one pass over the bytes, which notes where the
 * bars are. Fields become text only when they are asked for.
 */
import { type BlockHandler, maxLineBytes, tooLongReason } from "./line-blocks.ts";
import type { Malformed } from "./record.ts";
import { decodeText } from "./text-decoding.ts";

export interface FieldsHandler {
  /** A line that is neither empty nor a comment. The fields are valid until the call returns. */
  fields(fields: DelegatedLines): void;
  malformed(problem: Malformed): void;
}

const bar = 0x7c;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const hash = 0x23;

/** The format has nine at most; a few more are told apart so that they can be seen to be too many. */
const maxFields = 12;

export class DelegatedLines implements BlockHandler {
  readonly #handler: FieldsHandler;
  #line = 0;
  /** Of the line at hand. */
  bytes: Buffer = Buffer.alloc(0);
  count = 0;
  readonly #starts = new Int32Array(maxFields + 1);

  constructor(handler: FieldsHandler) {
    this.#handler = handler;
  }

  /** The number of the line at hand, or of lines begun so far. */
  get line(): number {
    return this.#line;
  }

  /** Where a field begins in `bytes`. */
  start(field: number): number {
    return this.#starts[field] as number;
  }

  /** Where a field ends. */
  end(field: number): number {
    return (this.#starts[field + 1] as number) - 1;
  }

  /** What a field means to one who remembers. */
  meaning<Meaning>(field: number, remembered: RememberedBytes<Meaning>): Meaning {
    return remembered.of(this.bytes, this.start(field), this.end(field));
  }

  /** A field as text; empty when the line has no such field. */
  text(field: number): string {
    return field < this.count ? decodeText(this.bytes, this.start(field), this.end(field)) : "";
  }

  /** The whole line. */
  get whole(): string {
    return decodeText(this.bytes, this.start(0), this.end(this.count - 1));
  }

  block(bytes: Buffer, start: number, end: number): void {
    const starts = this.#starts;
    this.bytes = bytes;
    for (let at = start; at < end; ) {
      starts[0] = at;
      let count = 1;
      let lineEnd = at;
      for (; lineEnd < end; lineEnd++) {
        const code = bytes[lineEnd] as number;
        if (code === bar) {
          if (count < maxFields) starts[count++] = lineEnd + 1;
        } else if (code === lineFeed) break;
      }
      this.#line++;
      if (lineEnd - at > maxLineBytes) this.#tooLong(bytes.subarray(at, at + 80));
      else if (lineEnd > at && bytes[at] !== hash) this.#emit(count, lineEnd);
      at = lineEnd + 1;
    }
    this.bytes = Buffer.alloc(0);
  }

  longLine(beginning: Buffer): void {
    this.#line++;
    this.#tooLong(beginning);
  }

  #emit(count: number, lineEnd: number): void {
    const end = this.bytes[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd;
    this.count = count;
    this.#starts[count] = end + 1;
    if (count > 1 || this.whole !== "") this.#handler.fields(this);
  }

  #tooLong(beginning: Buffer): void {
    const value = decodeText(beginning, 0, Math.min(beginning.length, 80));
    this.#handler.malformed({ line: this.#line, reason: tooLongReason, value });
  }
}

// What a short value means, remembered from one record to the next: in a registry file the same few words (the
// registry, the type, the status) fill whole columns, and comparing their bytes spares making a text of them.

const maxRemembered = 64;

export class RememberedBytes<Meaning> {
  readonly #meaningOf: (text: string) => Meaning;
  readonly #bytes = Buffer.alloc(maxRemembered);
  #length = -1;
  #meaning: Meaning | undefined;

  /** `meaningOf` has the same answer for the same text, always. */
  constructor(meaningOf: (text: string) => Meaning) {
    this.#meaningOf = meaningOf;
  }

  /** The meaning of the bytes between two positions. */
  of(bytes: Buffer, start: number, end: number): Meaning {
    if (this.#isSame(bytes, start, end)) return this.#meaning as Meaning;
    const meaning = this.#meaningOf(decodeText(bytes, start, end));
    this.#length = end - start <= maxRemembered ? bytes.copy(this.#bytes, 0, start, end) : -1;
    this.#meaning = meaning;
    return meaning;
  }

  #isSame(bytes: Buffer, start: number, end: number): boolean {
    if (end - start !== this.#length) return false;
    const known = this.#bytes;
    for (let at = 0; at < this.#length; at++) if (known[at] !== bytes[start + at]) return false;
    return true;
  }
}

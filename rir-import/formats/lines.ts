/**
 * Cuts chunks into lines, with a bound on the length of one: a 50 MB line costs its reading, not memory.
 * Also the one place where bytes become text.
 */

/** Longer lines are not data; the longest attribute value seen in a real dump is under 4 KB. */
export const maxLineBytes = 65_536;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

export interface LineHandler {
  /** One line without its end, between two positions of the buffer. */
  line(bytes: Buffer, start: number, end: number, number: number): void;
  /** A line over the bound: its beginning only. Its rest is skipped. */
  longLine(beginning: Buffer, number: number): void;
}

/** State of the cut between chunks: the piece of a line whose end has not arrived. */
export class LineCutter {
  readonly #handler: LineHandler;
  #carry: Buffer | null = null;
  #skipping = false;
  #number = 0;

  constructor(handler: LineHandler) {
    this.#handler = handler;
  }

  /** Lines begun so far; the last one may lack its end. */
  get lines(): number {
    return this.#number + (this.#carry === null && !this.#skipping ? 0 : 1);
  }

  /** True when the last byte so far was not a line end. */
  get insideLine(): boolean {
    return this.#carry !== null || this.#skipping;
  }

  push(chunk: Buffer): void {
    let start = 0;
    if (this.#carry !== null || this.#skipping) {
      const end = chunk.indexOf(lineFeed);
      if (end < 0) {
        this.#keep(chunk, 0);
        return;
      }
      this.#finishCarried(chunk, end);
      start = end + 1;
    }
    for (let end = chunk.indexOf(lineFeed, start); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      this.#emit(chunk, start, end);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk, start);
  }

  end(): void {
    if (this.#carry !== null) {
      const carried = this.#carry;
      this.#carry = null;
      this.#emit(carried, 0, carried.length);
    }
    this.#skipping = false;
  }

  #finishCarried(chunk: Buffer, end: number): void {
    if (this.#skipping) {
      this.#skipping = false;
      this.#number++;
      return;
    }
    const line = Buffer.concat([this.#carry ?? Buffer.alloc(0), chunk.subarray(0, end)]);
    this.#carry = null;
    this.#emit(line, 0, line.length);
  }

  #emit(bytes: Buffer, start: number, end: number): void {
    this.#number++;
    if (end - start > maxLineBytes) {
      this.#handler.longLine(bytes.subarray(start, start + 200), this.#number);
      return;
    }
    const last = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
    this.#handler.line(bytes, start, last, this.#number);
  }

  #keep(chunk: Buffer, start: number): void {
    if (this.#skipping) return;
    const rest = chunk.subarray(start);
    const joined = this.#carry === null ? Buffer.from(rest) : Buffer.concat([this.#carry, rest]);
    if (joined.length <= maxLineBytes) {
      this.#carry = joined;
      return;
    }
    this.#carry = null;
    this.#skipping = true;
    this.#handler.longLine(joined.subarray(0, 200), this.#number + 1);
  }
}

const notAscii = /[^\x20-\x7e\t]/;
const controls = /\p{Cc}+/gu;

/**
 * Bytes to text: UTF-8 where they are valid UTF-8, else Latin-1 (LACNIC, old RIPE dumps). Control
 * characters, NUL among them, become spaces; the ends are trimmed.
 */
export function decodeText(bytes: Buffer, start: number, end: number): string {
  const latin1 = bytes.toString("latin1", start, end);
  if (!notAscii.test(latin1)) return latin1.trim();
  const utf8 = bytes.toString("utf8", start, end);
  return (utf8.includes("\ufffd") ? latin1 : utf8).replace(controls, " ").trim();
}

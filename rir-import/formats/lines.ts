/** Cuts chunks into single lines with their numbers, for readers that need not count nanoseconds. */
import { BlockCutter, type BlockHandler, maxLineBytes } from "./line-blocks.ts";

export { decodeText } from "./text-decoding.ts";

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

export interface LineHandler {
  /** One line without its end, between two positions of the buffer, which are valid until the call returns. */
  line(bytes: Buffer, start: number, end: number, number: number): void;
  /** A line over the bound: its beginning only. Its rest is skipped. */
  longLine(beginning: Buffer, number: number): void;
}

export class LineCutter implements BlockHandler {
  readonly #handler: LineHandler;
  readonly #cutter = new BlockCutter(this);
  #number = 0;

  constructor(handler: LineHandler) {
    this.#handler = handler;
  }

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  end(): void {
    this.#cutter.end();
  }

  block(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const found = bytes.indexOf(lineFeed, at);
      const lineEnd = found < 0 || found > end ? end : found;
      this.#line(bytes, at, lineEnd);
      at = lineEnd + 1;
    }
  }

  longLine(beginning: Buffer): void {
    this.#handler.longLine(beginning, ++this.#number);
  }

  #line(bytes: Buffer, start: number, end: number): void {
    this.#number++;
    if (end - start > maxLineBytes) {
      this.#handler.longLine(bytes.subarray(start, start + 200), this.#number);
      return;
    }
    const last = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
    this.#handler.line(bytes, start, last, this.#number);
  }
}

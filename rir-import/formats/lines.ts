/**
 * Splits chunks into numbered lines, one character per byte (text-decoding.ts decodes what is needed). The incomplete
 * line at a chunk's end is kept up to a limit, so a 50 MB line costs time, not memory.
 */

/** Longer lines are not data; the longest attribute value in a real dump is under 4 KB. */
const maxLineBytes = 65_536;
export const tooLongReason = "a line longer than 65,536 bytes";
/** Limits what is shown of an overlong line. */
const shownBytes = 80;

export interface LineHandler {
  /** A line without its line end. */
  line(line: string, number: number): void;
  /** Receives only the beginning of an overlong line. */
  longLine(beginning: string, number: number): void;
}

export class LineCutter {
  readonly #handler: LineHandler;
  #carry = "";
  #skipping = false;
  #number = 0;

  constructor(handler: LineHandler) {
    this.#handler = handler;
  }

  get lines(): number {
    return this.#number;
  }

  /** True when the last byte so far was not a line end. */
  get insideLine(): boolean {
    return this.#carry !== "" || this.#skipping;
  }

  /** Does not keep the chunk, which its owner may refill. */
  push(chunk: Buffer): void {
    const text = chunk.toString("latin1");
    let at = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", at)) {
      this.#end(this.#carry === "" ? text.slice(at, end) : this.#carry + text.slice(at, end));
      this.#carry = "";
      at = end + 1;
    }
    if (this.#skipping || at === text.length) return;
    this.#carry += text.slice(at);
    if (this.#carry.length <= maxLineBytes) return;
    this.#tell(this.#carry);
    this.#carry = "";
    this.#skipping = true;
  }

  /** The last line may lack its end. */
  end(): void {
    if (this.#carry !== "") this.#tell(this.#carry);
    this.#carry = "";
    this.#skipping = false;
  }

  #end(line: string): void {
    if (this.#skipping) this.#skipping = false;
    else this.#tell(line);
  }

  #tell(line: string): void {
    const number = ++this.#number;
    if (line.length > maxLineBytes) this.#handler.longLine(line.slice(0, shownBytes), number);
    else this.#handler.line(line.endsWith("\r") ? line.slice(0, -1) : line, number);
  }
}

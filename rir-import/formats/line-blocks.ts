/**
 * Cuts chunks into blocks of whole lines, so that a reader scans a block in one loop and never meets half a
 * line. The piece of a line at a chunk's end is kept until its rest arrives, with a bound: a 50 MB line costs
 * its reading, not memory.
 */

/** Longer lines are not data; the longest attribute value seen in a real dump is under 4 KB. */
export const maxLineBytes = 65_536;
export const tooLongReason = "a line longer than 65,536 bytes";
/** So much of a line that is too long is shown. */
const shownBytes = 200;

const lineFeed = 0x0a;

export interface BlockHandler {
  /**
   * Whole lines between two positions, each with its line feed; only the file's last may lack it. The bytes are
   * valid until the call returns. A line over the bound may be among them.
   */
  block(bytes: Buffer, start: number, end: number): void;
  /** A line over the bound that no block holds: its beginning only. Its rest is skipped. */
  longLine(beginning: Buffer): void;
}

/** State of the cut between chunks: the piece of a line whose end has not arrived. */
export class BlockCutter {
  readonly #handler: BlockHandler;
  #carry: Buffer | null = null;
  #skipping = false;

  constructor(handler: BlockHandler) {
    this.#handler = handler;
  }

  /** True when the last byte so far was not a line end. */
  get insideLine(): boolean {
    return this.#carry !== null || this.#skipping;
  }

  /** The chunk is not kept: its owner may fill it anew. */
  push(chunk: Buffer): void {
    const start = this.insideLine ? this.#finishCarried(chunk) : 0;
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end > start) this.#handler.block(chunk, start, end);
    if (Math.max(start, end) < chunk.length) this.#keep(chunk.subarray(Math.max(start, end)));
  }

  end(): void {
    const carried = this.#carry;
    this.#carry = null;
    this.#skipping = false;
    if (carried !== null) this.#handler.block(carried, 0, carried.length);
  }

  /** Where the chunk's own lines begin: behind the end of the carried one. */
  #finishCarried(chunk: Buffer): number {
    const end = chunk.indexOf(lineFeed) + 1;
    if (end === 0) return 0;
    const carried = this.#carry;
    this.#carry = null;
    if (!this.#skipping && carried !== null) {
      const line = Buffer.concat([carried, chunk.subarray(0, end)]);
      this.#handler.block(line, 0, line.length);
    }
    this.#skipping = false;
    return end;
  }

  #keep(rest: Buffer): void {
    if (this.#skipping) return;
    const joined = this.#carry === null ? Buffer.from(rest) : Buffer.concat([this.#carry, rest]);
    this.#carry = joined;
    if (joined.length <= maxLineBytes) return;
    this.#carry = null;
    this.#skipping = true;
    this.#handler.longLine(joined.subarray(0, shownBytes));
  }
}

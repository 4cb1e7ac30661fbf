/**
 * Gathers a body from the pieces in which it comes. Small pieces are copied together: as views of their own
 * they would cost many times their size (a body in one-byte chunks), and keep the socket's buffers alive.
 */

/** Smaller pieces are copied. */
const smallBytes = 2048;
const blockBytes = 16 * 1024;

export class PieceCollector {
  #length = 0;
  readonly #pieces: Buffer[] = [];
  /** The block that is being filled, and how much of it holds bytes that are not in `#pieces` yet. */
  #block: Buffer | null = null;
  #filled = 0;

  get length(): number {
    return this.#length;
  }

  push(piece: Buffer): void {
    this.#length += piece.length;
    if (piece.length >= smallBytes) {
      this.#closeBlock();
      this.#pieces.push(piece);
      return;
    }
    if (this.#block !== null && this.#filled + piece.length > blockBytes) this.#closeBlock();
    this.#block ??= Buffer.allocUnsafeSlow(blockBytes);
    piece.copy(this.#block, this.#filled);
    this.#filled += piece.length;
  }

  /** The first `most` bytes of what has come. */
  take(most: number): Buffer {
    this.#closeBlock();
    const [only] = this.#pieces;
    if (this.#pieces.length === 1) return only!.subarray(0, most);
    return Buffer.concat(this.#pieces, Math.min(this.#length, most));
  }

  #closeBlock(): void {
    if (this.#block === null) return;
    if (this.#filled > 0) this.#pieces.push(this.#block.subarray(0, this.#filled));
    this.#block = null;
    this.#filled = 0;
  }
}

/**
 * Cuts RPSL into pieces behind empty lines, where no reader has anything in mind of what came before: each piece may
 * be read by another thread. A piece is copied out of the chunks into memory of its own, which goes with it. Where
 * there is no empty line for longer than a piece, the piece is handed on in stretches instead of being collected.
 */

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

export interface PieceHandler {
  /** A whole piece. Its memory is the handler's from now on. */
  piece(bytes: Buffer): void;
  /** A part of a piece that is too long to be collected; valid until the call returns. */
  stretch(bytes: Buffer): void;
  /** The piece that came in stretches is whole. */
  stretchesEnd(): void;
}

export class PieceCutter {
  readonly #pieceBytes: number;
  readonly #handler: PieceHandler;
  #bytes: Buffer;
  #length = 0;
  #isStretching = false;
  /** Of the stretches: the two bytes before the next one, 0 where there were none. */
  #last = 0;
  #lastButOne = 0;

  constructor(pieceBytes: number, handler: PieceHandler) {
    this.#pieceBytes = pieceBytes;
    this.#handler = handler;
    this.#bytes = Buffer.allocUnsafeSlow(pieceBytes);
  }

  /** What lies behind the last cut and was not handed on in stretches. */
  get rest(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; )
      at = this.#isStretching ? this.#stretch(chunk, at) : this.#fill(chunk, at);
  }

  #fill(chunk: Buffer, from: number): number {
    const copied = chunk.copy(this.#bytes, this.#length, from);
    this.#length += copied;
    if (this.#length === this.#pieceBytes) this.#cut();
    return from + copied;
  }

  #cut(): void {
    const bytes = this.#bytes;
    const end = lastCut(bytes);
    if (end === 0) {
      this.#isStretching = true;
      this.#handler.stretch(bytes);
      this.#length = 0;
      this.#remember(bytes, bytes.length);
      return;
    }
    this.#bytes = Buffer.allocUnsafeSlow(this.#pieceBytes);
    this.#length = bytes.copy(this.#bytes, 0, end);
    this.#handler.piece(bytes.subarray(0, end));
  }

  /** Up to the first empty line. */
  #stretch(chunk: Buffer, from: number): number {
    const end = this.#firstCut(chunk, from);
    this.#handler.stretch(chunk.subarray(from, end < 0 ? chunk.length : end));
    if (end < 0) {
      this.#remember(chunk, chunk.length);
      return chunk.length;
    }
    this.#isStretching = false;
    this.#handler.stretchesEnd();
    return end;
  }

  #firstCut(chunk: Buffer, from: number): number {
    const before = (at: number, back: number) =>
      at >= back ? chunk[at - back] : at - back === -1 ? this.#last : this.#lastButOne;
    for (let at = chunk.indexOf(lineFeed, from); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) {
      const last = before(at, 1);
      if (last === lineFeed || (last === carriageReturn && before(at, 2) === lineFeed)) return at + 1;
    }
    return -1;
  }

  #remember(bytes: Buffer, end: number): void {
    this.#lastButOne = end > 1 ? (bytes[end - 2] as number) : this.#last;
    this.#last = bytes[end - 1] as number;
  }
}

/** The position behind the last empty line (of those without a carriage return, where there are any); 0 where there is none. */
function lastCut(bytes: Buffer): number {
  const plain = bytes.lastIndexOf("\n\n");
  if (plain >= 0) return plain + 2;
  const withReturn = bytes.lastIndexOf("\n\r\n");
  return withReturn < 0 ? 0 : withReturn + 3;
}

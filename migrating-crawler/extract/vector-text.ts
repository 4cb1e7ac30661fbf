/**
 * Writes a tsvector's text into a buffer that is used again for every page: a string that is put together from
 * some thousand parts costs more than its characters.
 */

const weightLetters = [0, 0x42, 0x41];
const [blank, comma, zero] = [0x20, 0x2c, 0x30];
/** One page's buffer is kept, of what most pages need. */
const keptCharacters = 65_536;
let kept: Uint16Array<ArrayBuffer> | null = null;

export class VectorText {
  readonly #isNarrow: boolean;
  #units: Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;
  #length = 0;
  #isFirstPosition = true;

  /** `isNarrow`: all characters are within Latin-1. `atMost`: how many will be written. */
  constructor(isNarrow: boolean, atMost: number) {
    this.#isNarrow = isNarrow;
    const spare =
      atMost <= keptCharacters ? (kept ?? new Uint16Array(keptCharacters)) : new Uint16Array(atMost);
    kept = null;
    this.#units = isNarrow ? new Uint8Array(spare.buffer) : spare;
  }

  /** `written`: quoted, with its colon. */
  addLexeme(written: string): void {
    const units = this.#units;
    let at = this.#length;
    if (at > 0) units[at++] = blank;
    for (let from = 0; from < written.length; from++) units[at++] = written.charCodeAt(from);
    this.#length = at;
    this.#isFirstPosition = true;
  }

  /** `position`: up to 16383. `weight`: 0 for D, 1 for B, 2 for A. */
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

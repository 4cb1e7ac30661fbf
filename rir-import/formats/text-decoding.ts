/**
 * Decodes bytes to text. Readers treat bytes as Latin-1, one character each, which is fast and lossless, and decode
 * here what is shown or kept: valid UTF-8 (RFC 3629) as such, other bytes one by one (LACNIC, old RIPE dumps) as
 * Latin-1 with Windows-1252's characters in 0x80 to 0x9F. Names therefore stay readable in any encoding, and a broken
 * byte affects no other. Control characters become spaces, and the ends are trimmed.
 */
import { isUtf8 } from "node:buffer";

/** The encodings of a file's values. Plain ASCII is not counted. */
export interface EncodingCounts {
  readonly utf8Values: number;
  /** Values with invalid UTF-8, which are read as Windows-1252. */
  readonly latin1Values: number;
  /** The line of the first record that contains such a value. */
  readonly firstLatin1Line: number | null;
}

/** Longer names and handles are cut to keep keys within an index's limit. The longest in real dumps is under 200. */
export const maxTextLength = 500;

/** Windows-1252 from 0x80 to 0x9F. Its five undefined bytes become the replacement character. */
const windows1252 = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ";
const controls = /\p{Cc}+/gu;
const beyondAscii = /[\x80-\xff]/;
const beyondPlainAscii = /[^\t\x20-\x7e]/;
const utf8Sequence =
  /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g;

export function decodeText(bytes: string): string {
  return new ValueDecoder().text(bytes);
}

/** Decodes the values of one file and counts non-ASCII ones. */
export class ValueDecoder {
  line = 0;
  #utf8Values = 0;
  #latin1Values = 0;
  #firstLatin1Line: number | null = null;

  get counts(): EncodingCounts | null {
    if (this.#utf8Values + this.#latin1Values === 0) return null;
    return {
      utf8Values: this.#utf8Values,
      latin1Values: this.#latin1Values,
      firstLatin1Line: this.#firstLatin1Line,
    };
  }

  text(bytes: string): string {
    const text = beyondPlainAscii.test(bytes) ? this.raw(bytes).replace(controls, " ") : bytes;
    return text.trim();
  }

  /** Returns a limited value without its trailing comment (`#` at the start or after a blank), or null if empty. */
  bare(bytes: string): string | null {
    return withoutComment(this.text(bytes));
  }

  /** Leaves control characters and blanks unchanged. */
  raw(bytes: string): string {
    if (!beyondAscii.test(bytes)) return bytes;
    const buffer = Buffer.from(bytes, "latin1");
    if (isUtf8(buffer)) {
      this.#utf8Values++;
      return buffer.toString();
    }
    this.#latin1Values++;
    this.#firstLatin1Line ??= this.line;
    return mixed(bytes);
  }
}

export function withoutComment(value: string): string | null {
  const comment = value.includes("#") ? value.search(/(?:^|[ \t])#/) : -1;
  const text = (comment < 0 ? value : value.slice(0, comment)).trim().slice(0, maxTextLength);
  return text === "" ? null : text;
}

/** Decodes a mixture of UTF-8 sequences and single bytes. */
function mixed(bytes: string): string {
  return bytes.replace(utf8Sequence, (sequence) => {
    const buffer = Buffer.from(sequence, "latin1");
    // Overlong forms and surrogate halves look like sequences but are invalid.
    return sequence.length > 1 && isUtf8(buffer) ? buffer.toString() : [...sequence].map(letterOf).join("");
  });
}

function letterOf(letter: string): string {
  const code = letter.charCodeAt(0);
  return code >= 0x80 && code <= 0x9f ? (windows1252[code - 0x80] as string) : letter;
}

/** Longer lines are not data: the longest attribute value in a real dump is under 4 KB. */
const maxLineBytes = 65_536;
export const tooLongReason = "a line longer than 65,536 bytes";
const shownBytes = 80;

export interface LineHandler {
  line(line: string, number: number): void;
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

  /** Copies what it needs, so the caller may refill the chunk. */
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

  /** Call at the end, because the last line may lack a line end. */
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

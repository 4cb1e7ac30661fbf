/**
 * A page's text for the scanner. Markup is ASCII, and in UTF-8 an ASCII byte is always that character: so a page in UTF-8 is
 * scanned as its bytes, one unit each, and only the parts that are kept are decoded. Nine in ten real pages have
 * a character beyond Latin-1 somewhere, which would make two bytes of every unit of the whole page.
 *
 * A part may begin and end where an ASCII character does, or the page: decoding by parts then gives what decoding the whole
 * gives, broken sequences included (WHATWG Encoding, section 8.1.1: an ASCII byte ends them).
 */
import { isAscii } from "node:buffer";

export interface SourceText {
  /** ASCII stands for itself; what is beyond it is text only in `slice`. */
  readonly units: string;
  /** The text between two places of `units`, both at ASCII characters. */
  slice(from: number, to: number): string;
}

export function sourceOf(text: string): SourceText {
  return { units: text, slice: (from, to) => text.slice(from, to) };
}

/** Without the byte order mark. */
export function utf8Source(bytes: Buffer): SourceText {
  return new Utf8Source(bytes);
}

/** A copy that does not keep the page's text alive, of which a slice of 13 units or more is a view. */
export function flat(text: string): string {
  return text.length < 13 ? text : Buffer.from(text, "utf16le").toString("utf16le");
}

/** Bytes are looked at by blocks of this size for whether all are ASCII: most are. */
const blockBits = 10;

const [unknown, plain, mixed] = [0, 1, 2];

class Utf8Source implements SourceText {
  readonly units: string;
  readonly #bytes: Buffer;
  readonly #blocks: Uint8Array;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.units = bytes.toString("latin1");
    this.#blocks = new Uint8Array((bytes.length >> blockBits) + 1);
  }

  slice(from: number, to: number): string {
    return this.#isAscii(from, to) ? this.units.slice(from, to) : this.#bytes.toString("utf8", from, to);
  }

  #isAscii(from: number, to: number): boolean {
    const bytes = this.#bytes;
    for (let at = from; at < to; ) {
      const block = at >> blockBits;
      const end = Math.min(to, (block + 1) << blockBits);
      if (this.#blockOf(block) === plain) at = end;
      else for (; at < end; at++) if (bytes[at]! >= 0x80) return false;
    }
    return true;
  }

  #blockOf(block: number): number {
    const known = this.#blocks[block]!;
    if (known !== unknown) return known;
    const found = isAscii(this.#bytes.subarray(block << blockBits, (block + 1) << blockBits)) ? plain : mixed;
    this.#blocks[block] = found;
    return found;
  }
}

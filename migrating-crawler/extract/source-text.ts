/**
 * Provides a page's text to the scanner. Markup is ASCII, and in UTF-8 an ASCII byte always stands for that character, so a
 * UTF-8 page is scanned as bytes and only the parts to keep are decoded. Otherwise, the nine in ten real pages that have a
 * character beyond Latin-1 would take two bytes for every unit.
 *
 * A part must begin and end at an ASCII character or at the page's ends. Decoding the parts then equals decoding the whole,
 * even with broken sequences (WHATWG Encoding, section 8.1.1: an ASCII byte ends them).
 */
import { isAscii } from "node:buffer";

export interface SourceText {
  /** Only the ASCII characters are correct here. `slice` returns all characters correctly. */
  readonly units: string;
  /** Both positions in `units` must be at ASCII characters. */
  slice(from: number, to: number): string;
}

export function sourceOf(text: string): SourceText {
  return { units: text, slice: (from, to) => text.slice(from, to) };
}

export function utf8Source(bytes: Buffer): SourceText {
  return new Utf8Source(bytes);
}

/** The bytes are checked for ASCII in blocks of 1,024, most of which are ASCII only. */
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

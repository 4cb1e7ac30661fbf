/**
 * The one place where bytes become text. Readers take a file's bytes as Latin-1, one letter a byte, which is quick and
 * loses nothing; what is shown or kept goes through here. UTF-8 where the bytes are valid UTF-8 (RFC 3629), and byte
 * by byte Latin-1 where they are not (LACNIC, old RIPE dumps), with Windows-1252's letters in 0x80 to 0x9F, where
 * Latin-1 has only control characters: so a name stays readable whatever it was written in, and a broken byte
 * harms no other. Control characters, NUL among them, become spaces; the ends are trimmed.
 */
import { isUtf8 } from "node:buffer";

/** What the values of a file were written in; plain ASCII is not counted. */
export interface EncodingCounts {
  /** Values beyond ASCII that are valid UTF-8. */
  readonly utf8Values: number;
  /** Values with bytes that are not UTF-8: read as Windows-1252. */
  readonly latin1Values: number;
  /** Line of the record that has the first of those. */
  readonly firstLatin1Line: number | null;
}

/** Longer names and handles are cut; the longest in real dumps is under 200. Keeps keys within what an index takes. */
export const maxTextLength = 500;

/** Windows-1252 from 0x80 to 0x9F; its five empty places become the replacement character. */
const windows1252 = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ";
const controls = /\p{Cc}+/gu;
const beyondAscii = /[\x80-\xff]/;
const beyondPlainAscii = /[^\t\x20-\x7e]/;
const utf8Sequence =
  /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g;

/** A whole text, comments included. `bytes`: one letter a byte. */
export function decodeText(bytes: string): string {
  return new ValueDecoder().text(bytes);
}

/** Decodes the values of one file and counts those beyond ASCII. */
export class ValueDecoder {
  /** Line of the record at hand: what `firstLatin1Line` is taken from. */
  line = 0;
  #utf8Values = 0;
  #latin1Values = 0;
  #firstLatin1Line: number | null = null;

  /** Null while everything was plain ASCII. */
  get counts(): EncodingCounts | null {
    if (this.#utf8Values + this.#latin1Values === 0) return null;
    return {
      utf8Values: this.#utf8Values,
      latin1Values: this.#latin1Values,
      firstLatin1Line: this.#firstLatin1Line,
    };
  }

  /** A value with its comments. */
  text(bytes: string): string {
    const text = beyondPlainAscii.test(bytes) ? this.raw(bytes).replace(controls, " ") : bytes;
    return text.trim();
  }

  /** A value without its trailing comment (`#` at its start or behind a blank), bounded; null when nothing is left. */
  bare(bytes: string): string | null {
    return withoutComment(this.text(bytes));
  }

  /** Control characters and blanks left as they are. */
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

/** The text before ` #`; null when nothing is left. */
export function withoutComment(value: string): string | null {
  const comment = value.includes("#") ? value.search(/(?:^|[ \t])#/) : -1;
  const text = (comment < 0 ? value : value.slice(0, comment)).trim().slice(0, maxTextLength);
  return text === "" ? null : text;
}

/** UTF-8 sequences where there are, one byte a letter where not. */
function mixed(bytes: string): string {
  return bytes.replace(utf8Sequence, (sequence) => {
    const buffer = Buffer.from(sequence, "latin1");
    // Overlong forms and halves of surrogate pairs have the shape of a sequence and are none.
    return sequence.length > 1 && isUtf8(buffer) ? buffer.toString() : [...sequence].map(letterOf).join("");
  });
}

function letterOf(letter: string): string {
  const code = letter.charCodeAt(0);
  return code >= 0x80 && code <= 0x9f ? (windows1252[code - 0x80] as string) : letter;
}

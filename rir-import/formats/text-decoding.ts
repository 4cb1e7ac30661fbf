/**
 * The one place where bytes become text. UTF-8 where the bytes are valid UTF-8 (RFC 3629), and byte by byte
 * Latin-1 where they are not (LACNIC, old RIPE dumps), with Windows-1252's letters in 0x80 to 0x9F, where
 * Latin-1 has only control characters: so a name stays readable whatever it was written in, and a broken byte
 * harms no other. Control characters, NUL among them, become spaces; the ends are trimmed.
 */

/** A text in plain ASCII as it lies in the file. */
export interface TextBytes {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** What the values of a file were written in; plain ASCII is not counted. */
export interface EncodingCounts {
  /** Values beyond ASCII that are valid UTF-8. */
  readonly utf8Values: number;
  /** Values with bytes that are not UTF-8: read as Windows-1252. */
  readonly latin1Values: number;
  /** Line of the record that has the first of those. */
  readonly firstLatin1Line: number | null;
}

/** Windows-1252 from 0x80 to 0x9F; its five empty places become the replacement character. */
const windows1252 = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ";
const controls = /\p{Cc}+/gu;

/** What a byte asks for, as flags: a value whose bytes ask for nothing is copied as it is. */
const hashFlag = 1;
const lowerFlag = 2;
const oddFlag = 4;
const byteFlags = Uint8Array.from({ length: 256 }, (_, code) => {
  if (code === 0x23) return hashFlag;
  if (code >= 0x61 && code <= 0x7a) return lowerFlag;
  return code === 0x09 || (code >= 0x20 && code <= 0x7e) ? 0 : oddFlag;
});

/** A whole text, comments included. */
export function decodeText(bytes: Buffer, start: number, end: number): string {
  return flagsOf(bytes, start, end) & oddFlag
    ? readable(bytes, start, end).replace(controls, " ").trim()
    : bytes.toString("latin1", start, end).trim();
}

const nothing = Buffer.alloc(0);

/** Where a text in plain ASCII lies; one of these serves for all records of a reader. */
export class FoundText implements TextBytes {
  bytes: Buffer = nothing;
  start = 0;
  end = 0;

  set(bytes: Buffer, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }

  get isEmpty(): boolean {
    return this.start === this.end;
  }
}

/** Decodes the values of one file and counts those beyond ASCII. */
export class ValueDecoder {
  /** Line of the record at hand: what `firstLatin1Line` is taken from. */
  line = 0;
  /** Of the value that `bare` gave last. */
  #hasSmallLetters = false;
  #utf8Values = 0;
  #latin1Values = 0;
  #firstLatin1Line: number | null = null;
  #marked: EncodingCounts = { utf8Values: 0, latin1Values: 0, firstLatin1Line: null };

  /** Null while everything was plain ASCII. */
  get counts(): EncodingCounts | null {
    return this.#utf8Values + this.#latin1Values === 0 ? null : this.#now();
  }

  #now(): EncodingCounts {
    return {
      utf8Values: this.#utf8Values,
      latin1Values: this.#latin1Values,
      firstLatin1Line: this.#firstLatin1Line,
    };
  }

  /** Where to go back to when what follows has to be read once more. */
  mark(): void {
    const { utf8Values, latin1Values } = this.#marked;
    if (utf8Values !== this.#utf8Values || latin1Values !== this.#latin1Values) this.#marked = this.#now();
  }

  /** What was counted since the mark is forgotten. */
  backToMark(): void {
    this.#utf8Values = this.#marked.utf8Values;
    this.#latin1Values = this.#marked.latin1Values;
    this.#firstLatin1Line = this.#marked.firstLatin1Line;
  }

  /** A value with its comments, controls replaced and ends trimmed. */
  text(bytes: Buffer, start: number, end: number): string {
    const from = skipBlanks(bytes, start, end);
    const to = skipBlanksBack(bytes, from, end);
    if ((flagsOf(bytes, from, to) & oddFlag) === 0) return bytes.toString("latin1", from, to);
    return this.raw(bytes, from, to).replace(controls, " ").trim();
  }

  /** A value without its trailing comment (`#` at its start or behind a blank), bounded; null when nothing is left. */
  bare(bytes: Buffer, start: number, end: number): string | null {
    const from = skipBlanks(bytes, start, end);
    const to = skipBlanksBack(bytes, from, end);
    if (from === to) return null;
    const flags = flagsOf(bytes, from, to);
    this.#hasSmallLetters = (flags & ~hashFlag) !== 0;
    if ((flags & ~lowerFlag) === 0 && to - from <= maxTextLength) return asciiText(bytes, from, to);
    return withoutComment(this.text(bytes, from, to));
  }

  /**
   * Like `bare`, without making a text: true where the value can be taken as it lies, which `into` says then; an
   * empty one where nothing is left. `inCapitals`: only where it has no small letters.
   */
  bareBytes(bytes: Buffer, start: number, end: number, into: FoundText, inCapitals = false): boolean {
    const from = skipBlanks(bytes, start, end);
    const to = skipBlanksBack(bytes, from, end);
    const flags = flagsOf(bytes, from, to);
    if ((flags & ~(inCapitals ? 0 : lowerFlag)) !== 0 || to - from > maxTextLength) return false;
    into.set(bytes, from, to);
    return true;
  }

  /** Like `text`, without making one. */
  textBytes(bytes: Buffer, start: number, end: number, into: FoundText): boolean {
    const from = skipBlanks(bytes, start, end);
    const to = skipBlanksBack(bytes, from, end);
    if ((flagsOf(bytes, from, to) & oddFlag) !== 0) return false;
    into.set(bytes, from, to);
    return true;
  }

  /** Like `bare`, in capitals: handles are written either way. */
  handle(bytes: Buffer, start: number, end: number): string | null {
    const text = this.bare(bytes, start, end);
    return text !== null && this.#hasSmallLetters ? text.toUpperCase() : text;
  }

  /** Control characters and blanks left as they are. */
  raw(bytes: Buffer, start: number, end: number): string {
    if (!hasHighBytes(bytes, start, end)) return bytes.toString("latin1", start, end);
    const utf8 = bytes.toString("utf8", start, end);
    if (!utf8.includes("\ufffd") || isUtf8(bytes, start, end)) {
      this.#utf8Values++;
      return utf8;
    }
    this.#latin1Values++;
    this.#firstLatin1Line ??= this.line;
    return mixed(bytes, start, end);
  }
}

/** The text before ` #`; null when nothing is left. */
export function withoutComment(value: string): string | null {
  const comment = value.startsWith("#") ? 0 : value.search(/[ \t]#/);
  const text = (comment < 0 ? value : value.slice(0, comment)).trim().slice(0, maxTextLength);
  return text === "" ? null : text;
}

function readable(bytes: Buffer, start: number, end: number): string {
  const utf8 = bytes.toString("utf8", start, end);
  return !utf8.includes("\ufffd") || isUtf8(bytes, start, end) ? utf8 : mixed(bytes, start, end);
}

/** UTF-8 sequences where there are, one byte a letter where not. */
function mixed(bytes: Buffer, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; ) {
    const length = sequenceLength(bytes, at, end);
    if (length > 0) text += bytes.toString("utf8", at, at + length);
    else text += letterOf(bytes[at] as number);
    at += Math.max(1, length);
  }
  return text;
}

const letterOf = (code: number) =>
  code >= 0x80 && code <= 0x9f ? (windows1252[code - 0x80] as string) : String.fromCharCode(code);

function isUtf8(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; ) {
    const length = sequenceLength(bytes, at, end);
    if (length === 0) return false;
    at += length;
  }
  return true;
}

/** Bytes of the valid UTF-8 sequence at a position (RFC 3629 section 4), or 0 when there is none. */
function sequenceLength(bytes: Buffer, at: number, end: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > end) return 0;
  for (let next = at + 1; next < at + length; next++) {
    if (((bytes[next] as number) & 0xc0) !== 0x80) return 0;
  }
  const second = bytes[at + 1] as number;
  const isOverlong = (first === 0xe0 && second < 0xa0) || (first === 0xf0 && second < 0x90);
  const isBeyond = (first === 0xed && second > 0x9f) || (first === 0xf4 && second > 0x8f);
  return isOverlong || isBeyond ? 0 : length;
}

/** Lists of codes, one for each length that is worth it: what a short text is made of. */
const shortest = Array.from({ length: 17 }, (_, length) => new Array<number>(length).fill(0));

/** Short texts, nearly all, are made here: a call into the engine for each costs more. */
function asciiText(bytes: Buffer, start: number, end: number): string {
  const codes = shortest[end - start];
  if (codes === undefined) return bytes.toString("latin1", start, end);
  for (let index = 0; index < codes.length; index++) codes[index] = bytes[start + index] as number;
  return String.fromCharCode.apply(null, codes);
}

function flagsOf(bytes: Buffer, start: number, end: number): number {
  let flags = 0;
  for (let at = start; at < end; at++) flags |= byteFlags[bytes[at] as number] as number;
  return flags;
}

export function hasHighBytes(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if ((bytes[at] as number) >= 0x80) return true;
  }
  return false;
}

const isBlank = (code: number) => code === 0x20 || code === 0x09;

export function skipBlanks(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isBlank(bytes[at] as number)) at++;
  return at;
}

export function skipBlanksBack(bytes: Buffer, start: number, end: number): number {
  let at = end;
  while (at > start && isBlank(bytes[at - 1] as number)) at--;
  return at;
}

/** Longer names and handles are cut; the longest in real dumps is under 200. Keeps keys within what an index takes. */
export const maxTextLength = 500;

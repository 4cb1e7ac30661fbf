/**
 * Cuts blocks of RPSL lines into objects (RFC 2622 section 2) and notes where the values of the attributes of
 * interest lie. One pass over the bytes: a line is read up to the colon behind its name, the rest is searched for the
 * line feed only.
 *
 * Rules: an empty line ends an object, the last one may lack it; `#` and `%` lines are comments; a line that
 * starts with a space, a tab or `+` continues the value above; names are case-insensitive and attributes come
 * in any order; of a repeated attribute the first counts, of remarks the first that names a geofeed, on whichever line.
 * Departure: an `inetnum:`, `inet6num:` or `organisation:` inside an object that has one already starts a new
 * object (a missing empty line, or a spliced file), so that neither is lost.
 */
import { type BlockHandler, maxLineBytes, tooLongReason } from "./line-blocks.ts";
import type { Malformed } from "./record.ts";
import {
  isClassSlot,
  lineKind,
  lineKinds,
  maxNameBytes,
  noSlot,
  RpslValues,
  slotNames,
  slotOf,
  slots,
} from "./rpsl-values.ts";
import { decodeText, skipBlanks, type ValueDecoder } from "./text-decoding.ts";

export interface RpslHandler {
  /** An object of interest: the slot of the attribute that makes it what it is, and the line where that stands. */
  object(classSlot: number, line: number): void;
  /** An object of another class. */
  other(className: string): void;
  malformed(problem: Malformed): void;
}

const carriageReturn = 0x0d;
const shownBytes = 80;

export class RpslScanner implements BlockHandler {
  /** Of the object that the handler is told of; valid until the handler returns. */
  readonly values: RpslValues;
  readonly #handler: RpslHandler;
  readonly #decoder: ValueDecoder;
  /** Lines begun so far. */
  #line = 0;
  /** True between an object's first attribute and its end. */
  #isOpen = false;
  #otherClass = "";
  /** The class attribute's slot, or `noSlot` for an object that is not ours (yet). */
  #classSlot: number = noSlot;
  #classLine = 0;
  /** The slot that a continuation line would add to. */
  #openSlot: number = noSlot;
  /** That of remarks which have named no geofeed yet: a continuation line may. */
  #openRemarks: number = noSlot;
  #fault: Malformed | null = null;

  constructor(decoder: ValueDecoder, handler: RpslHandler) {
    this.#decoder = decoder;
    this.#handler = handler;
    this.values = new RpslValues(decoder);
  }

  get lines(): number {
    return this.#line;
  }

  block(bytes: Buffer, start: number, end: number): void {
    const words = wordsOf(bytes);
    const before = bytes.byteOffset & 3;
    let line = this.#line;
    this.values.enter(bytes);
    for (let at = start; at < end; ) {
      line++;
      const kind = lineKinds[bytes[at] as number] as number;
      const nameEnd = kind === lineKind.attribute ? colonOrLineFeedAt(bytes, words, before, at, end) : at;
      const lineEnd = lineFeedAt(bytes, words, before, nameEnd, end);
      if (
        kind === lineKind.attribute &&
        nameEnd < lineEnd &&
        nameEnd - at <= maxNameBytes &&
        lineEnd - at <= maxLineBytes
      ) {
        const slot = slotOf(bytes, at, nameEnd);
        this.#openSlot = noSlot;
        this.#openRemarks = noSlot;
        if (slot !== noSlot) {
          this.#line = line;
          this.#attribute(slot, bytes, nameEnd + 1, lineEnd);
        } else if (!this.#isOpen) this.#openOther(bytes, at, nameEnd);
      } else {
        this.#line = line;
        this.#otherLine(kind, bytes, at, lineEnd);
      }
      at = lineEnd + 1;
    }
    this.#line = line;
    this.values.leave();
  }

  longLine(beginning: Buffer): void {
    this.#line++;
    this.#tooLong(beginning);
  }

  /** The file's end: the last object is finished. */
  end(): void {
    this.#finish();
  }

  #attribute(slot: number, bytes: Buffer, start: number, lineEnd: number): void {
    if (isClassSlot[slot] === 1) {
      if (this.#classSlot !== noSlot) this.#finish();
      this.#setClass(slot);
    } else if (slot === slots.orgid && !this.#isOpen) this.#setClass(slot);
    if (!this.#isOpen) this.#open(slot);
    const end = bytes[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd;
    if (slot >= slots.remarks && !namesGeofeed(bytes, start, end)) {
      this.#openRemarks = slot;
      return;
    }
    if (this.values.set(slot, start, Math.max(start, end))) this.#openSlot = slot;
  }

  #setClass(slot: number): void {
    this.#classSlot = slot;
    this.#classLine = this.#line;
  }

  #open(slot: number): void {
    this.#isOpen = true;
    if (this.#classSlot === noSlot) this.#otherClass = slotNames[slot] as string;
  }

  #openOther(bytes: Buffer, start: number, nameEnd: number): void {
    this.#isOpen = true;
    this.#otherClass = decodeText(bytes, start, nameEnd).toLowerCase();
  }

  /** A line that is no attribute. */
  #otherLine(kind: number, bytes: Buffer, start: number, end: number): void {
    if (kind === lineKind.blank && isBlank(bytes, start, end)) {
      if (this.#isOpen) this.#finish();
    } else if (end - start > maxLineBytes) this.#tooLong(bytes.subarray(start, start + shownBytes));
    else if (kind === lineKind.continuation) this.#continue(bytes, start + 1, end);
    else if (kind !== lineKind.comment) this.#nameless(bytes, start, end);
  }

  #continue(bytes: Buffer, start: number, end: number): void {
    this.#decoder.line = this.#line;
    if (this.#openSlot !== noSlot) this.values.extend(this.#openSlot, start, end);
    else if (this.#openRemarks !== noSlot && namesGeofeed(bytes, start, end)) {
      if (this.values.set(this.#openRemarks, start, end)) this.#openSlot = this.#openRemarks;
      this.#openRemarks = noSlot;
    }
  }

  /** A line without an attribute name: garbage, which makes an object of ours malformed. */
  #nameless(bytes: Buffer, start: number, end: number): void {
    this.#isOpen = true;
    this.#openSlot = noSlot;
    this.#openRemarks = noSlot;
    const value = decodeText(bytes, start, Math.min(end, start + shownBytes));
    this.#fault ??= { line: this.#line, reason: "a line without an attribute name", value };
  }

  #tooLong(beginning: Buffer): void {
    this.#isOpen = true;
    this.#openSlot = noSlot;
    this.#openRemarks = noSlot;
    const value = decodeText(beginning, 0, Math.min(beginning.length, shownBytes));
    this.#fault ??= { line: this.#line, reason: tooLongReason, value };
  }

  #finish(): void {
    if (!this.#isOpen) return;
    this.#decoder.line = this.#classLine;
    if (this.#classSlot === noSlot && this.#otherClass !== "") this.#handler.other(this.#otherClass);
    else if (this.#fault !== null) this.#handler.malformed(this.#fault);
    else this.#handler.object(this.#classSlot, this.#classLine);
    this.#isOpen = false;
    this.#otherClass = "";
    this.#classSlot = noSlot;
    this.#openSlot = noSlot;
    this.#openRemarks = noSlot;
    this.#fault = null;
    this.values.clear();
  }
}

/** Whether a remark begins with the word `geofeed` (RFC 9632 section 3), in capitals or not. */
function namesGeofeed(bytes: Buffer, start: number, end: number): boolean {
  const at = skipBlanks(bytes, start, end);
  if (end - at < geofeedWord.length) return false;
  return geofeedWord.every((code, index) => ((bytes[at + index] as number) | 0x20) === code);
}

const geofeedWord = [...Buffer.from("geofeed")];

/** Nothing but a carriage return, or nothing at all. */
const isBlank = (bytes: Buffer, start: number, end: number) =>
  end === start || (end === start + 1 && bytes[start] === carriageReturn);

/**
 * Finds and counts line feeds four bytes at a time. A word less its line feeds (exclusive or) has a zero byte
 * for each; subtracting one from every byte borrows exactly there:
 *
 *   word              6d 65 0a 3a      n e t w o r k s …, a line feed in the third byte
 *   x = word ^ 0a…    67 6f 00 30
 *   (x − 01…) & ~x & 80…     00 00 80 00     the lowest bit set is the first line feed's
 *
 * A dump is nearly all text between line ends: this is where its reading spends the time that it must.
 */

const lineFeed = 0x0a;

const colon = 0x3a;

/** The bytes as aligned words. The first word may begin up to three bytes before them. */
export function wordsOf(bytes: Buffer): Int32Array {
  const before = bytes.byteOffset & 3;
  return new Int32Array(bytes.buffer, bytes.byteOffset - before, (before + bytes.length) >> 2);
}

/**
 * The position of the first line feed at `from` or behind it, or `end`. `words` are those of the bytes, `before`
 * is `bytes.byteOffset & 3`. Little-endian, as every machine that Node runs on but one.
 */
export function lineFeedAt(
  bytes: Buffer,
  words: Int32Array,
  before: number,
  from: number,
  end: number,
): number {
  let at = from;
  while (((at + before) & 3) !== 0) {
    if (at >= end) return end;
    if (bytes[at] === lineFeed) return at;
    at++;
  }
  const lastWord = (end + before) >> 2;
  let word = (at + before) >> 2;
  for (; word < lastWord; word++) {
    const x = (words[word] as number) ^ 0x0a0a0a0a;
    const zeros = (x - 0x01010101) & ~x & 0x80808080;
    if (zeros !== 0) return (word << 2) - before + ((31 - Math.clz32(zeros & -zeros)) >> 3);
  }
  for (at = Math.max(at, (word << 2) - before); at < end; at++) if (bytes[at] === lineFeed) return at;
  return end;
}

/** The position of the first colon or line feed at `from` or behind it, or `end`; the rest as above. */
function colonOrLineFeedAt(
  bytes: Buffer,
  words: Int32Array,
  before: number,
  from: number,
  end: number,
): number {
  let at = from;
  while (((at + before) & 3) !== 0) {
    if (at >= end) return end;
    const code = bytes[at];
    if (code === colon || code === lineFeed) return at;
    at++;
  }
  const lastWord = (end + before) >> 2;
  let word = (at + before) >> 2;
  for (; word < lastWord; word++) {
    const x = (words[word] as number) ^ 0x0a0a0a0a;
    const y = (words[word] as number) ^ 0x3a3a3a3a;
    const zeros = (((x - 0x01010101) & ~x) | ((y - 0x01010101) & ~y)) & 0x80808080;
    if (zeros !== 0) return (word << 2) - before + ((31 - Math.clz32(zeros & -zeros)) >> 3);
  }
  for (at = Math.max(at, (word << 2) - before); at < end; at++) {
    if (bytes[at] === lineFeed || bytes[at] === colon) return at;
  }
  return end;
}

/** How many line feeds lie between two positions; `words` are those of the bytes. */
export function countLineFeeds(bytes: Buffer, words: Int32Array, start: number, end: number): number {
  let count = 0;
  let at = start;
  const before = bytes.byteOffset & 3;
  for (; at < end && ((at + before) & 3) !== 0; at++) if (bytes[at] === lineFeed) count++;
  if (at >= end) return count;
  const lastWord = (end + before) >> 2;
  let word = (at + before) >> 2;
  for (; word < lastWord; word++) {
    const x = (words[word] as number) ^ 0x0a0a0a0a;
    const zeros = ~(((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x | 0x7f7f7f7f);
    if (zeros !== 0) count += Math.imul(zeros >>> 7, 0x01010101) >>> 24;
  }
  for (at = Math.max(at, (word << 2) - before); at < end; at++) if (bytes[at] === lineFeed) count++;
  return count;
}

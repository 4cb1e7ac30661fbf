/**
 * Cuts RPSL lines into objects (RFC 2622 section 2) and notes where the values of the attributes of interest
 * lie; they become text only when asked for.
 *
 * Rules: an empty line ends an object, the last one may lack it; `#` and `%` lines are comments; a line that
 * starts with a space, a tab or `+` continues the value above; names are case-insensitive and attributes come
 * in any order; of a repeated attribute the first counts.
 * Departure: an `inetnum:`, `inet6num:` or `organisation:` inside an object that has one already starts a new
 * object (a missing empty line, or a spliced file), so that neither is lost.
 */
import { decodeText, type LineHandler } from "./lines.ts";
import type { Malformed } from "./record.ts";

/** Attributes that are kept, by name; the number is their place among an object's values. */
export const slots = {
  inetnum: 0,
  inet6num: 1,
  organisation: 2,
  nethandle: 3,
  v6nethandle: 4,
  orgid: 5,
  netrange: 6,
  netname: 7,
  descr: 8,
  country: 9,
  org: 10,
  source: 11,
  owner: 12,
  ownerid: 13,
  "org-name": 14,
  orgname: 15,
  nettype: 16,
} as const;
export type SlotName = keyof typeof slots;

/** An object of interest, valid until the call that hands it over returns. */
export interface RpslObject {
  /** The attribute that makes it what it is. */
  readonly className: SlotName;
  /** Where that attribute stands. */
  readonly line: number;
  /** The value with its comments, trimmed; null when the object has no such attribute. */
  text(name: SlotName): string | null;
}

export interface RpslHandler {
  object(object: RpslObject): void;
  /** An object of another class. */
  other(className: string): void;
  malformed(problem: Malformed): void;
}

/** Values longer than this (many continuation lines) are cut: no name or range needs more. */
const maxValueLength = 1024;

const slotNames = Object.keys(slots) as SlotName[];
const slotCount = slotNames.length;
const none = -1;

/** Attributes that make an object ours wherever they stand in it; `orgid` only when it comes first. */
const isClassSlot = Uint8Array.from(slotNames, (name) =>
  /^(inetnum|inet6num|organisation|nethandle|v6nethandle)$/.test(name) ? 1 : 0,
);

/** Slots by first letter (lower case), to refuse most lines after one byte. */
const slotsByLetter: readonly (readonly number[] | undefined)[] = Array.from({ length: 256 }, (_, letter) => {
  const found = slotNames.filter((name) => name.charCodeAt(0) === letter).map((name) => slots[name]);
  return found.length === 0 ? undefined : found;
});

export class RpslScanner implements LineHandler {
  readonly #handler: RpslHandler;
  readonly #values = new Values();
  /** Line of the object's first attribute; 0 between objects. */
  #objectLine = 0;
  #otherClass = "";
  /** The class attribute's slot, or `none` for an object that is not ours (yet). */
  #classSlot = none;
  #classLine = 0;
  /** The slot that a continuation line would add to. */
  #openSlot = none;
  #fault: Malformed | null = null;

  constructor(handler: RpslHandler) {
    this.#handler = handler;
  }

  line(bytes: Buffer, start: number, end: number, number: number): void {
    if (start === end) {
      this.#finish();
      return;
    }
    const first = bytes[start] as number;
    if (first === 0x23 || first === 0x25) return;
    if (first === 0x20 || first === 0x09 || first === 0x2b) {
      if (this.#openSlot !== none) this.#values.extend(this.#openSlot, bytes, start + 1, end);
      return;
    }
    this.#openSlot = none;
    const candidates = slotsByLetter[first | 0x20];
    if (candidates === undefined && this.#objectLine !== 0) {
      if (this.#classSlot !== none && endOfName(bytes, start, end) < 0)
        this.#blame(bytes, start, end, number);
      return;
    }
    this.#attribute(bytes, start, end, number);
  }

  longLine(beginning: Buffer, number: number): void {
    if (this.#objectLine === 0) this.#objectLine = number;
    this.#openSlot = none;
    const value = decodeText(beginning, 0, Math.min(beginning.length, 80));
    this.#fault ??= { line: number, reason: "a line longer than 65,536 bytes", value };
  }

  end(): void {
    this.#finish();
  }

  #attribute(bytes: Buffer, start: number, end: number, number: number): void {
    const nameEnd = endOfName(bytes, start, end);
    if (nameEnd < 0) {
      if (this.#objectLine === 0) this.#objectLine = number;
      this.#blame(bytes, start, end, number);
      return;
    }
    const slot = slotOf(bytes, start, nameEnd);
    if (slot !== none && isClassSlot[slot] === 1) {
      if (this.#classSlot !== none) this.#finish();
      this.#setClass(slot, number);
    } else if (slot === slots.orgid && this.#objectLine === 0) this.#setClass(slot, number);
    if (this.#objectLine === 0) this.#begin(number, bytes, start, nameEnd);
    if (slot !== none && this.#values.set(slot, bytes, nameEnd + 1, end)) this.#openSlot = slot;
  }

  #begin(number: number, bytes: Buffer, start: number, nameEnd: number): void {
    this.#objectLine = number;
    if (this.#classSlot === none) this.#otherClass = decodeText(bytes, start, nameEnd).toLowerCase();
  }

  #setClass(slot: number, number: number): void {
    this.#classSlot = slot;
    this.#classLine = number;
  }

  #blame(bytes: Buffer, start: number, end: number, number: number): void {
    const value = decodeText(bytes, start, Math.min(end, start + 80));
    this.#fault ??= { line: number, reason: "a line without an attribute name", value };
  }

  #finish(): void {
    if (this.#objectLine === 0) return;
    if (this.#classSlot === none && this.#otherClass !== "") this.#handler.other(this.#otherClass);
    else if (this.#fault !== null) this.#handler.malformed(this.#fault);
    else if (this.#classSlot !== none) this.#handler.object(this.#object());
    this.#objectLine = 0;
    this.#otherClass = "";
    this.#classSlot = none;
    this.#openSlot = none;
    this.#fault = null;
    this.#values.clear();
  }

  #object(): RpslObject {
    this.#values.className = slotNames[this.#classSlot] as SlotName;
    this.#values.line = this.#classLine;
    return this.#values;
  }
}

/** Where the values of one object lie; a value that is continued becomes text at once. */
class Values implements RpslObject {
  className: SlotName = "inetnum";
  line = 0;
  readonly #bytes: (Buffer | null)[] = new Array<Buffer | null>(slotCount).fill(null);
  readonly #starts = new Int32Array(slotCount);
  readonly #ends = new Int32Array(slotCount);
  readonly #texts: (string | null)[] = new Array<string | null>(slotCount).fill(null);

  /** False when the object has this attribute already. */
  set(slot: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.#bytes[slot] !== null) return false;
    this.#bytes[slot] = bytes;
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    return true;
  }

  extend(slot: number, bytes: Buffer, start: number, end: number): void {
    const value = this.#read(slot) ?? "";
    if (value.length >= maxValueLength) return;
    this.#texts[slot] = `${value} ${decodeText(bytes, start, end)}`.trim();
  }

  text(name: SlotName): string | null {
    return this.#read(slots[name]);
  }

  clear(): void {
    this.#bytes.fill(null);
    this.#texts.fill(null);
  }

  #read(slot: number): string | null {
    const text = this.#texts[slot] as string | null;
    if (text !== null) return text;
    const bytes = this.#bytes[slot] as Buffer | null;
    return bytes === null
      ? null
      : decodeText(bytes, this.#starts[slot] as number, this.#ends[slot] as number);
  }
}

const colon = 0x3a;
/** Letters, digits, `*`, `+`, `,`, `-`, `.`, `/`, `_` and spaces: what stands before the colon in real files. */
const isNameByte = Uint8Array.from({ length: 256 }, (_, code) =>
  /[A-Za-z0-9*+,./_ -]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/** Position of the colon after an attribute name of at most 64 bytes, or −1. */
function endOfName(bytes: Buffer, start: number, end: number): number {
  const furthest = Math.min(end, start + 64);
  for (let position = start; position < furthest; position++) {
    const code = bytes[position] as number;
    if (code === colon) return position === start ? -1 : position;
    if (isNameByte[code] === 0) return -1;
  }
  return -1;
}

function slotOf(bytes: Buffer, start: number, end: number): number {
  const candidates = slotsByLetter[(bytes[start] as number) | 0x20];
  if (candidates === undefined) return none;
  for (const slot of candidates) {
    const name = slotNames[slot] as string;
    if (name.length === end - start && equalsIgnoringCase(bytes, start, name)) return slot;
  }
  return none;
}

function equalsIgnoringCase(bytes: Buffer, start: number, name: string): boolean {
  for (let index = 1; index < name.length; index++) {
    const code = bytes[start + index] as number;
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== name.charCodeAt(index)) return false;
  }
  return true;
}

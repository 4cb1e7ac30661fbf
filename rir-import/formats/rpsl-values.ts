/**
 * The values of one RPSL object, by slot: where they lie in the block of lines at hand, until somebody asks for a text. A
 * value that is continued on a second line becomes text at once; what lies in a block that ends within the object is
 * copied.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import { codeInForce } from "#core/country-names";
import { RememberedBytes } from "./delegated-lines.ts";
import type { RangeReader } from "./range-reader.ts";
import { registryNamed } from "./record.ts";
import {
  type FoundText,
  skipBlanks,
  skipBlanksBack,
  type ValueDecoder,
  withoutComment,
} from "./text-decoding.ts";

/** Values longer than this (many continuation lines) are cut: no name or range needs more. */
const maxValueLength = 1024;

const nothing = Buffer.alloc(0);

export class RpslValues {
  readonly #decoder: ValueDecoder;
  #block: Buffer = nothing;
  /** Values out of blocks that were left. */
  #copied: Buffer = nothing;
  readonly #starts = new Int32Array(slotCount);
  readonly #ends = new Int32Array(slotCount);
  readonly #texts: string[] = new Array<string>(slotCount).fill("");
  /** A bit for each slot that has a value; for each whose value is text by now; for each that was copied. */
  #present = 0;
  #asText = 0;
  #isCopied = 0;
  readonly #registries = new RememberedBytes(registryIn);

  constructor(decoder: ValueDecoder) {
    this.#decoder = decoder;
  }

  /** The block in which values lie from now on. */
  enter(bytes: Buffer): void {
    this.#block = bytes;
  }

  /** The block is left and may be overwritten: what lies in it is copied. */
  leave(): void {
    for (let slot = 0; slot < slotCount; slot++) {
      const bit = 1 << slot;
      if (!(this.#present & ~this.#asText & ~this.#isCopied & bit)) continue;
      const value = this.#block.subarray(this.#startOf(slot), this.#endOf(slot));
      this.#starts[slot] = this.#copied.length;
      this.#copied = Buffer.concat([this.#copied, value]);
      this.#ends[slot] = this.#copied.length;
      this.#isCopied |= bit;
    }
    this.#block = nothing;
  }

  clear(): void {
    this.#present = 0;
    this.#asText = 0;
    if (this.#isCopied === 0) return;
    this.#isCopied = 0;
    this.#copied = nothing;
  }

  has(slot: number): boolean {
    return (this.#present & (1 << slot)) !== 0;
  }

  /** False when the object has this attribute already: the first counts. */
  set(slot: number, start: number, end: number): boolean {
    if (this.#present & (1 << slot)) return false;
    this.#present |= 1 << slot;
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    return true;
  }

  /** Adds a continuation line; a comment behind the value so far is dropped, as behind any line. */
  extend(slot: number, start: number, end: number): void {
    if (!(this.#asText & (1 << slot))) this.#toText(slot);
    const value = withoutComment(this.#texts[slot] as string) ?? "";
    if (value.length >= maxValueLength) return;
    this.#texts[slot] = `${value} ${this.#decoder.text(this.#block, start, end)}`.trim();
  }

  /** The value with its comment, trimmed; null when the object has no such attribute. */
  text(slot: number): string | null {
    if (!this.has(slot)) return null;
    if (!(this.#asText & (1 << slot))) this.#toText(slot);
    return this.#texts[slot] as string;
  }

  /** The value without its comment; null when nothing is left. */
  bare(slot: number): string | null {
    if (this.#lies(slot))
      return this.#decoder.bare(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
    return this.has(slot) ? withoutComment(this.#texts[slot] as string) : null;
  }

  /** The value as a handle, in capitals. */
  handle(slot: number): string | null {
    if (this.#lies(slot))
      return this.#decoder.handle(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
    return this.has(slot) ? (withoutComment(this.#texts[slot] as string)?.toUpperCase() ?? null) : null;
  }

  /** Like `bare` and `handle`, as bytes: true where there are none, or they can be taken as they lie. */
  bareBytes(slot: number, into: FoundText, inCapitals = false): boolean {
    if (!this.has(slot)) {
      into.set(nothing, 0, 0);
      return true;
    }
    if (!this.#lies(slot)) return false;
    const bytes = this.#bytesOf(slot);
    return this.#decoder.bareBytes(bytes, this.#startOf(slot), this.#endOf(slot), into, inCapitals);
  }

  country(): string | null {
    const slot = slots.country;
    const code = this.#lies(slot)
      ? readCountry(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot))
      : undefined;
    return code === undefined ? countryCode(this.bare(slot)) : code;
  }

  /** The registry that `source:` names; a file has the same one nearly throughout. */
  registry(): Registry | null {
    const slot = slots.source;
    if (!this.#lies(slot)) return registryIn(this.text(slot) ?? "");
    return this.#registries.of(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
  }

  /** Reads the value as a range where it lies; false when it is no bytes any more, or of a spelling out of the way. */
  readIpv4(slot: number, ranges: RangeReader): boolean {
    if (!this.#lies(slot)) return false;
    return ranges.readIpv4(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
  }

  readIpv6(slot: number, ranges: RangeReader): boolean {
    if (!this.#lies(slot)) return false;
    return ranges.readIpv6(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
  }

  /** True while the value is bytes. */
  #lies(slot: number): boolean {
    return (this.#present & ~this.#asText & (1 << slot)) !== 0;
  }

  #toText(slot: number): void {
    this.#texts[slot] = this.#decoder.text(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
    this.#asText |= 1 << slot;
  }

  #bytesOf(slot: number): Buffer {
    return this.#isCopied & (1 << slot) ? this.#copied : this.#block;
  }

  #startOf(slot: number): number {
    return this.#starts[slot] as number;
  }

  #endOf(slot: number): number {
    return this.#ends[slot] as number;
  }
}

/** `RIPE # Filtered` → `ripencc`. */
const registryIn = (source: string) => registryNamed(withoutComment(source) ?? "");

// Countries by two letters (ISO 3166-1 alpha-2, and the EU and AP that registries use beside them); UK is GB.

const letters = 26;

/** A text for each pair of letters, made once: a dump has millions of them. */
const codes = Array.from({ length: letters * letters }, (_, pair) => {
  const code = String.fromCharCode(0x41 + Math.floor(pair / letters), 0x41 + (pair % letters));
  return code === "ZZ" ? null : codeInForce(code);
});

/** `nl` → `NL`; null for ZZ (unknown) and for whatever is not two letters. */
export function countryCode(text: string | null): string | null {
  if (text === null || text.length !== 2) return null;
  return codeOf(text.charCodeAt(0), text.charCodeAt(1));
}

/** The same straight from bytes, blanks around them; undefined when there is more than two letters. */
export function readCountry(bytes: Buffer, start: number, end: number): string | null | undefined {
  const from = skipBlanks(bytes, start, end);
  const to = skipBlanksBack(bytes, from, end);
  return to - from === 2 ? codeOf(bytes[from] as number, bytes[from + 1] as number) : undefined;
}

function codeOf(first: number, second: number): string | null {
  const one = letterOf(first);
  const other = letterOf(second);
  return one < 0 || other < 0 ? null : (codes[one * letters + other] ?? null);
}

/** 0 to 25, or −1. */
function letterOf(code: number): number {
  const letter = (code | 0x20) - 0x61;
  return letter >= 0 && letter < letters && code < 0x80 ? letter : -1;
}

// The RPSL attributes that the import looks at, and how a line is told to be one of them.

/** By name; the number is the attribute's place among an object's values. */
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
  geofeed: 17,
  /** Only those that name a geofeed. */
  remarks: 18,
  /** ARIN's remarks. */
  comment: 19,
} as const;

type SlotName = keyof typeof slots;

export const slotNames = Object.keys(slots) as SlotName[];
const slotCount = slotNames.length;
export const noSlot = -1;

/** Attributes that make an object ours wherever they stand in it; `orgid` only when it comes first. */
export const isClassSlot = Uint8Array.from(slotNames, (name) =>
  /^(inetnum|inet6num|organisation|nethandle|v6nethandle)$/.test(name) ? 1 : 0,
);

/** What a line is, by its first byte; `blank` where it is the line's end. */
export const lineKind = { attribute: 0, blank: 1, comment: 2, continuation: 3, other: 4 } as const;

export const lineKinds = Uint8Array.from({ length: 256 }, (_, code) => {
  const letter = String.fromCharCode(code);
  if ("\r\n".includes(letter)) return lineKind.blank;
  if ("#%".includes(letter)) return lineKind.comment;
  if (" \t+".includes(letter)) return lineKind.continuation;
  return /[A-Za-z0-9*,./_-]/.test(letter) ? lineKind.attribute : lineKind.other;
});

/** Longer ones are no attribute names: the longest in use has 23 bytes. */
export const maxNameBytes = 64;

const nameBytes = slotNames.map((name) => Buffer.from(name));
const table = slotTable();

/** The slot of the name between two positions, in capitals or not; `noSlot` for any other. */
export function slotOf(bytes: Buffer, start: number, end: number): number {
  const length = end - start;
  const middle = bytes[start + (length >> 1)] as number;
  const slot = table[placeOf(length, bytes[start] as number, middle)] as number;
  return slot !== noSlot && isNameOf(slot, bytes, start, length) ? slot : noSlot;
}

/** Length, first and middle letter tell the names apart; the case of a letter is its bit 5. */
function placeOf(length: number, first: number, middle: number): number {
  return ((length & 15) << 10) | ((first & 31) << 5) | (middle & 31);
}

function isNameOf(slot: number, bytes: Buffer, start: number, length: number): boolean {
  const name = nameBytes[slot] as Buffer;
  if (name.length !== length) return false;
  for (let at = 0; at < length; at++) {
    const code = bytes[start + at] as number;
    if ((code >= 0x41 && code <= 0x5a ? code | 0x20 : code) !== name[at]) return false;
  }
  return true;
}

/** One slot to a place; names that share one would be lost, so that is checked. */
function slotTable(): Int8Array {
  const slotAt = new Int8Array(1 << 14).fill(noSlot);
  for (const [slot, name] of nameBytes.entries()) {
    const place = placeOf(name.length, name[0] as number, name[name.length >> 1] as number);
    if (slotAt[place] !== noSlot) throw new Error(`two attribute names at one place: ${slotNames[slot]}`);
    slotAt[place] = slot;
  }
  return slotAt;
}

/**
 * Picks the wanted values of one XML record straight from its bytes, in one pass, where the record is of the
 * shape that registries write: elements with or without attributes, properly nested, with either children or
 * text. Everything else (comments, CDATA, prefixes, mixed content, what is not well formed) it refuses, and
 * fast-xml-parser reads it in its stead, twenty times as slowly. Both give the same values.
 */

import { XMLParser } from "fast-xml-parser";
import { type FoundText, hasHighBytes, maxTextLength, type ValueDecoder } from "./text-decoding.ts";

/** `incomplete`: the bytes end within the record. `irregular`: not of the shape above. */
export type Picking = "picked" | "incomplete" | "irregular";

/** ARIN's records are five deep. */
const maxDepth = 32;

const longestEntity = 12;

const lessThan = 0x3c;
const greaterThan = 0x3e;
const slash = 0x2f;
const equals = 0x3d;
const ampersand = 0x26;
const semicolon = 0x3b;

/** Bytes of names: 2 where a name may begin with it, 1 where it may go on with it. Prefixes are refused. */
const nameBytes = Uint8Array.from({ length: 256 }, (_, code) => {
  const letter = String.fromCharCode(code);
  return /[A-Za-z_]/.test(letter) ? 2 : /[\w.-]/.test(letter) ? 1 : 0;
});

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

interface Name {
  /** Its place among those that are wanted. */
  readonly number: number;
  readonly bytes: Buffer;
}

/** Length and first letter, which leave few names to compare with. */
const places = 1 << 11;

const placeOf = (length: number, first: number) => ((length & 63) << 5) | (first & 31);

type Writable = { [name: string]: unknown };

const firstElements = 64;
const hasChildren = -1;
const none = -1;

export class XmlPicker {
  /** The position behind the record that was picked last. */
  end = 0;
  readonly #decoder: ValueDecoder;
  readonly #wantedNames: readonly string[];
  readonly #wanted: readonly (readonly Name[] | undefined)[];
  #bytes: Buffer = Buffer.alloc(0);
  #limit = 0;
  #start = 0;
  /** Where `textFrom` looked last, from where, and where the word stands next. */
  #searched: Buffer | null = null;
  #searchedFrom = 0;
  #foundAt = 0;
  #at = 0;
  #depth = 0;
  readonly #nameStarts = new Int32Array(maxDepth);
  readonly #nameEnds = new Int32Array(maxDepth);
  /** The number of an open element that is collected; −1 for one that is passed over. */
  readonly #elements = new Int32Array(maxDepth);
  readonly #hasChildren = new Uint8Array(maxDepth);
  /** What was picked last, in the order of start tags; the first element is the record. */
  #count = 0;
  #parents = new Int32Array(firstElements);
  #names = new Int32Array(firstElements);
  #starts = new Int32Array(firstElements);
  /** Where the element's text ends, or `hasChildren`. */
  #ends = new Int32Array(firstElements);
  /** Texts that are not plain ASCII. */
  readonly #texts = new Map<number, string>();

  /** `wanted`: the names of elements below the record whose values are kept. */
  constructor(wanted: readonly string[], decoder: ValueDecoder) {
    this.#decoder = decoder;
    this.#wantedNames = wanted;
    const names = wanted.map((name, number) => ({ number, bytes: Buffer.from(name) }));
    this.#wanted = Array.from({ length: places }, (_, place) => {
      const found = names.filter(({ bytes }) => placeOf(bytes.length, bytes[0] as number) === place);
      return found.length === 0 ? undefined : found;
    });
  }

  /** Picks the record whose start tag is at `start`; nothing at or behind `limit` is looked at. */
  pick(bytes: Buffer, start: number, limit: number): Picking {
    this.#decoder.mark();
    const picking = this.#pick(bytes, start, limit);
    if (picking !== "picked") this.#decoder.backToMark();
    return picking;
  }

  #pick(bytes: Buffer, start: number, limit: number): Picking {
    this.#bytes = bytes;
    this.#limit = limit;
    this.#start = start;
    this.#at = start;
    this.#depth = 0;
    this.#count = 0;
    if (this.#texts.size > 0) this.#texts.clear();
    let textStart = start;
    for (;;) {
      if (this.#at + 1 >= limit) return "incomplete";
      const isEnd = bytes[this.#at + 1] === slash;
      const step = isEnd ? this.#endTag(textStart) : this.#startTag(textStart);
      if (step !== "picked") return step;
      if (this.#depth === 0) return this.#finish();
      textStart = this.#at;
      const text = this.#passText();
      if (text !== "picked") return text;
    }
  }

  /** What stands in the record that was picked last, wanted or not, from a word on, which is always the same; null: it has it not. */
  textFrom(word: Buffer, mostBytes: number): string | null {
    const bytes = this.#bytes;
    // Searched once for all records up to the next place, and anew where the bytes begin anew.
    if (bytes !== this.#searched || this.#start < this.#searchedFrom || this.#start > this.#foundAt) {
      const at = bytes.indexOf(word, this.#start);
      this.#foundAt = at < 0 ? bytes.length : at;
      this.#searched = bytes;
    }
    this.#searchedFrom = this.#start;
    if (this.#foundAt >= this.end) return null;
    return bytes.toString("latin1", this.#foundAt, Math.min(this.end, this.#foundAt + mostBytes));
  }

  #finish(): Picking {
    this.end = this.#at;
    return "picked";
  }

  /** To the next tag; entities have to end. */
  #passText(): Picking {
    const bytes = this.#bytes;
    const limit = this.#limit;
    let at = this.#at;
    for (; at < limit; at++) {
      const code = bytes[at];
      if (code === lessThan) break;
      if (code === ampersand && !isEntity(bytes, at, limit))
        return at + longestEntity >= limit ? "incomplete" : "irregular";
    }
    this.#at = at;
    return at < limit ? "picked" : "incomplete";
  }

  #startTag(textStart: number): Picking {
    const bytes = this.#bytes;
    const nameStart = this.#at + 1;
    if (this.#depth === maxDepth || nameBytes[bytes[nameStart] as number] !== 2) return "irregular";
    if (this.#depth > 0) {
      if (!isSpaceOnly(bytes, textStart, this.#at)) return "irregular";
      this.#hasChildren[this.#depth - 1] = 1;
    }
    let at = nameStart + 1;
    while (at < this.#limit && nameBytes[bytes[at] as number] !== 0) at++;
    this.#open(nameStart, at);
    return bytes[at] === greaterThan && at < this.#limit ? this.#enter(at + 1) : this.#attributes(at);
  }

  #enter(at: number): Picking {
    this.#at = at;
    this.#depth++;
    return "picked";
  }

  #open(nameStart: number, nameEnd: number): void {
    const depth = this.#depth;
    this.#nameStarts[depth] = nameStart;
    this.#nameEnds[depth] = nameEnd;
    this.#elements[depth] = depth === 0 ? this.#collect(none, none) : this.#child(nameStart, nameEnd);
    this.#hasChildren[depth] = 0;
  }

  #child(nameStart: number, nameEnd: number): number {
    const parent = this.#elements[this.#depth - 1] as number;
    const name = parent === none ? none : this.#wantedName(nameStart, nameEnd);
    return name === none ? none : this.#collect(parent, name);
  }

  #collect(parent: number, name: number): number {
    const element = this.#count++;
    if (element === this.#parents.length) this.#grow();
    this.#parents[element] = parent;
    this.#names[element] = name;
    return element;
  }

  #grow(): void {
    this.#parents = twiceAsLong(this.#parents);
    this.#names = twiceAsLong(this.#names);
    this.#starts = twiceAsLong(this.#starts);
    this.#ends = twiceAsLong(this.#ends);
  }

  #wantedName(start: number, end: number): number {
    const candidates = this.#wanted[placeOf(end - start, this.#bytes[start] as number)];
    if (candidates === undefined) return none;
    for (let index = 0; index < candidates.length; index++) {
      const { number, bytes } = candidates[index] as Name;
      if (bytes.length === end - start && isSame(bytes, this.#bytes, start)) return number;
    }
    return none;
  }

  /** Passes ` name="value"` until the tag's end; the values are not looked at. */
  #attributes(start: number): Picking {
    const bytes = this.#bytes;
    const limit = this.#limit;
    for (let at = start; ; ) {
      const from = at;
      while (at < limit && isSpace(bytes[at] as number)) at++;
      if (at + 1 >= limit) return "incomplete";
      if (bytes[at] === greaterThan) return this.#enter(at + 1);
      if (bytes[at] === slash)
        return bytes[at + 1] === greaterThan ? this.#close(at, at, at + 2) : "irregular";
      if (at === from || nameBytes[bytes[at] as number] !== 2) return "irregular";
      while (at < limit && nameBytes[bytes[at] as number] !== 0) at++;
      if (at + 1 >= limit) return "incomplete";
      const quote = bytes[at + 1] as number;
      if (bytes[at] !== equals || (quote !== 0x22 && quote !== 0x27)) return "irregular";
      at += 2;
      while (at < limit && bytes[at] !== quote) {
        if (bytes[at] === lessThan || bytes[at] === ampersand) return "irregular";
        at++;
      }
      at++;
    }
  }

  #endTag(textStart: number): Picking {
    const bytes = this.#bytes;
    const textEnd = this.#at;
    const depth = this.#depth - 1;
    const nameStart = this.#nameStarts[depth] as number;
    const length = (this.#nameEnds[depth] as number) - nameStart;
    const behind = textEnd + 2 + length;
    if (behind >= this.#limit) return "incomplete";
    for (let index = 0; index < length; index++) {
      if (bytes[textEnd + 2 + index] !== bytes[nameStart + index]) return "irregular";
    }
    if (bytes[behind] !== greaterThan) return "irregular";
    this.#depth = depth;
    if (this.#hasChildren[depth] === 1) {
      return isSpaceOnly(bytes, textStart, textEnd) ? this.#close(0, hasChildren, behind + 1) : "irregular";
    }
    return this.#close(textStart, textEnd, behind + 1);
  }

  /** The element at the current depth is closed: where its text lies is noted. */
  #close(textStart: number, textEnd: number, at: number): Picking {
    this.#at = at;
    const element = this.#elements[this.#depth] as number;
    if (element === none) return "picked";
    const bytes = this.#bytes;
    let from = textStart;
    let to = textEnd;
    while (from < to && isSpace(bytes[from] as number)) from++;
    while (to > from && isSpace(bytes[to - 1] as number)) to--;
    this.#starts[element] = from;
    this.#ends[element] = to;
    if (from < to && hasHighBytes(bytes, from, to))
      this.#texts.set(element, this.#decoder.raw(bytes, from, to));
    return "picked";
  }

  // What was picked last, until the next: by elements, which are numbered, or as a whole.

  /** The record itself. */
  readonly record = 0;

  /** The first child of that name (its place among those wanted), or −1. */
  child(parent: number, name: number): number {
    for (let element = parent + 1; element < this.#count; element++)
      if (this.#parents[element] === parent && this.#names[element] === name) return element;
    return none;
  }

  /** How many children of that name there are. */
  children(parent: number, name: number): number {
    let count = 0;
    for (let element = parent + 1; element < this.#count; element++)
      if (this.#parents[element] === parent && this.#names[element] === name) count++;
    return count;
  }

  /** Where the element's text lies, when it is nothing but ASCII, without entities and control characters, and not empty. */
  plainText(element: number, into: FoundText): boolean {
    const start = this.#starts[element] as number;
    const end = this.#ends[element] as number;
    if (end <= start || end - start > maxTextLength) return false;
    const bytes = this.#bytes;
    for (let at = start; at < end; at++) {
      const code = bytes[at] as number;
      if (code < 0x20 || code > 0x7e || code === ampersand) return false;
    }
    into.set(bytes, start, end);
    return true;
  }

  /** The record's content, or its text where it has no children. */
  get value(): XmlContent | string {
    const values: (Writable | string)[] = [];
    for (let element = 0; element < this.#count; element++) {
      const value = this.#ends[element] === hasChildren ? {} : this.#textOf(element);
      values.push(value);
      if (element > 0) this.#add(values[this.#parents[element] as number] as Writable, element, value);
    }
    return values[0] ?? "";
  }

  #textOf(element: number): string {
    const start = this.#starts[element];
    const end = this.#ends[element];
    return this.#texts.get(element) ?? this.#bytes.toString("latin1", start, end);
  }

  #add(content: Writable, element: number, value: Writable | string): void {
    const name = this.#wantedNames[this.#names[element] as number] as string;
    const before = content[name];
    if (before === undefined) content[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else content[name] = [before, value];
  }
}

function twiceAsLong(column: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(2 * column.length);
  longer.set(column);
  return longer;
}

function isSame(name: Buffer, bytes: Buffer, start: number): boolean {
  for (let index = 0; index < name.length; index++) if (bytes[start + index] !== name[index]) return false;
  return true;
}

function isSpaceOnly(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isSpace(bytes[at] as number)) return false;
  return true;
}

/** `&name;`, `&#65;` or `&#x41;`, short. */
function isEntity(bytes: Buffer, start: number, limit: number): boolean {
  const furthest = Math.min(limit, start + longestEntity);
  const isNumber = bytes[start + 1] === 0x23;
  const isHex = isNumber && bytes[start + 2] === 0x78;
  const first = start + (isHex ? 3 : isNumber ? 2 : 1);
  for (let at = first; at < furthest; at++) {
    const code = bytes[at] as number;
    if (code === semicolon) return at > first;
    if (isNumber ? !isDigit(code, isHex) : (nameBytes[code] as number) < (at === first ? 2 : 1)) return false;
  }
  return false;
}

const isDigit = (code: number, isHex: boolean) =>
  (code >= 0x30 && code <= 0x39) || (isHex && (code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);

// What one XML record holds: nested values by element name, as fast-xml-parser gives them, and the ways to take
// a text out of them. Entities stay as they are written until a text is taken.

/** An element with children: their values by name, a list where a name comes more than once. */
export type XmlContent = { readonly [name: string]: unknown };

/** One parser for all records: no attributes, no type guessing, no entities beyond the five of XML. */
const parser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  processEntities: false,
  htmlEntities: false,
  removeNSPrefix: true,
  trimValues: true,
});

/** A record's value (content, or a text where it has no children); null when it is not well formed. */
export function parseXmlRecord(name: string, xml: string): unknown {
  try {
    return (parser.parse(xml, true) as XmlContent)[name] ?? null;
  } catch {
    return null;
  }
}

export function isContent(value: unknown): value is XmlContent {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A child element's text, entities decoded; null when it is absent, empty, or not plain text. */
export function textOf(content: XmlContent, name: string): string | null {
  const value = content[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" ? plainText(first) : null;
}

/** A child element's content when it has children; null otherwise. */
export function childOf(content: XmlContent, name: string): XmlContent | null {
  const value = content[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return isContent(first) ? first : null;
}

/** An entity or a control character. */
const marked = /[&\p{Cc}]/u;

/** Entities decoded, control characters as spaces, bounded; null when nothing is left. */
export function plainText(written: string): string | null {
  const text = marked.test(written)
    ? decodeEntities(written)
        .replace(/\p{Cc}+/gu, " ")
        .trim()
    : written;
  return text === "" ? null : text.slice(0, maxTextLength);
}

const namedEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The five entities of XML and character references; anything else stays as it is written. */
function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/g,
    (whole, hex, decimal, name) => {
      if (name) return namedEntities[name as string] ?? whole;
      const code = hex ? Number.parseInt(hex as string, 16) : Number(decimal);
      return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
        ? String.fromCodePoint(code)
        : "";
    },
  );
}

/**
 * One tag's name and attributes (WHATWG HTML, sections 13.2.5.8 and 13.2.5.32 to 40): their places are noted in one
 * pass, and a value is only made when it is asked for.
 */
import { decodeHTMLAttribute } from "entities";
import { nameHash } from "./html-tags.ts";

/** Further attributes of a tag are ignored; real tags have 30 at most. */
const maxAttributes = 256;

export class TagReader {
  readonly #html: string;
  /** Where the name stands, and its hash. */
  readonly name = { from: 0, to: 0, hash: 0 };
  /** Written `<x/>`. */
  isSelfClosing = false;
  /** Name and value of each attribute: from, to, from, to. */
  readonly #places = new Int32Array(4 * maxAttributes);
  #attributes = 0;
  /** Bit n: an attribute's name has n characters (modulo 32). */
  #lengths = 0;

  constructor(html: string) {
    this.#html = html;
  }

  /** The value of the tag's attribute, decoded; null when it has none. The name in lower case. */
  attribute(name: string): string | null {
    if ((this.#lengths & (1 << (name.length & 31))) === 0) return null;
    for (let at = 0; at < this.#attributes; at += 4) {
      const [from, to] = [this.#places[at]!, this.#places[at + 1]!];
      if (to - from === name.length && isNamed(this.#html, from, name)) {
        return this.#value(this.#places[at + 2]!, this.#places[at + 3]!);
      }
    }
    return null;
  }

  hasAttributes(): boolean {
    return this.#attributes > 0;
  }

  /** The names of the tag's attributes as written, each one's first only counting (WHATWG 13.2.5.33). */
  attributeNames(): string[] {
    const names = new Set<string>();
    for (let at = 0; at < this.#attributes; at += 4) {
      names.add(this.#html.slice(this.#places[at]!, this.#places[at + 1]!).replace(/[A-Z]/g, asciiLower));
    }
    return [...names];
  }

  #value(from: number, to: number): string {
    const value = this.#html.slice(from, to);
    const decoded = value.includes("&") ? decodeHTMLAttribute(value) : value;
    return decoded.includes("\0") ? decoded.replaceAll("\0", "\ufffd") : decoded;
  }

  /** Reads name and attributes from here; returns where the tag ends, -1 when the page ends before it. */
  read(from: number): number {
    const html = this.#html;
    let [at, hash] = [from, 0];
    let code = html.charCodeAt(at);
    for (; !isNameEnd(code) && at < html.length; code = html.charCodeAt(++at)) hash = nameHash(hash, code);
    this.name.from = from;
    this.name.to = at;
    this.name.hash = hash;
    this.#attributes = 0;
    this.#lengths = 0;
    this.isSelfClosing = false;
    if (code === 0x3e) return at + 1;
    return this.#readAttributes(at);
  }

  #readAttributes(from: number): number {
    const html = this.#html;
    for (let at = from; at < html.length; ) {
      const code = html.charCodeAt(at);
      if (code === 0x3e) return at + 1;
      if (code === 0x2f) {
        this.isSelfClosing = html.charCodeAt(at + 1) === 0x3e;
        at++;
      } else if (isSpace(code)) at++;
      else {
        at = this.#readAttribute(at);
        if (at === -1) return -1;
      }
    }
    return -1;
  }

  #readAttribute(from: number): number {
    const html = this.#html;
    let at = from + 1;
    let code = html.charCodeAt(at);
    while (!isNameEnd(code) && code !== 0x3d && at < html.length) code = html.charCodeAt(++at);
    const to = at;
    while (isSpace(code)) code = html.charCodeAt(++at);
    if (code !== 0x3d) return this.#keep(from, to, to, to, at);
    do code = html.charCodeAt(++at);
    while (isSpace(code));
    if (code === 0x22 || code === 0x27) {
      const end = html.indexOf(code === 0x22 ? '"' : "'", at + 1);
      return end === -1 ? -1 : this.#keep(from, to, at + 1, end, end + 1);
    }
    const valueFrom = at;
    while (!isSpace(code) && code !== 0x3e && at < html.length) code = html.charCodeAt(++at);
    return this.#keep(from, to, valueFrom, at, at);
  }

  /** Notes an attribute's places; returns the last argument. */
  #keep(nameFrom: number, nameTo: number, from: number, to: number, after: number): number {
    const at = this.#attributes;
    if (at === this.#places.length) return after;
    this.#places[at] = nameFrom;
    this.#places[at + 1] = nameTo;
    this.#places[at + 2] = from;
    this.#places[at + 3] = to;
    this.#attributes = at + 4;
    this.#lengths |= 1 << ((nameTo - nameFrom) & 31);
    return after;
  }
}

/** Whether `name`, in lower case, stands there, in any case of letters. */
export function isNamed(html: string, from: number, name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const code = html.charCodeAt(from + at);
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== name.charCodeAt(at)) return false;
  }
  return true;
}

export const isNameEnd = (code: number) => code === 0x3e || code === 0x2f || isSpace(code);
const isSpace = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d && code !== 0x0b);
const asciiLower = (letter: string) => letter.toLowerCase();

/**
 * Tags, comments and character references that are left in a text (a page about HTML has them): Postgres' default
 * text search parser takes them for tokens of their own, which no dictionary wants.
 */
import { asciiLetter, classAt, digit, space, tagCharacter, wordStart } from "./character-classes.ts";

const [exclamation, quote, numberSign, apostrophe, hyphen, dot, slash, colon, semicolon] = [
  0x21, 0x22, 0x23, 0x27, 0x2d, 0x2e, 0x2f, 0x3a, 0x3b,
];
const [greater, question, backslash, underscore] = [0x3e, 0x3f, 0x5c, 0x5f];

/** The tags of one text. What is between `<script>` or `<style>` and its end tag counts as blank. */
export class Tags {
  readonly #text: string;
  /** Where it is known that no comment ends any more. */
  #noCommentEndFrom = Number.POSITIVE_INFINITY;
  /** Within a script or a style; Postgres notes that even when the tag turns out to be none. */
  ignoring = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the tag, declaration or comment ends that begins at `from`; -1 for none. */
  endOf(from: number): number {
    const code = this.#text.charCodeAt(from + 1);
    if (code === exclamation) return this.#declarationEnd(from);
    if (code === question) return this.#text[from + 2] === "x" ? this.#insideEnd(from, from + 3) : -1;
    if (code === slash) return this.#startsName(from + 2) ? this.#nameEnd(from, from + 3) : -1;
    if (code === colon || code === underscore || this.#startsName(from + 1))
      return this.#nameEnd(from, from + 2);
    return -1;
  }

  #startsName(at: number): boolean {
    return at < this.#text.length && (classAt(this.#text, at) & asciiLetter) !== 0;
  }

  #declarationEnd(from: number): number {
    const text = this.#text;
    if (text[from + 2] === "D" || text[from + 2] === "d") return this.#insideEnd(from, from + 3);
    if (!text.startsWith("--", from + 2) || from >= this.#noCommentEndFrom) return -1;
    const end = text.indexOf("-->", from + 4);
    if (end < 0) this.#noCommentEndFrom = from;
    return end < 0 ? -1 : end + 3;
  }

  #nameEnd(from: number, nameAt: number): number {
    const text = this.#text;
    for (let at = nameAt; at < text.length; at++) {
      const code = text.charCodeAt(at);
      const is = classAt(text, at);
      if (code === slash) return text.charCodeAt(at + 1) === greater ? at + 2 : -1;
      if (code === greater || is & space) {
        this.#noteScript(from, at);
        return code === greater ? at + 1 : this.#insideEnd(from, at + 1);
      }
      const goesOn = code === colon || code === underscore || code === dot || code === hyphen;
      if (!goesOn && (is & wordStart) === 0) return -1;
    }
    return -1;
  }

  /** After the name: attributes, with anything between quotes. */
  #insideEnd(from: number, insideAt: number): number {
    const text = this.#text;
    let quoted = 0;
    for (let at = insideAt; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (quoted !== 0) {
        if (code === backslash) at++;
        else if (code === quoted) quoted = 0;
      } else if (code === greater) {
        this.#noteScript(from, at);
        return at + 1;
      } else if (code === quote || code === apostrophe) quoted = code;
      else {
        const is = classAt(text, at);
        if ((is & tagCharacter) === 0) return -1;
        if (is & space) this.#noteScript(from, at);
      }
    }
    return -1;
  }

  #noteScript(from: number, at: number): void {
    if (at - from < 6 || at - from > 8) return;
    const read = this.#text.slice(from, at).toLowerCase();
    if (read === "<script" || read === "<style") this.ignoring = true;
    else if (read === "</script" || read === "</style") this.ignoring = false;
  }
}

/** Where the character reference ends whose `&` is at `from`; -1 for none. Any name is taken for one. */
export function entityEnd(text: string, from: number): number {
  if (text.charCodeAt(from + 1) === numberSign) return numericEntityEnd(text, from + 2);
  let at = from + 1;
  const first = text.charCodeAt(at);
  const begins =
    first === colon || first === underscore || (at < text.length && (classAt(text, at) & asciiLetter) !== 0);
  if (!begins) return -1;
  for (at++; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === semicolon) return at + 1;
    const goesOn = code === colon || code === underscore || code === dot || code === hyphen;
    if (!goesOn && (classAt(text, at) & wordStart) === 0) return -1;
  }
  return -1;
}

function numericEntityEnd(text: string, from: number): number {
  const isHexadecimal = text[from] === "x" || text[from] === "X";
  const first = isHexadecimal ? from + 1 : from;
  let at = first;
  while (at < text.length && (isHexadecimal ? isHexDigit(text, at) : (classAt(text, at) & digit) !== 0)) at++;
  return at > first && text.charCodeAt(at) === semicolon ? at + 1 : -1;
}

function isHexDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at) | 0x20;
  return (classAt(text, at) & digit) !== 0 || (code >= 0x61 && code <= 0x66);
}

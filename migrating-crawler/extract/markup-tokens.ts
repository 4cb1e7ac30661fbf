/**
 * Recognises tags, comments and character references inside text (for instance, on a page about HTML). Postgres' default
 * parser treats them as tokens that no dictionary uses.
 */

const [exclamation, quote, numberSign, apostrophe, hyphen, dot, slash, colon, semicolon] = [
  0x21, 0x22, 0x23, 0x27, 0x2d, 0x2e, 0x2f, 0x3a, 0x3b,
];

const [greater, question, backslash, underscore] = [0x3e, 0x3f, 0x5c, 0x5f];

/** Finds the tags of one text. The content of `<script>` and `<style>` counts as blank. */
export class Tags {
  readonly #text: string;
  #noCommentEndFrom = Number.POSITIVE_INFINITY;
  /** True within a script or style. Postgres sets this even if the tag turns out to be invalid. */
  ignoring = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the end of the tag, declaration or comment that begins at `from`, or -1. */
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

/** Returns the end of the character reference at `from`, or -1. Any name is accepted. */
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

// Classifies characters as Postgres' default text search parser does in C.UTF-8 (the embedded database) and other glibc UTF-8
// locales. The classes were found by testing every code point in Postgres 15 and 18. Digits of other scripts count as letters.
// Marks continue a word but do not start one, and neither do invisible format characters such as the soft hyphen since
// Postgres 16.

export const asciiLetter = 1;

export const digit = 2;

export const letter = 4;

export const mark = 8;

/** Characters that Postgres accepts in a URL's path (RFC 3986). */
export const urlCharacter = 16;

/** Characters that extend an ASCII word or number: `. - _ @ : /`. */
export const joiner = 32;

/** Characters that may occur in a tag outside quotes. */
const tagCharacter = 64;

export const space = 128;

/** Characters that end white space because markup, a path or a signed number may begin there: `< & / + -`. */
export const opener = 256;

export const wordStart = letter | digit;
export const wordPart = letter | digit | mark;
export const asciiName = asciiLetter | digit;

const classified = 512;

const classes = new Uint16Array(0x10000);

for (let code = 0; code < 0x80; code++) classes[code] = asciiClass(code) | classified;

/** Returns the class of the character as a sum of the constants above. Both halves of a surrogate pair have the pair's class. */
export function classAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  const known = classes[code]!;
  if (known !== 0) return known;
  if (code >= 0xd800 && code <= 0xdfff) return pairClass(text, at, code);
  const found = unicodeClass(String.fromCharCode(code)) | classified;
  classes[code] = found;
  return found;
}

/** Returns the class of a UTF-16 unit if it is known, or 0 if `classAt` must determine it. */
export function classOfUnit(code: number): number {
  return classes[code]!;
}

function asciiClass(code: number): number {
  const character = String.fromCharCode(code);
  let found = 0;
  if (/[A-Za-z]/.test(character)) found |= asciiLetter | letter;
  if (/[0-9]/.test(character)) found |= digit;
  if (/[!-~]/.test(character) && !/["<>\\^`{|}]/.test(character)) found |= urlCharacter;
  if (/[.\-_@:/]/.test(character)) found |= joiner;
  if (/[\t-\r ]/.test(character)) found |= space;
  if (/[<&/+-]/.test(character)) found |= opener;
  if (/[A-Za-z0-9=\-_#/:.&?%~\t-\r ]/.test(character)) found |= tagCharacter;
  return found;
}

const letters = /^(?![\u0363-\u036f\u1dd3-\u1de6])[\p{Alphabetic}\p{Nd}]$/u;
const marks = /^[\p{Mn}\p{Me}\p{Cf}\u0f3e\u0f3f\u1b44\u1baa\ua953]$/u;
const spaces = /^[\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]$/;

function unicodeClass(character: string): number {
  if (letters.test(character)) return letter;
  if (marks.test(character)) return mark;
  return spaces.test(character) ? space | tagCharacter : 0;
}

function pairClass(text: string, at: number, code: number): number {
  const isHigh = code < 0xdc00;
  const high = isHigh ? code : text.charCodeAt(at - 1);
  const low = isHigh ? text.charCodeAt(at + 1) : code;
  const isPair = high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low <= 0xdfff;
  return isPair ? unicodeClass(String.fromCharCode(high, low)) : 0;
}

// Recognises hosts, URLs and e-mail addresses as Postgres' default text search parser does. A host consists of labels of ASCII
// letters, digits, `-` and `_` separated by dots, ends in a label of at least two letters, and may have a port. A URL is a
// host with a path. The part of an e-mail address before the `@` is read like a host. If a longer match fails, the host ends
// at its last complete position.

export type Site =
  | { readonly type: "host"; readonly end: number }
  | { readonly type: "url"; readonly end: number; readonly hostEnd: number }
  | { readonly type: "email"; readonly end: number }
  | { readonly type: "none"; readonly end: number };

/** The state within a host: in a label, after `-` or `_`, after a dot, or after one or more letters that follow a dot. */
type Place = "label" | "joint" | "dot" | "letter" | "domain";

export function siteAt(text: string, from: number): Site {
  let place: Place = "label";
  let complete = -1;
  let at = from;
  for (; ; at++) {
    const code = text.charCodeAt(at);
    const is = code < 0x80 ? classAt(text, at) & asciiName : 0;
    if (is === 0) {
      if (place === "domain") complete = at;
      if (place === "domain" && (code === colon || code === slash)) return withPort(text, at);
      if (code === atSign && place !== "dot" && place !== "joint") return address(text, at, complete);
      const next = afterJoiner(code, place);
      if (next === null) return complete < 0 ? { type: "none", end: at } : { type: "host", end: complete };
      place = next;
    } else place = afterName(is, place);
  }
}

/** Returns the end of an e-mail address's host at `from`, or -1. */
export function mailHostEnd(text: string, from: number): number {
  const is = classAt(text, from) & asciiName;
  if (is === 0 || Number.isNaN(text.charCodeAt(from)) || isScientific(text, from)) return -1;
  let place: Place = "label";
  let complete = -1;
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at);
    const name = code < 0x80 ? classAt(text, at) & asciiName : 0;
    if (name !== 0) {
      place = afterName(name, place);
      continue;
    }
    if (place === "domain") complete = at;
    if (place === "domain" && code === colon) return portEnd(text, at);
    const next = afterJoiner(code, place);
    if (next === null) return complete;
    place = next;
  }
}

const atSign = 0x40;

function afterName(is: number, place: Place): Place {
  if (place === "dot") return is === digit ? "label" : "letter";
  if (place === "letter" || place === "domain") return is === digit ? "label" : "domain";
  return "label";
}

function afterJoiner(code: number, place: Place): Place | null {
  if (place === "dot" || place === "joint") return null;
  if (code === dot) return "dot";
  return code === hyphen || code === underscore ? "joint" : null;
}

function withPort(text: string, hostEnd: number): Site {
  const end = portEnd(text, hostEnd);
  if (text.charCodeAt(end) !== slash) return { type: "host", end };
  let at = end + 1;
  while (at < text.length && classAt(text, at) & urlCharacter) at++;
  return at === end + 1 ? { type: "host", end } : { type: "url", end: at, hostEnd: end };
}

function portEnd(text: string, hostEnd: number): number {
  if (text.charCodeAt(hostEnd) !== colon) return hostEnd;
  let at = hostEnd + 1;
  while (at < text.length && classAt(text, at) & digit) at++;
  return at === hostEnd + 1 ? hostEnd : at;
}

function address(text: string, at: number, complete: number): Site {
  const end = mailHostEnd(text, at + 1);
  if (end > 0) return { type: "email", end };
  return complete < 0 ? { type: "none", end: at } : { type: "host", end: complete };
}

/** `1e5` at the start is a number, whatever follows. */
function isScientific(text: string, from: number): boolean {
  return scientificEnd(text, digitsEnd(text, from)) > 0;
}

// Reads numbers as Postgres' default text search parser does: integers, decimals, exponents, versions.

export function digitsEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && classAt(text, at) & digit) at++;
  return at;
}

/** Returns the end of the exponent whose `e` is at `at`, or -1. */
export function scientificEnd(text: string, at: number): number {
  if (text[at] !== "e" && text[at] !== "E") return -1;
  const sign = text[at + 1] === "+" || text[at + 1] === "-" ? 1 : 0;
  const end = digitsEnd(text, at + 1 + sign);
  return end === at + 1 + sign ? -1 : end;
}

/** Returns the end of a decimal (`1.5`, `1.5e3`) or version (`1.2.3`) whose first digits end at `at`. */
export function decimalEnd(text: string, at: number): number {
  let end = at;
  for (let dots = 0; text.charCodeAt(end) === dot; dots++) {
    const after = digitsEnd(text, end + 1);
    if (after === end + 1) return end;
    end = after;
    const exponent = dots === 0 ? scientificEnd(text, end) : -1;
    if (exponent > 0) return exponent;
  }
  return end;
}

/** Returns the end of the number whose sign is at `from`, -1 if there is none, or `from` if a version follows. */
export function signedNumberEnd(text: string, from: number): number {
  const at = digitsEnd(text, from + 1);
  if (at === from + 1) return -1;
  const exponent = scientificEnd(text, at);
  if (exponent > 0) return exponent;
  const end = text.charCodeAt(at) === dot ? digitsEnd(text, at + 1) : at;
  if (end <= at + 1) return at;
  if (text.charCodeAt(end) === dot && digitsEnd(text, end + 1) > end + 1) return from;
  const decimalExponent = scientificEnd(text, end);
  return decimalExponent > 0 ? decimalExponent : end;
}

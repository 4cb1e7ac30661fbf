/**
 * What a character is to Postgres' default text search parser, in a database whose locale is C.UTF-8 (the
 * embedded one) or another of glibc's UTF-8 locales: found by asking Postgres 15 and 18 about every code point.
 * Digits of other scripts are letters to it; marks go on with a word but begin none, and so do, since Postgres
 * 16, invisible format characters such as the soft hyphen.
 */

/** ASCII letters and digits. */
export const asciiLetter = 1;
export const digit = 2;
/** Letters of all scripts, ASCII included. */
export const letter = 4;
export const mark = 8;
/** Allowed in a URL's path (RFC 3986, as Postgres reads it). */
export const urlCharacter = 16;
/** Makes more of an ASCII word or number than just that: `. - _ @ : /`. */
export const joiner = 32;
/** Allowed in a tag outside quotes. */
export const tagCharacter = 64;
export const space = 128;
/** Ends a blank, since markup, a path or a signed number may begin: `< & / + -`. */
export const opener = 256;

export const wordStart = letter | digit;
export const wordPart = letter | digit | mark;
export const asciiName = asciiLetter | digit;

const classified = 512;
/** By UTF-16 unit, filled as characters are met; ASCII at once. */
const classes = new Uint16Array(0x10000);
for (let code = 0; code < 0x80; code++) classes[code] = asciiClass(code) | classified;

/** The class of the character at `at`, a sum of the constants above; both halves of a pair have the pair's. */
export function classAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  const known = classes[code]!;
  if (known !== 0) return known;
  if (code >= 0xd800 && code <= 0xdfff) return pairClass(text, at, code);
  const found = unicodeClass(String.fromCharCode(code)) | classified;
  classes[code] = found;
  return found;
}

/** Of the UTF-16 unit `code` where that is enough to know; 0 where `classAt` has to look. */
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

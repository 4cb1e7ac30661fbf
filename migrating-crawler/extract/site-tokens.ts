/**
 * Recognises hosts, URLs and e-mail addresses as Postgres' default text search parser does. A host is labels of ASCII
 * letters, digits, `-` and `_` between dots, ends in a label of two or more letters, and may have a port; a URL is a
 * host with a path; the part before an address's `@` is read like a host. When a longer match fails, the host ends at
 * its last complete position.
 */
import { asciiName, classAt, digit, urlCharacter } from "./markup-tokens.ts";

export type Site =
  | { readonly type: "host"; readonly end: number }
  | { readonly type: "url"; readonly end: number; readonly hostEnd: number }
  | { readonly type: "email"; readonly end: number }
  /** Nothing begins before this position. */
  | { readonly type: "none"; readonly end: number };

/** The state in a host: in a label, after `-` or `_`, after a dot, or after one or more letters that follow a dot. */
type Place = "label" | "joint" | "dot" | "letter" | "domain";

/** `from` is the position of an ASCII letter or digit. */
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

const [dot, hyphen, underscore, colon, slash, atSign] = [0x2e, 0x2d, 0x5f, 0x3a, 0x2f, 0x40];

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

const decimalPoint = 0x2e;

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
  for (let dots = 0; text.charCodeAt(end) === decimalPoint; dots++) {
    const after = digitsEnd(text, end + 1);
    if (after === end + 1) return end;
    end = after;
    const exponent = dots === 0 ? scientificEnd(text, end) : -1;
    if (exponent > 0) return exponent;
  }
  return end;
}

/** Returns the end of the number whose sign is at `from`; -1 for none, `from` when a version follows. */
export function signedNumberEnd(text: string, from: number): number {
  const at = digitsEnd(text, from + 1);
  if (at === from + 1) return -1;
  const exponent = scientificEnd(text, at);
  if (exponent > 0) return exponent;
  const end = text.charCodeAt(at) === decimalPoint ? digitsEnd(text, at + 1) : at;
  if (end <= at + 1) return at;
  if (text.charCodeAt(end) === decimalPoint && digitsEnd(text, end + 1) > end + 1) return from;
  const decimalExponent = scientificEnd(text, end);
  return decimalExponent > 0 ? decimalExponent : end;
}

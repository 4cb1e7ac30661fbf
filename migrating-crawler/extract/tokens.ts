/**
 * Splits text into the tokens of Postgres' default text search parser (PostgreSQL manual, section 12.5): words, numbers,
 * compounds with their parts, hosts, URLs, e-mail addresses, files, versions. Tokens that Postgres' configurations discard
 * (tags, entities, blanks, protocols) are not reported. Tests compare the result with Postgres on real pages and random text.
 *
 * Text is split in one pass, with one look-up per character of a plain ASCII word. At a joining character, text that may
 * belong to something longer is examined again. Stretches known to contain no host or path are not searched again, so that the
 * time stays linear.
 */
import { anyWord, asciiWord, asItIs, type TokenKind } from "./dictionaries.ts";
import {
  asciiLetter,
  asciiName,
  classAt,
  classOfUnit,
  decimalEnd,
  digit,
  digitsEnd,
  entityEnd,
  joiner,
  letter,
  mailHostEnd,
  mark,
  opener,
  scientificEnd,
  signedNumberEnd,
  siteAt,
  space,
  Tags,
  urlCharacter,
  wordPart,
  wordStart,
} from "./markup-tokens.ts";

/** The splitter reuses one such object for all tokens of a text. */
export interface Token {
  readonly kind: TokenKind;
  /** The whole text. The token starts at `from` and ends before `to`. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
  readonly hash: number;
}

export interface TokenSink {
  take(token: Token): void;
  readonly isFull: boolean;
}

export function splitTokens(text: string, sink: TokenSink): void {
  new Splitter(text, sink).run();
}

const [ampersand, plus, hyphen, dot, slash, colon, less, underscore, atSign, tilde] = [
  0x26, 0x2b, 0x2d, 0x2e, 0x2f, 0x3a, 0x3c, 0x5f, 0x40, 0x7e,
];

class Splitter {
  readonly #text: string;
  readonly #sink: TokenSink;
  readonly #token: { -readonly [Key in keyof Token]: Token[Key] };
  #tags: Tags | null = null;
  /** True inside a script or style, where only the end tag counts. */
  #ignoring = false;
  /** No host, address or path begins before these positions. */
  #noSiteBefore = 0;
  #noPathBefore = 0;

  constructor(text: string, sink: TokenSink) {
    this.#text = text;
    this.#sink = sink;
    this.#token = { kind: asciiWord, text, from: 0, to: 0, hash: noHash };
  }

  run(): void {
    const text = this.#text;
    const { length } = text;
    for (let at = 0; at < length && !this.#sink.isFull; ) {
      const is = classAt(text, at);
      if (this.#ignoring || (is & wordStart) === 0) at = this.#other(at, is);
      else if (is & asciiLetter) at = this.#asciiWord(at);
      else at = is & digit ? this.#number(at) : this.#wordRest(at, at + 1);
    }
  }

  #take(kind: TokenKind, from: number, to: number): number {
    return this.#takeHashed(kind, from, to, hashOf(this.#text, from, to));
  }

  #takeHashed(kind: TokenKind, from: number, to: number, hash: number): number {
    const token = this.#token;
    token.kind = kind;
    token.from = from;
    token.to = to;
    token.hash = hash;
    this.#sink.take(token);
    return to;
  }

  /** Reads markup, a path or a signed number, or skips blanks to where one of these or a word may begin. */
  #other(at: number, is: number): number {
    const found = is & (opener | urlCharacter) ? this.#marked(at) : -1;
    if (found > at) return found;
    const text = this.#text;
    if (this.#ignoring) return orEnd(text, text.indexOf("<", at + 1));
    let end = at + 1;
    while (end < text.length && (classAt(text, end) & (wordStart | opener)) === 0) end++;
    return end;
  }

  #marked(at: number): number {
    const text = this.#text;
    const code = text.charCodeAt(at);
    if (code === less) return this.#tag(at);
    if (this.#ignoring) return -1;
    if (code === hyphen || code === plus) return this.#signedNumber(at);
    if (code === ampersand) return entityEnd(text, at);
    if (code === slash) return this.#path(at, at + 1, "slash");
    if (code === tilde) return this.#path(at, at + 1, "home");
    if (code !== dot) return -1;
    const next = text.charCodeAt(at + 1);
    if (next === dot) return this.#path(at, at + 2, "parent");
    return next === slash ? this.#path(at, at + 2, "slash") : -1;
  }

  #tag(at: number): number {
    this.#tags ??= new Tags(this.#text);
    const end = this.#tags.endOf(at);
    this.#ignoring = this.#tags.ignoring;
    return end;
  }

  #asciiWord(from: number): number {
    const text = this.#text;
    const { length } = text;
    let hash = noHash;
    let at = from;
    let is = 0;
    for (; at < length; at++) {
      const code = text.charCodeAt(at);
      is = classOfUnit(code);
      if ((is & asciiLetter) === 0) break;
      hash = hashOn(hash, code);
    }
    if (is === 0) is = classAt(text, at);
    if (at < length && is & (joiner | wordPart)) return this.#joined(from, at, is);
    return this.#takeHashed(asciiWord, from, at, hash);
  }

  /** Handles the ASCII letters from `from` to `at`, which a joining character may extend. */
  #joined(from: number, at: number, is: number): number {
    const text = this.#text;
    const code = text.charCodeAt(at);
    if (is & (letter | mark)) return this.#wordRest(from, at);
    const larger =
      code === colon
        ? this.#protocol(at)
        : code === slash
          ? this.#path(from, at + 1, "slash")
          : this.#site(from);
    if (larger > 0) return larger;
    if (is & digit) return this.#mixedRest(from, at);
    if (code === dot) {
      const file = this.#file(from, at);
      if (file > 0) return file;
    }
    return code === hyphen ? this.#compound(asciiWord, from, at) : this.#take(asciiWord, from, at);
  }

  #protocol(at: number): number {
    return this.#text.startsWith("//", at + 1) ? at + 3 : -1;
  }

  #site(from: number): number {
    if (from < this.#noSiteBefore) return -1;
    const site = siteAt(this.#text, from);
    if (site.type === "none") {
      this.#noSiteBefore = site.end;
      return -1;
    }
    this.#take(asItIs, from, site.end);
    if (site.type === "url") {
      this.#take(asItIs, from, site.hostEnd);
      this.#take(asItIs, site.hostEnd, site.end);
    }
    return site.end;
  }

  #path(from: number, at: number, place: PathPlace): number {
    if (at < this.#noPathBefore && place === "slash") return -1;
    const end = pathEnd(this.#text, at, place);
    if (end >= 0) return this.#take(asItIs, from, end);
    if (place === "slash") this.#noPathBefore = -1 - end;
    return -1;
  }

  /** Reads a file name that continues after the dot at `at`. */
  #file(from: number, at: number): number {
    if (!isNameCharacter(this.#text, at + 1, this.#text.charCodeAt(at + 1))) return -1;
    return this.#take(asItIs, from, pathEnd(this.#text, at + 1, "name"));
  }

  #wordRest(from: number, begun: number): number {
    const text = this.#text;
    let at = begun;
    while (at < text.length && classAt(text, at) & (letter | mark)) at++;
    if (at < text.length && classAt(text, at) & digit) return this.#mixedRest(from, at);
    return text.charCodeAt(at) === hyphen ? this.#compound(anyWord, from, at) : this.#take(anyWord, from, at);
  }

  #mixedRest(from: number, begun: number): number {
    const text = this.#text;
    let at = begun;
    while (at < text.length && classAt(text, at) & wordPart) at++;
    const code = text.charCodeAt(at);
    if (code === hyphen) return this.#compound(asItIs, from, at);
    const larger =
      code === atSign
        ? this.#address(from, at)
        : code === slash
          ? this.#path(from, at + 1, "slash")
          : code === dot
            ? this.#file(from, at)
            : -1;
    return larger > 0 ? larger : this.#take(asItIs, from, at);
  }

  #address(from: number, at: number): number {
    const end = mailHostEnd(this.#text, at + 1);
    return end < 0 ? -1 : this.#take(asItIs, from, end);
  }

  #number(from: number): number {
    const text = this.#text;
    const at = digitsEnd(text, from);
    if (at === text.length) return this.#take(asItIs, from, at);
    const code = text.charCodeAt(at);
    const is = classAt(text, at);
    const exponent = scientificEnd(text, at);
    if (exponent > 0) return this.#take(asItIs, from, exponent);
    const mayBeSite =
      is & asciiLetter || code === dot || code === hyphen || code === underscore || code === atSign;
    const site = mayBeSite ? this.#site(from) : -1;
    if (site > 0) return site;
    if (is & (letter | mark)) return this.#mixedRest(from, at);
    if (code === slash) {
      const file = this.#path(from, at + 1, "slash");
      if (file > 0) return file;
    }
    return this.#take(asItIs, from, decimalEnd(text, at));
  }

  /** A version cannot have a sign, so it is split as if the sign were not there. */
  #signedNumber(from: number): number {
    const end = signedNumberEnd(this.#text, from);
    if (end === from) return this.#number(from + 1);
    return end < 0 ? -1 : this.#take(asItIs, from, end);
  }

  #compound(first: TokenKind, from: number, at: number): number {
    const whole = compoundFrom(this.#text, first, at);
    this.#take(whole.kind, from, whole.end);
    return whole.end === at ? at : this.#parts(from);
  }

  /** The parts may extend past the compound, over a single hyphen before a number. */
  #parts(from: number): number {
    const text = this.#text;
    for (let at = from; at < text.length; ) {
      if (text.charCodeAt(at) === hyphen) {
        if (at + 1 >= text.length || (classAt(text, at + 1) & wordPart) === 0) return at;
        at++;
        continue;
      }
      const part = compoundPart(text, at);
      if (part === null) return at;
      at = this.#take(part.kind, at, part.end);
    }
    return text.length;
  }
}

const orEnd = (text: string, at: number) => (at < 0 ? text.length : at);

// Reads hyphenated words as Postgres' default text search parser does.

const hyphenCode = 0x2d;

interface Words {
  readonly kind: TokenKind;
  readonly end: number;
}

/** Returns what a word of the kind `first`, with a hyphen at `at`, becomes together with everything joined to it. */
function compoundFrom(text: string, first: TokenKind, at: number): Words {
  let kind = first;
  let end = at;
  while (text.charCodeAt(end) === hyphenCode) {
    const part = compoundPart(text, end + 1);
    if (part === null) break;
    if (part.kind > kind) kind = part.kind;
    end = part.end;
  }
  return { kind, end };
}

/** A part beside a hyphen is a word, or digits followed by a letter. */
function compoundPart(text: string, from: number): Words | null {
  if (from >= text.length || (classAt(text, from) & wordStart) === 0) return null;
  let at = from;
  let seen = 0;
  for (; at < text.length; at++) {
    const is = classAt(text, at);
    if ((is & wordPart) === 0) break;
    seen |= is & asciiLetter ? asciiLetter : is;
  }
  const isAscii = (seen & (letter | mark)) === 0;
  if (seen & digit) return isAscii && (seen & asciiLetter) === 0 ? null : { kind: asItIs, end: at };
  return { kind: isAscii ? asciiWord : anyWord, end: at };
}

// Hashes words for in-memory tables, character by character (FNV-1a over UTF-16 units).

const noHash = 0x811c9dc5 | 0;

function hashOn(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

export function hashOf(text: string, from: number, to: number): number {
  let hash = noHash;
  for (let at = from; at < to; at++) hash = hashOn(hash, text.charCodeAt(at));
  return hash;
}

// Reads file paths as Postgres' default text search parser does: names of ASCII letters, digits, `_`, `-` and single dots
// between slashes, with `.`, `..` and `~` where shells allow them. If a longer match fails, the path ends at its last complete
// position.

/** The part read last: `/`, `~`, `/.` or `.`, `..`, or part of a name. */
type PathPlace = "slash" | "home" | "dot" | "parent" | "name";

const [fileDot, fileHyphen, fileUnderscore, fileSlash, fileTilde] = [0x2e, 0x2d, 0x5f, 0x2f, 0x7e];

/** Returns the end of the path, or `-1 - position` if it fails at that position. */
function pathEnd(text: string, from: number, begun: PathPlace): number {
  let place = begun;
  let complete = -1;
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at);
    if (place === "parent" && code !== fileSlash) return isOver(text, at) ? at : failed(complete, at);
    if (isNameCharacter(text, at, code)) place = "name";
    else if (code === fileSlash && place !== "slash") {
      if (place === "name" || place === "parent") complete = at;
      place = "slash";
    } else if (place === "name") {
      if (
        code !== fileHyphen &&
        !(code === fileDot && isNameCharacter(text, at + 1, text.charCodeAt(at + 1)))
      )
        return at;
    } else if (place === "slash" && code === fileTilde) place = "home";
    else if (place === "slash" && code === fileDot) place = "dot";
    else if (place === "dot" && code === fileDot) place = "parent";
    else return failed(complete, at);
  }
}

const failed = (complete: number, at: number) => (complete < 0 ? -1 - at : complete);

/** `..` must be followed by a blank or the end of the text. */
function isOver(text: string, at: number): boolean {
  return at >= text.length || (classAt(text, at) & space) !== 0;
}

function isNameCharacter(text: string, at: number, code: number): boolean {
  return code === fileUnderscore || (code < 0x80 && (classAt(text, at) & asciiName) !== 0);
}

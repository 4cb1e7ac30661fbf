/**
 * The rules of holder-name.ts for names and handles in plain ASCII, straight from their bytes and without a text: a
 * registry has millions of them. What is out of the way (other letters, a phrase among legal forms, a word that
 * placeholders begin with) is left to `holderOf`; where this says yes, both say the same.
 */
import { TextPool } from "#core/text-pool";
import { areDistinctiveLetters, wordKinds } from "./holder-name.ts";

/** `companyNameOf` reads so many characters; longer names are not for here. */
const maxBytes = 200;

const space = 0x20;
const dash = 0x2d;
const dot = 0x2e;
const slash = 0x2f;
const comma = 0x2c;
const ampersand = 0x26;
const bytesOf = (text: string) => new TextEncoder().encode(text);
const [and, co, gmbh, pt] = [bytesOf("and"), bytesOf("co"), bytesOf("gmbh"), bytesOf("pt")];

/** What a byte is, as flags. */
const digit = 1;
const nonZero = 2;
const capital = 4;
const small = 8;
/** `._@/:+-`, which handles and ids have beside letters and digits. */
const inIds = 16;
/** What only texts are right for: control characters, letters beyond ASCII, and quotes, which are taken out. */
const forTexts = 32;
const alphanumeric = digit | capital | small;
const letter = capital | small;

const flags = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (code < 0x20 || code > 0x7e) return forTexts;
  if (/[0-9]/.test(character)) return character === "0" ? digit : digit | nonZero;
  if (/[A-Za-z]/.test(character)) return character < "a" ? capital : small;
  if ("._@/:+-".includes(character)) return inIds;
  return "'`".includes(character) ? forTexts : 0;
});

/** `administered` and `unallocated` have fewer letters. */
const longestFirstWord = 16;

export class AsciiHolderNames {
  /** What `normalise` made, up to `length`. */
  readonly text = new Uint8Array(6 * maxBytes);
  start = 0;
  end = 0;
  isDistinctive = false;
  readonly #words = new TextPool();
  readonly #kinds: Int32Array;
  /** Of the name at hand: where each word begins and ends in `text`, and its kinds. */
  readonly #starts = new Int32Array(maxBytes);
  readonly #ends = new Int32Array(maxBytes);
  readonly #kindsOfWords = new Int32Array(maxBytes);
  readonly #lower = new Uint8Array(longestFirstWord);

  constructor() {
    const kinds = [...wordKinds.all()];
    this.#kinds = Int32Array.from(kinds, ([, kind]) => kind);
    for (const [word] of kinds) this.#words.intern(word);
  }

  /** A handle in capitals that is one for `holderOf` too. */
  isHandle(bytes: Uint8Array, start: number, end: number): boolean {
    if (!isId(bytes, start, end, small)) return false;
    return !mayMeanNobody(bytes, start, end) && !mayBeMaintainer(bytes, start, end);
  }

  /** An id in capitals that may stand for anybody. */
  isId(bytes: Uint8Array, start: number, end: number): boolean {
    return isId(bytes, start, end, small);
  }

  /** An opaque-id: one with a digit other than 0 is no placeholder. */
  isOpaqueId(bytes: Uint8Array, start: number, end: number): boolean {
    if (!isId(bytes, start, end, 0)) return false;
    for (let at = start; at < end; at += 1) if ((flags[bytes[at] as number] as number) & nonZero) return true;
    return false;
  }

  /** A name that is shown as it is. */
  isShown(bytes: Uint8Array, start: number, end: number): boolean {
    if (start === end || bytes[start] === space || bytes[end - 1] === space) return false;
    let seen = 0;
    let before = 0;
    for (let at = start; at < end; at += 1) {
      const code = bytes[at] as number;
      if (code < space || code > 0x7e || (code === space && before === space)) return false;
      seen |= flags[code] as number;
      before = code;
    }
    if ((seen & letter) === 0 || end - start > 500) return false;
    return !mayBeMaintainer(bytes, start, end) && !this.#mayBePlaceholder(bytes, start, end);
  }

  /** The company's name of `companyNameOf` into `text`; false where that has to be asked. */
  normalise(bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start > maxBytes ? 0 : this.#cut(bytes, start, end);
    if (count === 0) return false;
    const kinds = this.#kindsOfWords;
    let last = count;
    while (last > 0) {
      const kind = kinds[last - 1] as number;
      if (!(kind & wordKinds.legal) && !(last < count && kind & wordKinds.legalBesideOthers)) break;
      last -= 1;
    }
    let first = 0;
    while (first < last && (kinds[first] as number) & wordKinds.leading) first += 1;
    const isSecond = last < count && first + 1 < last;
    if (isSecond && (kinds[first] as number) & wordKinds.leadingBesideOthers) first += 1;
    if (!this.#haveLetters(first, last)) return false;
    this.start = this.#starts[first] as number;
    this.end = this.#ends[last - 1] as number;
    if (this.#mayBePlaceholder(this.text, this.start, this.end)) return false;
    this.isDistinctive = this.#areDistinctive(first, last);
    return true;
  }

  /** Words in small letters with a space between into `text`; their number, 0 where it takes a text. */
  #cut(bytes: Uint8Array, start: number, end: number): number {
    const { text } = this;
    let count = 0;
    let length = 0;
    let hasComma = false;
    for (let at = start; at < end; ) {
      const code = bytes[at] as number;
      const flag = flags[code] as number;
      if (flag & forTexts) return 0;
      const wordStart = length;
      if (flag & alphanumeric) {
        const wordEnd = this.#copyWord(bytes, at, end, length);
        length += wordEnd - at;
        at = wordEnd;
        if (length - wordStart === 1 && flag & letter) {
          // `S.A.`, `a/s`: letters by themselves with a point or slash between are one word.
          for (let next = nextInitial(bytes, at, end); next >= 0; next = nextInitial(bytes, at, end)) {
            text[length++] = (bytes[next] as number) | 0x20;
            at = next + 1;
          }
        }
      } else {
        at += 1;
        if (code === comma) hasComma = true;
        if (code !== ampersand) continue;
        text.set(and, length);
        length += and.length;
      }
      this.#starts[count] = wordStart;
      this.#ends[count] = length;
      this.#kindsOfWords[count++] = this.#kindOf(wordStart, length);
      text[length++] = space;
    }
    if (count === 0 || endsAsForm(bytes, start, end)) return 0;
    return this.#hasPhrase(count) || (hasComma && this.#isWord(count - 1, pt)) ? 0 : count;
  }

  /** In small letters; gives where the word ends. */
  #copyWord(bytes: Uint8Array, start: number, end: number, to: number): number {
    let at = start;
    for (; at < end; at += 1) {
      const code = bytes[at] as number;
      const flag = flags[code] as number;
      if ((flag & alphanumeric) === 0) break;
      this.text[to + at - start] = flag & capital ? code | 0x20 : code;
    }
    return at;
  }

  /** Words of which legal forms of several words are made; of `gmbh` only where such a one may follow. */
  #hasPhrase(count: number): boolean {
    for (let word = 0; word < count; word += 1) {
      const kind = this.#kindsOfWords[word] as number;
      if ((kind & wordKinds.inPhrases) === 0) continue;
      if (!this.#isWord(word, gmbh)) return true;
      if (word + 1 < count && (this.#isWord(word + 1, co) || this.#isWord(word + 1, and))) return true;
    }
    return false;
  }

  #isWord(word: number, letters: Uint8Array): boolean {
    const start = this.#starts[word] as number;
    return isText(this.text, start, this.#ends[word] as number, letters);
  }

  #kindOf(start: number, end: number): number {
    const word = this.#words.findBytes(this.text, start, end);
    return word < 0 ? 0 : (this.#kinds[word] as number);
  }

  #haveLetters(first: number, last: number): boolean {
    for (let word = first; word < last; word += 1)
      if (!isNumber(this.text, this.#starts[word] as number, this.#ends[word] as number)) return true;
    return false;
  }

  #areDistinctive(first: number, last: number): boolean {
    let own = 0;
    let letters = 0;
    for (let word = first; word < last; word += 1) {
      const start = this.#starts[word] as number;
      const end = this.#ends[word] as number;
      if ((this.#kindsOfWords[word] as number) & wordKinds.common || isNumber(this.text, start, end))
        continue;
      own += 1;
      letters += end - start;
    }
    return areDistinctiveLetters(own, letters, last - first);
  }

  /** Begins with a word that the names of nobody begin with, or with a row of x. */
  #mayBePlaceholder(bytes: Uint8Array, start: number, end: number): boolean {
    let from = start;
    while (from < end && !((flags[bytes[from] as number] as number) & alphanumeric)) from += 1;
    let to = from;
    let isOnlyX = true;
    for (; to < end && (flags[bytes[to] as number] as number) & alphanumeric; to += 1) {
      if (((bytes[to] as number) | 0x20) !== 0x78) isOnlyX = false;
    }
    if (isOnlyX) return true;
    if (to - from > longestFirstWord) return false;
    const lower = this.#lower;
    for (let at = from; at < to; at += 1) {
      const code = bytes[at] as number;
      lower[at - from] = (flags[code] as number) & capital ? code | 0x20 : code;
    }
    const word = this.#words.findBytes(lower, 0, to - from);
    return word >= 0 && ((this.#kinds[word] as number) & wordKinds.first) !== 0;
  }
}

function isId(bytes: Uint8Array, start: number, end: number, refused: number): boolean {
  if (start === end || end - start > 100) return false;
  if (((flags[bytes[start] as number] as number) & alphanumeric) === 0) return false;
  for (let at = start; at < end; at += 1) {
    const flag = flags[bytes[at] as number] as number;
    if ((flag & (alphanumeric | inIds)) === 0 || (flag & refused) !== 0) return false;
  }
  return true;
}

/** `MNT-…`, `MAINT-…`, `…-MNT`: with a dash, and begins with an m or ends with a t. */
function mayBeMaintainer(bytes: Uint8Array, start: number, end: number): boolean {
  if (((bytes[start] as number) | 0x20) !== 0x6d && ((bytes[end - 1] as number) | 0x20) !== 0x74)
    return false;
  for (let at = start; at < end; at += 1) if (bytes[at] === dash) return true;
  return false;
}

/** The handles of nobody have `IANA` or `NOT-` in them; these begin so, or have it behind a dash. */
function mayMeanNobody(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at + 2 < end; at += 1) {
    if (at > start && bytes[at - 1] !== dash) continue;
    if (bytes[at] === 0x49 && bytes[at + 1] === 0x41 && bytes[at + 2] === 0x4e) return true;
    if (bytes[at] === 0x4e && bytes[at + 1] === 0x4f && bytes[at + 2] === 0x54) return true;
  }
  return false;
}

/** The next letter by itself behind a point or slash and at most one space, or −1. */
function nextInitial(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end || (bytes[at] !== dot && bytes[at] !== slash)) return -1;
  const next = at + 1 < end && bytes[at + 1] === space ? at + 2 : at + 1;
  if (next >= end || ((flags[bytes[next] as number] as number) & letter) === 0) return -1;
  const isAlone = next + 1 === end || ((flags[bytes[next + 1] as number] as number) & alphanumeric) === 0;
  return isAlone ? next : -1;
}

/** `Example, C.A.`, which is no pair of initials. */
function endsAsForm(bytes: Uint8Array, start: number, end: number): boolean {
  let at = bytes[end - 1] === dot ? end - 2 : end - 1;
  if (at < start || ((bytes[at] as number) | 0x20) !== 0x61) return false;
  if (bytes[at - 1] === space) at -= 1;
  return at - 2 >= start && bytes[at - 1] === dot && ((bytes[at - 2] as number) | 0x20) === 0x63;
}

function isText(bytes: Uint8Array, start: number, end: number, letters: Uint8Array): boolean {
  if (end - start !== letters.length) return false;
  for (let at = start; at < end; at += 1) if (bytes[at] !== letters[at - start]) return false;
  return true;
}

function isNumber(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1)
    if (((flags[bytes[at] as number] as number) & digit) === 0) return false;
  return true;
}

/**
 * Splits text into words and reduces them to terms. The crawler's simhash, the search engines' documents, queries and the marks
 * in snippets all use these functions, so that a query finds exactly the words that were indexed.
 *
 * A word is a run of letters, digits and their marks. Everything else separates words, so `@crawler.site.example` is three words
 * in a row, and `l'été` is two. Scripts that put no blanks between words yield overlapping pairs of characters, and the last
 * character of a run alone (`日本語` → 日本 本語 語), because a character at the end of a run would otherwise begin no term.
 */
import type { Stemming } from "./stemming.ts";

export { type Stemming, stemmingOf, textSearchConfigOf } from "./stemming.ts";

interface Word {
  /** Lower case, composed (Unicode NFC), and at most `maxWordCharacters` long. */
  readonly word: string;
  /** The word in the text as given: from here to before `to`. */
  readonly from: number;
  readonly to: number;
}

interface Term {
  readonly term: string;
  readonly from: number;
  readonly to: number;
}

export const maxWordCharacters = 100;

export function* wordsIn(text: string): Iterable<Word> {
  for (let from = 0; from < text.length; ) {
    const kind = kindAt(text, from);
    let to = letterEnd(text, from);
    let next = to;
    if (kind === blankless) {
      if (kindAt(text, to) === blankless) to = letterEnd(text, to);
    } else if (kind === letter) {
      while (kindAt(text, to) === letter) to = letterEnd(text, to);
      next = to;
    }
    if (kind >= letter) yield { word: lowerWord(text, from, to), from, to };
    from = next;
  }
}

/** Stop words are terms, too, so that phrases can be found. */
export function* termsIn(text: string, stemming: Stemming): Iterable<Term> {
  for (const { word, from, to } of wordsIn(text)) yield { term: stemming.stemOf(word), from, to };
}

export function termText(text: string, stemming: Stemming): string {
  let terms = "";
  for (const { term } of termsIn(text, stemming)) terms += terms === "" ? term : ` ${term}`;
  return terms;
}

/**
 * Returns the terms in the order in which they follow one another in documents that contain the text. The last character of a
 * query may be followed by others in a document, so it is not searched for alone if a pair contains it.
 */
export function queryTerms(text: string, stemming: Stemming): string[] {
  const terms = [...termsIn(text, stemming)];
  if (terms.length > 1 && terms.at(-2)!.to === terms.at(-1)!.to) terms.pop();
  return terms.map(({ term }) => term);
}

/**
 * Composing may shorten a word, and ordering its marks takes quadratic time, so a longer one is cut before and after that.
 * ASCII, and pairs of Han or Kana without marks, which are in no longer word, are composed already.
 */
function lowerWord(text: string, from: number, to: number): string {
  const written = text.slice(from, Math.min(to, from + 4 * maxWordCharacters));
  if (!/[\u0080-\uffff]/.test(written)) return written.slice(0, maxWordCharacters).toLowerCase();
  if (/^[\u3041-\u3096\u3400-\u9fff]+$/.test(written)) return written;
  const composed = written.replace(/[\xad\u200c\u200d]/g, "").normalize("NFC");
  const lower = composed.replaceAll("İ", "i").toLowerCase().slice(0, maxWordCharacters);
  return /[\ud800-\udbff]$/.test(lower) ? lower.slice(0, -1) : lower;
}

const [unknown, other, mark, letter, blankless] = [0, 1, 2, 3, 4];

const letters = /[\p{L}\p{N}]/u;

/** Also what words contain without showing it: soft hyphens, and the joiners of Persian and of the scripts of India. */
const marks = /[\p{M}\xad\u200c\u200d]/u;

const blanklessScripts =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;

/** Whether the term is one character of a script whose words are pairs: a query looks for pairs that begin with it. */
export const isOneOfPair = (term: string): boolean =>
  blanklessScripts.test(term) && letterEnd(term, 0) === term.length;

/** By code point, filled as characters occur. */
const kinds = new Uint8Array(0x110000);

function kindAt(text: string, at: number): number {
  const code = text.codePointAt(at);
  if (code === undefined) return other;
  if (kinds[code] === unknown) kinds[code] = kindOf(String.fromCodePoint(code));
  return kinds[code]!;
}

function kindOf(character: string): number {
  if (letters.test(character)) return blanklessScripts.test(character) ? blankless : letter;
  return marks.test(character) ? mark : other;
}

/** The end of the character at `from` with its marks. */
function letterEnd(text: string, from: number): number {
  let to = from;
  do to += text.codePointAt(to)! > 0xffff ? 2 : 1;
  while (kindAt(text, to) === mark);
  return to;
}

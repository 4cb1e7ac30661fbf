/**
 * Shows people where a page's text changed, with some words around each place. Computed when a result replaces a
 * page, from what the index stores: description, headings, excerpt and the remaining terms in order. Time and size
 * are limited (decision 0042).
 */
import { diffArrays } from "diff";
import type { ReadOf } from "../../web/api-operation.ts";
import { type textDifference as differenceSchema, textParts } from "./changes-api.ts";

type TextPart = (typeof textParts)[number];

export type TextDifference = ReadOf<typeof differenceSchema>;

/** A changed place and the words that are around it now. */
export type TextPlace = TextDifference["places"][number];

export interface IndexedText {
  readonly description: string;
  readonly headings: readonly string[];
  /** The first words of the text; empty if the site forbids excerpts. */
  readonly excerpt: string;
  /** The lexemes as a `tsvector` in text form; null if too long to compare. */
  readonly lexemes: string | null;
  readonly textSearchConfig: string;
}

const mostPlaces = 12;

/** Maximum characters in all places together. */
const mostCharacters = 2400;

/** Maximum insertions and removals per part, because comparing takes quadratic time. */
const mostEdits = 60;

const wordsAround = 6;
const aroundCharacters = 80;
const changedCharacters = 200;

/** Changes with at most this many words between them form one place. */
const joinedOver = 2;

/** Maximum length of an excerpt in the protocol; its last word is cut off there. */
const fullExcerpt = 600;

/** A shorter excerpt is the whole text, or all that may be shown, so no terms follow it. */
const leastFurther = 540;

const mostTerms = 5000;
const mostLexemeCharacters = 200_000;

/** Returns null if what may be shown is equal or empty. */
export function textDifference(before: IndexedText, after: IndexedText): TextDifference | null {
  if (before.excerpt === "" || after.excerpt === "") return null;
  const found = [
    ...shortPlaces("description", before.description, after.description),
    ...shortPlaces("headings", before.headings.join(" · "), after.headings.join(" · ")),
    ...beginningPlaces(before, after),
    ...furtherPlaces(before, after),
  ];
  return found.length === 0 ? null : bounded(found);
}

function bounded(found: readonly TextPlace[]): TextDifference {
  const places: TextPlace[] = [];
  let characters = 0;
  for (const place of found.slice(0, mostPlaces)) {
    characters += place.before.length + place.removed.length + place.added.length + place.after.length;
    if (characters > mostCharacters) break;
    places.push(place);
  }
  return { places, more: found.length - places.length };
}

// Splits texts into words at blanks. In scripts without blanks each character is a word. A word includes the blank
// before it, so that joining the words gives the text again.

const unspaced = "\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Thai}\\p{sc=Laoo}\\p{sc=Khmr}\\p{sc=Mymr}";
const wordForm = new RegExp(` ?(?:[${unspaced}]\\p{M}*|[^\\s${unspaced}]+)`, "gu");

/** The approximate Unicode blocks of scripts without blanks. Texts without such characters are split faster. */
const mayBeUnspaced = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\ud840-\ud8ff]/;

function wordsOf(text: string): readonly string[] {
  const words = text.trim().split(/\s+/);
  if (mayBeUnspaced.test(text)) return ` ${words.join(" ")}`.match(wordForm) ?? [];
  return words.flatMap((word) => (word === "" ? [] : [` ${word}`]));
}

function shortPlaces(part: TextPart, before: string, after: string): TextPlace[] {
  return before === after ? [] : placesIn(part, wordsOf(before), wordsOf(after));
}

function beginningPlaces(before: IndexedText, after: IndexedText): TextPlace[] {
  if (before.excerpt === after.excerpt) return [];
  const [old, now] = [excerptWords(before), excerptWords(after)];
  const isCut = before.excerpt.length >= fullExcerpt || after.excerpt.length >= fullExcerpt;
  return placesIn("beginning", old, now, ({ removed, added }) => {
    // Ignores differences at the end of a cut excerpt: insertions push words out of it, and removals pull more in.
    const isEnd = added.from > 0 && removed.to === old.length && added.to === now.length;
    return !(isCut && isEnd && (isEmpty(removed) || isEmpty(added)));
  });
}

function excerptWords({ excerpt }: IndexedText): readonly string[] {
  const words = wordsOf(excerpt);
  return excerpt.length >= fullExcerpt ? words.slice(0, -1) : words;
}

/** Compares the terms of the running text after the excerpt, because nothing else of it is stored. */
function furtherPlaces(before: IndexedText, after: IndexedText): TextPlace[] {
  if (before.textSearchConfig !== after.textSearchConfig) return [];
  if (before.excerpt.length < leastFurther || after.excerpt.length < leastFurther) return [];
  const [old, now] = [termsOf(before), termsOf(after)];
  if (old === null || now === null) return [];
  return placesIn("further-down", old.terms, now.terms, ({ removed, added }) => {
    return removed.to > old.beginning && added.to > now.beginning;
  });
}

interface Terms {
  readonly terms: readonly string[];
  /** How many of the first terms are in the excerpt. */
  readonly beginning: number;
}

/** Returns the terms of the running text. They have no weight, unlike those of headings, title and description. */
function termsOf({ lexemes, excerpt }: IndexedText): Terms | null {
  if (lexemes === null || lexemes.length > mostLexemeCharacters) return null;
  const running: string[] = [];
  const isOther: boolean[] = [];
  readLexemes(lexemes, (lexeme, place, hasWeight) => {
    if (place > mostTerms) return;
    if (hasWeight) isOther[place] = true;
    else running[place] ??= ` ${lexeme}`;
  });
  return inOrder(running, isOther, wordsOf(excerpt).length);
}

/** Parses a Postgres tsvector. Calls back for each lexeme at each position; weights are A, B or C. */
export function readLexemes(
  lexemes: string,
  tell: (lexeme: string, place: number, hasWeight: boolean) => void,
): void {
  for (let at = lexemes.indexOf("'"); at >= 0; ) {
    const end = quoteEnd(lexemes, at + 1);
    if (end < 0) break;
    const lexeme = unquoted(lexemes.slice(at + 1, end));
    at = readPositions(lexemes, end + 2, (place, hasWeight) => tell(lexeme, place, hasWeight));
    at = lexemes.indexOf("'", at);
  }
}

/** Finds the closing quote. Quotes and backslashes in a lexeme are doubled. */
function quoteEnd(lexemes: string, from: number): number {
  for (let at = from; ; at += 2) {
    at = lexemes.indexOf("'", at);
    if (at < 0 || lexemes.charCodeAt(at + 1) !== quote) return at;
  }
}

/**
 * Parses `1,7A,20` and returns where it ends. Reads single characters for speed, because a changed page has hundreds
 * of positions.
 */
function readPositions(
  lexemes: string,
  from: number,
  tell: (place: number, hasWeight: boolean) => void,
): number {
  let place = 0;
  let hasWeight = false;
  for (let at = from; ; at++) {
    const code = lexemes.charCodeAt(at);
    if (code >= digitZero && code < digitZero + 10) place = 10 * place + code - digitZero;
    else if (code >= letterA && code < letterA + 3) hasWeight = true;
    else if (code !== letterA + 3) {
      if (place > 0) tell(place, hasWeight);
      if (code !== comma) return at;
      place = 0;
      hasWeight = false;
    }
  }
}

const [quote, comma, digitZero, letterA] = [0x27, 0x2c, 0x30, 0x41];

const unquoted = (text: string) => (/['\\]/.test(text) ? text.replace(/''|\\\\/g, (pair) => pair[0]!) : text);

/** Returns the terms by position. Words that are not indexed take up positions, too. */
function inOrder(running: readonly string[], isOther: readonly boolean[], excerptWords: number): Terms {
  const terms: string[] = [];
  let beginning = 0;
  let words = 0;
  for (let at = 1; at < running.length; at++) {
    if (isOther[at]) continue;
    words += 1;
    const term = running[at];
    if (term === undefined) continue;
    terms.push(term);
    if (words <= excerptWords) beginning = terms.length;
  }
  return { terms, beginning };
}

interface Run {
  readonly from: number;
  readonly to: number;
}

interface Hunk {
  readonly removed: Run;
  readonly added: Run;
}

const isEmpty = ({ from, to }: Run) => from === to;

function placesIn(
  part: TextPart,
  old: readonly string[],
  now: readonly string[],
  isWanted: (hunk: Hunk) => boolean = () => true,
): TextPlace[] {
  return joined(hunksOf(old, now))
    .filter(isWanted)
    .map(({ removed, added }) => ({
      part,
      before: cutFront(textOf(now.slice(Math.max(0, added.from - wordsAround), added.from))),
      removed: cutEnd(textOf(old.slice(removed.from, removed.to)), changedCharacters),
      added: cutEnd(textOf(now.slice(added.from, added.to)), changedCharacters),
      after: cutEnd(textOf(now.slice(added.to, added.to + wordsAround)), aroundCharacters),
    }));
}

/** Trims what is equal at both ends before comparing. If there are too many edits, returns a single hunk. */
function hunksOf(old: readonly string[], now: readonly string[]): Hunk[] {
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < most - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const removed = { from: start, to: old.length - end };
  const added = { from: start, to: now.length - end };
  if (isEmpty(removed) && isEmpty(added)) return [];
  if (isEmpty(removed) || isEmpty(added)) return [{ removed, added }];
  const middle = [old.slice(removed.from, removed.to), now.slice(added.from, added.to)] as const;
  const parts = diffArrays([...middle[0]], [...middle[1]], { maxEditLength: mostEdits });
  if (parts === undefined) return [{ removed, added }];
  let [oldAt, nowAt] = [start, start];
  return parts.flatMap(({ added: isAdded, removed: isRemoved, count }) => {
    const hunk = {
      removed: { from: oldAt, to: isAdded ? oldAt : oldAt + count },
      added: { from: nowAt, to: isRemoved ? nowAt : nowAt + count },
    };
    oldAt = hunk.removed.to;
    nowAt = hunk.added.to;
    return isAdded || isRemoved ? [hunk] : [];
  });
}

function joined(hunks: readonly Hunk[]): Hunk[] {
  const all: Hunk[] = [];
  for (const hunk of hunks) {
    const last = all.at(-1);
    if (last === undefined || hunk.added.from - last.added.to > joinedOver) all.push(hunk);
    else
      all[all.length - 1] = {
        removed: { from: last.removed.from, to: hunk.removed.to },
        added: { from: last.added.from, to: hunk.added.to },
      };
  }
  return all;
}

const textOf = (words: readonly string[]) => words.join("").trim();

function cutEnd(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function cutFront(text: string): string {
  return text.length <= aroundCharacters
    ? text
    : `…${text.slice(1 - aroundCharacters).replace(/^[\udc00-\udfff]/, "")}`;
}

export const partWords: Readonly<Record<TextPart, string>> = {
  description: "Description",
  headings: "Headings",
  beginning: "Start of the text",
  "further-down": "Further down, by index terms",
};

/** Formats the difference as one line in wdiff's notation: `… costs [-20-] {+25+} euro …`. */
export function differenceText({ places, more }: TextDifference): string {
  const texts = places.map(({ before, removed, added, after }) =>
    [before, removed && `[-${removed}-]`, added && `{+${added}+}`, after]
      .filter((one) => one !== "")
      .join(" "),
  );
  return [...texts, ...(more === 0 ? [] : [`and ${more} more`])].join(" … ");
}

/** Formats the difference compactly, because it is stored with each change. */
export function keptDifference({ places, more }: TextDifference): string {
  const rows = places.map(({ part, before, removed, added, after }) => [
    textParts.indexOf(part),
    ...[before, removed, added, after],
  ]);
  return JSON.stringify([more, ...rows]);
}

export function readDifference(kept: string): TextDifference {
  const [more, ...rows] = JSON.parse(kept) as [number, ...[number, string, string, string, string][]];
  return {
    places: rows.map(([part, before, removed, added, after]) => ({
      ...{ part: textParts[part]!, before, removed, added, after },
    })),
    more,
  };
}

/**
 * Shows people where a page's text changed, with some words around each place. Computed when a result replaces a page, from what
 * may be shown of it: description, headings and text. Time and size are limited (decision 0042).
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
  /** The main text that may be quoted. */
  readonly text: string;
  /** How much of the text may be shown; null: no limit. */
  readonly snippetCharacters: number | null;
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

/** What lies further down in a text is not compared. */
export const mostTextCharacters = 200_000;
const mostWords = 5000;

/** Returns null if what may be shown is equal or empty. */
export function textDifference(before: IndexedText, after: IndexedText): TextDifference | null {
  const [old, now] = [shownWords(before), shownWords(after)];
  if (old.words.length === 0 || now.words.length === 0) return null;
  const found = [
    ...shortPlaces("description", before.description, after.description),
    ...shortPlaces("headings", before.headings.join(" · "), after.headings.join(" · ")),
    ...placesIn("text", old.words, now.words, ({ removed, added }) => {
      // Insertions push words out at the end of a text that is cut, and removals pull more in.
      const isEnd = added.from > 0 && removed.to === old.words.length && added.to === now.words.length;
      return !((old.isCut || now.isCut) && isEnd && (isEmpty(removed) || isEmpty(added)));
    }),
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

/** Without the word that is cut at the end of what may be shown. */
function shownWords({ text, snippetCharacters }: IndexedText) {
  const most = Math.min(mostTextCharacters, snippetCharacters ?? Infinity);
  const words = wordsOf(text.slice(0, most));
  const whole = text.length >= most ? words.slice(0, -1) : words;
  return { words: whole.slice(0, mostWords), isCut: text.length >= most || whole.length > mostWords };
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
  text: "Text",
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
      // Earlier versions told the beginning of a text and what is further down apart.
      ...{ part: textParts[Math.min(part, 2)]!, before, removed, added, after },
    })),
    more,
  };
}

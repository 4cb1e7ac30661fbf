/**
 * The part of a page that is shown for a search: where most of its words stand together, cut between words, with the
 * words marked. A page may limit how much of it is quoted (`max-snippet`, `nosnippet`), in any form.
 */
import { isOneOfPair, type Stemming, termsIn } from "#core/words/words";
import type { TermArm } from "./engine/search-engine.ts";
import type { SnippetPart } from "./search-answer.ts";

/** About two lines. */
const shownLength = 240;

/** Characters before the first marked word. */
const leadLength = 60;

/** A page of results reads up to a hundred texts, and few words stand only behind this many characters. */
const longestRead = 50_000;

export interface Quotable {
  readonly text: string;
  readonly description: string;
  /** Null: any number. */
  readonly snippetCharacters: number | null;
}

interface Match {
  readonly term: string;
  readonly from: number;
  readonly to: number;
}

/** `arm`: the one that the page matches. The description stands in for a text without any of the words. */
export function snippetOf(page: Quotable, arm: Pick<TermArm, "all">, stemming: Stemming): SnippetPart[] {
  const most = Math.min(shownLength, page.snippetCharacters ?? shownLength);
  const isWanted = markerOf(arm, stemming);
  const read = (text: string) => ({ text, matches: matchesIn(text, isWanted, stemming) });
  const inText = read(oneLine(page.text));
  const inDescription = inText.matches.length > 0 ? null : read(oneLine(page.description));
  const usesText = inDescription === null || inDescription.text === "";
  return cut(usesText ? inText : inDescription, most);
}

/** As long as the text, so that places in it stay the same. */
const oneLine = (text: string) => text.replace(/\s/g, " ");

type Marker = (term: string) => string | null;

/**
 * Returns what of a term is marked: of a pair possibly its first character (search-engine.ts). Common words of a phrase
 * are not, since they stand everywhere.
 */
function markerOf({ all }: Pick<TermArm, "all">, stemming: Stemming): Marker {
  const wanted = new Set(all.flat(2));
  const rare = [...wanted].filter((term) => !stemming.isStopWord(term));
  const marked = rare.length > 0 ? new Set(rare) : wanted;
  const single = [...marked].filter(isOneOfPair);
  return (term) =>
    marked.has(term) ? term : (single.find((character) => term.startsWith(character)) ?? null);
}

function matchesIn(text: string, marker: Marker, stemming: Stemming): Match[] {
  const matches: Match[] = [];
  for (const { term, from, to } of termsIn(text.slice(0, longestRead), stemming)) {
    const marked = marker(term);
    if (marked !== null)
      matches.push({ term: marked, from, to: marked === term ? to : from + marked.length });
  }
  return matches;
}

function cut(
  { text, matches }: { readonly text: string; readonly matches: readonly Match[] },
  most: number,
): SnippetPart[] {
  if (most <= 0) return [];
  if (text.length <= most) return partsOf(text, matches, { from: 0, to: text.length });
  const { first, length } = densest(matches, most);
  const lead = Math.min(leadLength, most - length);
  const from = first <= lead ? 0 : startOfWord(text, Math.min(first - lead, text.length - most), first);
  const to = from + most >= text.length ? text.length : endOfWord(text, from + most, first + length);
  return [
    ...(from > 0 ? [{ text: "… ", matches: false }] : []),
    ...partsOf(text, matches, { from, to }),
    ...(to < text.length ? [{ text: " …", matches: false }] : []),
  ];
}

/** The first place where the most different words are within `most` characters. */
function densest(matches: readonly Match[], most: number): { first: number; length: number } {
  let best = { first: 0, length: 0, words: 0 };
  for (const [at, { from }] of matches.entries()) {
    const words = new Set<string>();
    let length = 0;
    for (let next = at; next < matches.length && matches[next]!.to - from <= most; next++) {
      if (!words.has(matches[next]!.term)) length = matches[next]!.to - from;
      words.add(matches[next]!.term);
    }
    if (words.size > best.words) best = { first: from, length, words: words.size };
  }
  return best;
}

/** Neighbouring matches that overlap, as in scripts without blanks, are one part. */
function partsOf(
  text: string,
  matches: readonly Match[],
  { from, to }: { readonly from: number; readonly to: number },
): SnippetPart[] {
  const parts: SnippetPart[] = [];
  let at = from;
  const add = (end: number, isMatch: boolean) => {
    if (end <= at) return;
    const last = parts.at(-1);
    const piece = text.slice(at, end);
    if (last?.matches === isMatch) parts[parts.length - 1] = { text: last.text + piece, matches: isMatch };
    else parts.push({ text: piece, matches: isMatch });
    at = end;
  };
  for (const match of matches) {
    if (match.to <= at || match.from >= to) continue;
    add(match.from, false);
    add(Math.min(to, match.to), true);
  }
  add(to, false);
  return parts;
}

/** Where no blank is so near, the text is cut anywhere: a script without blanks, or an endless word. */
const longestWord = 30;

function startOfWord(text: string, near: number, match: number): number {
  const start = text.indexOf(" ", near - 1) + 1;
  if (start > 0 && start <= Math.min(near + longestWord, match)) return start;
  return isInPair(text, near) ? near + 1 : near;
}

function endOfWord(text: string, near: number, matchEnd: number): number {
  const end = text.lastIndexOf(" ", near);
  if (end >= Math.max(near - longestWord, matchEnd)) return end;
  return isInPair(text, near) ? near - 1 : near;
}

/** A character beyond U+FFFF is two units long. */
const isInPair = (text: string, at: number) => /[\udc00-\udfff]/.test(text.charAt(at));

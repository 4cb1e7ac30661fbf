/**
 * The stretch of a page's text that is shown for a search: around the first word that matches, cut between
 * words. Matches come marked by control characters that the text itself cannot hold, so that no markup is
 * made until a page is.
 */
import type { SnippetPart } from "./reads.ts";

export const startMark = "\u0002";
export const stopMark = "\u0003";

/** Characters shown, about two lines. */
const shownLength = 240;
/** Characters before the first match. */
const leadLength = 60;

export function snippetOf(marked: string): SnippetPart[] {
  const parts = partsOf(marked);
  const text = parts.map((part) => part.text).join("");
  if (text.length <= shownLength) return parts;
  const firstMatch = parts.findIndex((part) => part.matches);
  const before = parts.slice(0, Math.max(0, firstMatch)).reduce((sum, part) => sum + part.text.length, 0);
  const from =
    before <= leadLength ? 0 : startOfWord(text, Math.min(before - leadLength, text.length - shownLength));
  const to = from + shownLength >= text.length ? text.length : endOfWord(text, from + shownLength);
  return [
    ...(from > 0 ? [{ text: "… ", matches: false }] : []),
    ...cut(parts, from, to),
    ...(to < text.length ? [{ text: " …", matches: false }] : []),
  ];
}

function partsOf(marked: string): SnippetPart[] {
  return marked.split(startMark).flatMap((piece, index) => {
    if (index === 0) return piece === "" ? [] : [{ text: piece, matches: false }];
    const [hit = "", rest = ""] = piece.split(stopMark);
    const match = { text: hit, matches: true };
    return rest === "" ? [match] : [match, { text: rest, matches: false }];
  });
}

function startOfWord(text: string, near: number): number {
  const space = text.lastIndexOf(" ", near);
  return space < near - 30 ? near : space + 1;
}

function endOfWord(text: string, near: number): number {
  const space = text.lastIndexOf(" ", near);
  return space < near - 30 ? near : space;
}

function cut(parts: readonly SnippetPart[], from: number, to: number): SnippetPart[] {
  let at = 0;
  return parts.flatMap(({ text, matches }) => {
    const kept = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    at += text.length;
    return kept === "" ? [] : [{ text: kept, matches }];
  });
}

/** What is remembered of a page to know it again under another URL. */

import { bitCount, type PageExtract } from "#protocol/result";

export interface PagePrint {
  /** The beginning of the body's digest. */
  readonly digest: string;
  readonly simhashHigh: number;
  readonly simhashLow: number;
  readonly words: number;
  /** Hash of a short page's words without numbers and without its own address; null: no short page. */
  readonly gist: number | null;
}

/** A simhash of fewer words says little. */
const leastWords = 20;
/** Bits that near-duplicates may differ in (Manku and others, WWW 2007, section 3). */
const duplicateBits = 3;
/** And pages of one pattern, of which several must be as near: a few words in 200 change so many. */
const alikeBits = 5;
/** The text of shorter pages is in their excerpt. */
const shortWords = 60;

export function pagePrint(page: PageExtract, url: string): PagePrint {
  return {
    digest: page.digest.slice(0, 20),
    simhashHigh: Number.parseInt(page.simhash.slice(0, 8), 16) | 0,
    simhashLow: Number.parseInt(page.simhash.slice(8), 16) | 0,
    words: page.words,
    gist: page.words >= shortWords || page.robots.noindex ? null : hash(gistOf(page, url)),
  };
}

/** The same body, or nearly the same text. */
export function isNearDuplicate(one: PagePrint, other: PagePrint): boolean {
  return one.digest === other.digest || isNear(one, other, duplicateBits);
}

/** Nearly a near-duplicate, or a short page that differs in numbers alone: another month of the same calendar. */
export function looksAlike(one: PagePrint, other: PagePrint): boolean {
  if (one.gist !== null && one.gist === other.gist) return true;
  return one.digest === other.digest || isNear(one, other, alikeBits);
}

function isNear(one: PagePrint, other: PagePrint, bits: number): boolean {
  if (Math.min(one.words, other.words) < leastWords) return false;
  if (Math.abs(one.words - other.words) * 5 > Math.max(one.words, other.words)) return false;
  const high = bitCount(one.simhashHigh ^ other.simhashHigh);
  return high <= bits && high + bitCount(one.simhashLow ^ other.simhashLow) <= bits;
}

function gistOf(page: PageExtract, url: string): string {
  const { pathname } = new URL(url);
  const name = pathname.split("/").findLast((segment) => segment !== "") ?? "";
  const text = [page.title, ...page.headings.map((heading) => heading.text), page.excerpt].join("\n");
  const without = text.replaceAll(pathname, " ");
  return (name.length < 4 ? without : without.replaceAll(name, " ")).toLowerCase().replace(/[\d\s]+/g, " ");
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum;
}

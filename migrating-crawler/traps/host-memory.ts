/**
 * Remembers a limited number of a host's pages, to recognise duplicates under other URLs and URL patterns that lead only to
 * them.
 *
 * A pattern becomes a trap when nearly all of several pages resembled earlier ones. Its links are then no longer sent. Pages
 * of the pattern that still arrive are counted, so that a pattern with pages of its own stops being a trap.
 */
import { bitCount, type PageExtract } from "#protocol/result";

/** If there are more, the oldest entries are dropped. */
const maxPages = 256;

const maxPatterns = 128;
const maxQueriedPaths = 16;

/** A shape covers few URLs. Dropping a whole folder requires more evidence. */
const shapeTrap = { leastAlike: 5, share: 0.8 };

const folderTrap = { leastAlike: 10, share: 0.9 };

/** Counts are halved after this many pages, so that the links of a changed site are followed again. */
const longPast = 50;

/** Queries with three or more parameters are filter combinations if many sets of names occur. */
const combinedQuery = /\?[^&]*&[^&]*&/;

const manyNameSets = 40;

/** Freely combined filters result in many more sets than names. A site's own pages use few sets. */
const nameSetsPerName = 2.5;

/** At most this many combinations of one path are sent. */
const maxCombinations = 300;

interface Pattern {
  readonly trap: { readonly leastAlike: number; readonly share: number };
  pages: number;
  alike: number;
}

interface QueriedPath {
  readonly names: Set<string>;
  readonly nameSets: Set<string>;
  readonly queries: Set<string>;
}

interface Likeness {
  /** The URL of the first such page, if this one is a near-duplicate. */
  readonly duplicateOf: string | null;
  /** True if the page is a near-duplicate, or differs only in its numbers. */
  readonly isAlike: boolean;
}

export class HostMemory {
  /** The host's answer for a page that cannot exist. Null if it was a proper error or unusable. */
  missing: { readonly askedAtMs: number; readonly print: PagePrint | null } | null = null;
  readonly #pages = new Map<string, PagePrint>();
  readonly #patterns = new Map<string, Pattern>();
  readonly #queried = new Map<string, QueriedPath>();
  #urlCharacters = 0;
  #trapPatterns = 0;

  likeness(url: string, print: PagePrint): Likeness {
    let alike = false;
    for (const [other, known] of this.#pages) {
      if (other === url) continue;
      if (isNearDuplicate(print, known)) return { duplicateOf: other, isAlike: true };
      alike ||= looksAlike(print, known);
    }
    return { duplicateOf: null, isAlike: alike };
  }

  /** Remembers a page. A similar one does not replace it, so the first one remains the reference. */
  note(url: string, print: PagePrint, alike: boolean): void {
    if (this.#pages.delete(url)) this.#urlCharacters -= url.length;
    if (!alike) this.#keep(url, print);
    const { shape, folder } = urlShapes(url);
    this.#count(`s${shape}`, shapeTrap, alike);
    this.#count(`f${folder}`, folderTrap, alike);
  }

  /** Whether a link leads to more of what was seen often enough. Counts combined queries. */
  isTrap(url: string): boolean {
    return this.#isTrapPattern(url) || this.#isOneFilterMore(url);
  }

  /** The approximate memory use, for the limit over all hosts, based on what the engine uses for maps and strings. */
  get bytes(): number {
    let bytes = 500 + 200 * this.#pages.size + this.#urlCharacters + 400 * this.#patterns.size;
    for (const { names, nameSets, queries } of this.#queried.values()) {
      bytes += 500 + 100 * names.size + 150 * (nameSets.size + queries.size);
    }
    return bytes;
  }

  #keep(url: string, print: PagePrint): void {
    this.#pages.set(url, print);
    this.#urlCharacters += url.length;
    this.#urlCharacters -= forgetOldest(this.#pages, maxPages)?.[0].length ?? 0;
  }

  #count(key: string, trap: Pattern["trap"], alike: boolean): void {
    const pattern = this.#patterns.get(key) ?? { trap, pages: 0, alike: 0 };
    const was = isTrapPattern(pattern);
    if (pattern.pages >= longPast) {
      pattern.pages /= 2;
      pattern.alike /= 2;
    }
    pattern.pages++;
    if (alike) pattern.alike++;
    this.#trapPatterns += Number(isTrapPattern(pattern)) - Number(was);
    this.#patterns.delete(key);
    this.#patterns.set(key, pattern);
    const forgotten = forgetOldest(this.#patterns, maxPatterns);
    if (forgotten !== undefined && isTrapPattern(forgotten[1])) this.#trapPatterns--;
  }

  #isTrapPattern(url: string): boolean {
    if (this.#trapPatterns === 0) return false;
    const { shape, folder } = urlShapes(url);
    return [`s${shape}`, `f${folder}`].some((key) => {
      const pattern = this.#patterns.get(key);
      return pattern !== undefined && isTrapPattern(pattern);
    });
  }

  #isOneFilterMore(url: string): boolean {
    if (!combinedQuery.test(url)) return false;
    const { segments, parameters, query } = urlParts(url);
    const known = this.#queriedPath(segments.join("/").slice(0, 200));
    const combination = query.slice(0, 100);
    if (known.queries.has(combination)) return false;
    if (hasFreeFilters(known) && known.queries.size >= maxCombinations) return true;
    const names = [...new Set(parameters.map(({ name }) => name.slice(0, 30)))].sort();
    if (known.nameSets.size < manyNameSets) known.nameSets.add(names.join("&").slice(0, 100));
    for (const name of names) if (known.names.size < manyNameSets) known.names.add(name);
    if (known.queries.size < maxCombinations) known.queries.add(combination);
    return false;
  }

  #queriedPath(path: string): QueriedPath {
    const known = this.#queried.get(path) ?? { names: new Set(), nameSets: new Set(), queries: new Set() };
    this.#queried.delete(path);
    this.#queried.set(path, known);
    forgetOldest(this.#queried, maxQueriedPaths);
    return known;
  }
}

function hasFreeFilters({ names, nameSets }: QueriedPath): boolean {
  return nameSets.size >= manyNameSets && nameSets.size >= nameSetsPerName * names.size;
}

function isTrapPattern({ trap, pages, alike }: Pattern): boolean {
  return alike >= trap.leastAlike && alike >= trap.share * pages;
}

/** Works because maps keep insertion order. */
function forgetOldest<Value>(map: Map<string, Value>, most: number): [string, Value] | undefined {
  if (map.size <= most) return undefined;
  const oldest = map.entries().next().value!;
  map.delete(oldest[0]);
  return oldest;
}

// Derives what a URL has in common with others made by the same rule.

interface UrlShapes {
  /** The URL with numbers and tokens masked, without the query's values. */
  readonly shape: string;
  /** The same with the last segment masked, which stands for the pages of a folder. */
  readonly folder: string;
}

/** Mixed letters and digits, as in hashes and random names. */
const token = /^(?=.*\d)(?=.*[a-z])[a-z0-9_-]{8,}$/i;

function urlShapes(url: string): UrlShapes {
  const { segments, parameters } = urlParts(url);
  const masked = segments.map(mask);
  const names = parameters.map(({ name }) => mask(name)).sort();
  const query = names.length === 0 ? "" : `?${[...new Set(names)].join("&")}`;
  const folder = masked.slice(0, -1).concat("*").join("/");
  return { shape: (masked.join("/") + query).slice(0, 300), folder: (folder + query).slice(0, 300) };
}

const mask = (segment: string): string => (token.test(segment) ? "*" : segment.replace(/\d+/g, "#"));

// The fingerprint of a page, to recognise it under another URL.

interface PagePrint {
  /** A prefix of the body's digest. */
  readonly digest: string;
  readonly simhashHigh: number;
  readonly simhashLow: number;
  readonly words: number;
  /** A hash of a short page's words, without numbers and its own address. Null for longer pages. */
  readonly gist: number | null;
}

/** A simhash of fewer words is unreliable. */
const leastWords = 20;

/** Near-duplicates differ in at most this many bits (Manku and others, WWW 2007, section 3). */
const duplicateBits = 3;

/** The looser limit for several pages of one pattern. A few changed words in 200 change this many bits. */
const alikeBits = 5;

/** Pages with fewer words are also compared word by word. */
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

function isNearDuplicate(one: PagePrint, other: PagePrint): boolean {
  return one.digest === other.digest || isNear(one, other, duplicateBits);
}

/** Also matches short pages that differ only in numbers, such as another month of a calendar. */
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
  const text = [page.title, ...page.headings.map((heading) => heading.text), page.text].join("\n");
  const without = text.replaceAll(pathname, " ");
  return (name.length < 4 ? without : without.replaceAll(name, " ")).toLowerCase().replace(/[\d\s]+/g, " ");
}

function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum;
}

/** Splits a canonical URL for the trap rules, more cheaply than by parsing it again for every link of every page. */

export interface UrlParts {
  readonly origin: string;
  /** The path segments, including the last one unless it is empty. */
  readonly segments: readonly string[];
  readonly query: string;
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
}

/** `url` is an http(s) URL as WHATWG URL serialises it, without a fragment. */
export function urlParts(url: string): UrlParts {
  const mark = url.indexOf("?");
  const beforeQuery = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? "" : url.slice(mark + 1);
  const pathAt = beforeQuery.indexOf("/", beforeQuery.indexOf("//") + 2);
  const path = pathAt < 0 ? "/" : beforeQuery.slice(pathAt);
  return {
    origin: pathAt < 0 ? beforeQuery : beforeQuery.slice(0, pathAt),
    segments: path.split("/").filter((segment) => segment !== ""),
    query,
    parameters: query === "" ? [] : query.split("&").map(parameter),
  };
}

function parameter(text: string): { name: string; value: string } {
  const at = text.indexOf("=");
  return at < 0 ? { name: text, value: "" } : { name: text.slice(0, at), value: text.slice(at + 1) };
}

/**
 * What the crawler remembers of one host's pages, bounded: enough to see that a page is one that it had
 * under another URL, and that a pattern of URLs only leads to such pages.
 *
 * A pattern is a trap after several of its pages were like ones before and nearly all were; from then on
 * links of that pattern are not shipped. Pages of it that still come in are counted, so that a pattern that
 * turns out to hold pages of its own is one no longer.
 */
import { bitCount, type PageExtract } from "#protocol/result";

/** The oldest are forgotten beyond these. */
const maxPages = 256;

const maxPatterns = 128;
const maxQueriedPaths = 16;

/** A shape is narrow; a whole folder needs more to be given up. */
const shapeTrap = { leastAlike: 5, share: 0.8 };

const folderTrap = { leastAlike: 10, share: 0.9 };

/** What was before so many pages counts half, so that a site that has changed is followed again. */
const longPast = 50;

/** Queries of three parameters and more are combinations of filters where there are many sets of names. */
const combinedQuery = /\?[^&]*&[^&]*&/;

const manyNameSets = 40;

/** Filters are combined freely, so that there are many more sets than names; a site's own pages know few. */
const nameSetsPerName = 2.5;

/** So many combinations of one path are shipped. */
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
  /** The page's first URL, when it is a near-duplicate. */
  readonly duplicateOf: string | null;
  /** It is a near-duplicate, or the same but for its numbers. */
  readonly isAlike: boolean;
}

export class HostMemory {
  /** What the host answers for a page that cannot exist; null: an honest error, or nothing that helps. */
  missing: { readonly askedAtMs: number; readonly print: PagePrint | null } | null = null;
  readonly #pages = new Map<string, PagePrint>();
  readonly #patterns = new Map<string, Pattern>();
  readonly #queried = new Map<string, QueriedPath>();
  #urlCharacters = 0;
  #trapPatterns = 0;

  /** Whether this page is one that was there before under another URL. */
  likeness(url: string, print: PagePrint): Likeness {
    let alike = false;
    for (const [other, known] of this.#pages) {
      if (other === url) continue;
      if (isNearDuplicate(print, known)) return { duplicateOf: other, isAlike: true };
      alike ||= looksAlike(print, known);
    }
    return { duplicateOf: null, isAlike: alike };
  }

  /** Keeps a page. One that is like another is not kept itself: that one stays the first. */
  note(url: string, print: PagePrint, alike: boolean): void {
    if (this.#pages.delete(url)) this.#urlCharacters -= url.length;
    if (!alike) this.#keep(url, print);
    const { shape, folder } = urlShapes(url);
    this.#count(`s${shape}`, shapeTrap, alike);
    this.#count(`f${folder}`, folderTrap, alike);
  }

  /** Whether a link to this host leads to more of what the crawler has seen enough of. Counts combined queries. */
  isTrap(url: string): boolean {
    return this.#isTrapPattern(url) || this.#isOneFilterMore(url);
  }

  /** About so many bytes, for the bound over all hosts; from what the engine takes for maps and strings. */
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

/** Maps keep the order of insertion. */
function forgetOldest<Value>(map: Map<string, Value>, most: number): [string, Value] | undefined {
  if (map.size <= most) return undefined;
  const oldest = map.entries().next().value!;
  map.delete(oldest[0]);
  return oldest;
}

// What a URL has in common with the others that a site makes by the same rule.

interface UrlShapes {
  /** Numbers and tokens masked, the query's values left out. */
  readonly shape: string;
  /** The same with the last segment masked altogether: the folder's pages. */
  readonly folder: string;
}

/** Letters and digits mixed, as in hashes and random names. */
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

// What is remembered of a page to know it again under another URL.

interface PagePrint {
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
function isNearDuplicate(one: PagePrint, other: PagePrint): boolean {
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

/** A canonical URL taken apart for the trap rules: cheaper than parsing it again, for every link of every page. */

export interface UrlParts {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Between the slashes, the last one included when it is not empty. */
  readonly segments: readonly string[];
  /** Without the question mark. */
  readonly query: string;
  /** The query's names and values, as written. */
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
}

/** `url`: as WHATWG URL serialises an http(s) URL without a fragment. */
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

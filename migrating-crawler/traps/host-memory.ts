/**
 * What the crawler remembers of one host's pages, bounded: enough to see that a page is one that it had
 * under another URL, and that a pattern of URLs only leads to such pages.
 *
 * A pattern is a trap after several of its pages were like ones before and nearly all were; from then on
 * links of that pattern are not shipped. Pages of it that still come in are counted, so that a pattern that
 * turns out to hold pages of its own is one no longer.
 */
import { isNearDuplicate, looksAlike, type PagePrint } from "./page-print.ts";
import { urlParts } from "./url-parts.ts";
import { urlShapes } from "./url-shapes.ts";

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

export interface Likeness {
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

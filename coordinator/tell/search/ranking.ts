import { composed } from "#protocol/composed";
import { answerTexts } from "../../crawl/batch/stated-uses.ts";
import { longestCorrected, shortestCorrected } from "./edit-distance.ts";
import { addressShare, type PageSignals, type Score, scoreOf, totalOf } from "./page-score.ts";
import { plainWords } from "./query.ts";
import {
  type Candidate,
  type Candidates,
  type Facets,
  type FacetValue,
  facetNames,
  type RankedCandidates,
  type SearchQuery,
  type SearchReads,
} from "./search-answer.ts";

/**
 * A page's standing, whatever is searched for: who links to it, whether it is its host's front page, whether its text
 * existed before. The index is searched in tiers by it (Manning, Raghavan and Schütze 2008, section 7.2.1): the best
 * pages first, the rest only where those yield too few.
 */

export interface Standing {
  /** Other hosts that link to the page. */
  readonly linkingHosts: number;
  readonly isFrontPage: boolean;
  readonly isLaterCopy: boolean;
}

/** 0 to `highestStanding`; each doubling of the linking hosts adds two. */
const highestStanding = 24;

const frontPageWorth = 3;

export function standingOf({ linkingHosts, isFrontPage, isLaterCopy }: Standing): number {
  if (isLaterCopy) return 0;
  const links = Math.round(2 * Math.log2(1 + linkingHosts));
  return Math.min(highestStanding, links + (isFrontPage ? frontPageWorth : 0));
}

/** The first tier holds at most this share of the pages, or this many where that is more. */
const firstTierShare = 0.04;

export const firstTierPages = 20_000;

/** The standing from which a page belongs to the first tier; `counts`: pages by standing. */
export function leastStandingOf(counts: ReadonlyMap<number, number>): number {
  let pages = 0;
  for (const count of counts.values()) pages += count;
  const room = Math.max(firstTierPages, firstTierShare * pages);
  let taken = 0;
  for (let standing = highestStanding; standing >= 0; standing--) {
    taken += counts.get(standing) ?? 0;
    if (taken > room) return standing + 1;
  }
  return 0;
}

// The words of a page for the dictionary: as written, in lower case, each once.

/** A page says what it is about in its first words; an endless list of names is cut. */
const wordsPerPage = 80;

export function pageWords(texts: readonly string[]): string[] {
  const words = new Set<string>();
  for (const text of texts) {
    for (const [word] of composed(text).matchAll(/[\p{L}\p{M}]+/gu)) {
      const length = [...word].length;
      if (length < shortestCorrected || length > longestCorrected) continue;
      words.add(word.toLowerCase());
      if (words.size === wordsPerPage) return [...words];
    }
  }
  return [...words];
}

// Orders the matching pages: all are scored by what is known without reading them, the best also by their texts. Of
// pages with nearly the same text one is kept, the first that had it where it matches.

/** Reading a text costs as much as looking up a hundred pages. */
const textsRead = 40;

const facetValues = 6;
const dayMs = 86_400_000;

export interface RankedPage {
  readonly candidate: Candidate;
  readonly signals: PageSignals;
  readonly score: Score;
  readonly points: number;
  readonly alike: number;
}

export interface Ranking extends Omit<Candidates, "pages"> {
  readonly pages: readonly RankedPage[];
  /** How many match; `pages` are the best of them. */
  readonly total: number;
  readonly facets: Facets;
}

export async function rankPages(
  reads: Pick<SearchReads, "candidates" | "texts" | "ranked">,
  query: SearchQuery,
  now: Date,
): Promise<Ranking> {
  const ranked = await reads.ranked?.(query, now);
  if (ranked) return rankingOf(ranked);
  const found = await reads.candidates(query);
  const pages = withoutCopies(found.pages.map((candidate) => unread(candidate, now)));
  const ordered =
    query.sort === "date" ? [...pages].sort(byDate) : await byText(reads, [...pages].sort(byPoints), query);
  return { ...found, pages: ordered, total: pages.length, facets: facetsOf(pages) };
}

function rankingOf(ranked: RankedCandidates): Ranking {
  const pages = ranked.pages.map((page) => ({ ...page, ...scored(page.signals) }));
  return { ...ranked, pages, more: false, cutShort: false };
}

/** When it was published or, if it does not say, fetched. */
export function dateOf({ publishedAt, fetchedAt }: Candidate): Date {
  return publishedAt ?? fetchedAt;
}

function unread(candidate: Candidate, now: Date): RankedPage {
  const signals = {
    textRank: candidate.textRank ?? 0,
    headRank: candidate.headRank,
    addressShare: candidate.addressShare ?? 0,
    linkingHosts: candidate.linkingHosts,
    ageDays: (now.getTime() - dateOf(candidate).getTime()) / dayMs,
    isLaterCopy: candidate.isLaterCopy,
  };
  return { candidate, alike: 0, ...scored(signals) };
}

function scored(signals: PageSignals) {
  const score = scoreOf(signals);
  return { signals, score, points: totalOf(score) };
}

async function byText(
  reads: Pick<SearchReads, "texts">,
  pages: readonly RankedPage[],
  { words }: SearchQuery,
): Promise<RankedPage[]> {
  const first = pages.slice(0, textsRead);
  const texts = await reads.texts(first.map(({ candidate }) => candidate));
  const plain = plainWords(words);
  const read = first.map((page, index) => {
    const text = texts[index] ?? null;
    if (text === null) return page;
    const signals = { ...page.signals, textRank: text.textRank, addressShare: addressShare(text.url, plain) };
    return { ...page, ...scored(signals) };
  });
  return [...read.sort(byPoints), ...pages.slice(textsRead)];
}

function withoutCopies(pages: readonly RankedPage[]): RankedPage[] {
  const groups = new Map<string, RankedPage>();
  for (const page of pages) {
    const { textGroup, hostHash, urlHash } = page.candidate;
    const group = textGroup ?? `${hostHash}/${urlHash}`;
    const other = groups.get(group);
    const better = other === undefined || standsFor(page, other) ? page : other;
    groups.set(group, { ...better, alike: other === undefined ? 0 : other.alike + 1 });
  }
  return [...groups.values()];
}

function standsFor(page: RankedPage, other: RankedPage): boolean {
  const [isCopy, otherIsCopy] = [page.candidate.isLaterCopy, other.candidate.isLaterCopy];
  return isCopy === otherIsCopy ? byPoints(page, other) < 0 : otherIsCopy;
}

function byPoints(a: RankedPage, b: RankedPage): number {
  return b.points - a.points || byKey(a, b);
}

function byDate(a: RankedPage, b: RankedPage): number {
  return dateOf(b.candidate).getTime() - dateOf(a.candidate).getTime() || byPoints(a, b);
}

/** Makes the order total, so that pages of results never overlap. */
function byKey({ candidate: a }: RankedPage, { candidate: b }: RankedPage): number {
  const [key, other] = [`${a.hostHash}/${a.urlHash}`, `${b.hostHash}/${b.urlHash}`];
  return key < other ? -1 : key > other ? 1 : 0;
}

export const noFacets: Facets = {
  ...{ language: [], country: [], crawler: [], host: [], preference: [], pages: 0 },
};

function facetsOf(pages: readonly RankedPage[]): Facets {
  const valuesOf = (name: (typeof facetNames)[number]): FacetValue[] => {
    const counts = new Map<string, number>();
    for (const { candidate } of pages) {
      for (const value of valuesIn(candidate, name)) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts]
      .map(([value, count]) => ({ value, pages: count }))
      .sort((a, b) => b.pages - a.pages || (a.value < b.value ? -1 : 1))
      .slice(0, facetValues);
  };
  const facets = Object.fromEntries(facetNames.map((name) => [name, valuesOf(name)] as const));
  return { ...noFacets, ...facets, pages: pages.length };
}

/** A page has one language, and may have statements for several uses. */
function valuesIn(candidate: Candidate, name: (typeof facetNames)[number]): readonly string[] {
  if (name === "preference") return answerTexts(candidate.uses);
  const value = candidate[name];
  return value === null ? [] : [value];
}

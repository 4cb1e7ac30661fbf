/**
 * Search over the index: turns what was typed into a bounded query, and what was found into an answer that may be
 * shown.
 */
import { startMark, stopMark } from "./headline.ts";
import { mostPoints, scoreParts } from "./page-score.ts";
import {
  depthOf,
  hasWordsCut,
  maxSearchOffset,
  maxSearchWords,
  readSearch,
  type SearchOptions,
  suggestWords,
} from "./query.ts";
import { dateOf, noFacets, type RankedPage, type Ranking, rankPages } from "./ranking.ts";
import type {
  FoundPage,
  Reason,
  SearchAnswer,
  SearchQuery,
  SearchReads,
  SnippetPart,
} from "./search-answer.ts";

/** With this many results no other spelling is offered. */
const plentyOfResults = 5;

/** Pages that contain the words: "quoted phrases", `or` and `-not` as people type them in search engines. */
export async function searchPages(
  reads: SearchReads,
  words: string,
  options: SearchOptions,
  now: Date,
): Promise<SearchAnswer> {
  const query = readSearch(words, options);
  const nothing = {
    words: query.words,
    ...query.filters,
    sort: query.sort,
    limit: query.limit,
    offset: query.offset,
    total: 0,
    more: false,
    pages: [],
    facets: noFacets,
    didYouMean: null,
    note: null,
  };
  if (!/[\p{L}\p{N}]/u.test(query.words)) {
    return { ...nothing, note: "Type one or more words to search for; filters alone find nothing." };
  }
  const ranking = await keptRanking(reads, query, now);
  if (!ranking.searchable) {
    return { ...nothing, note: "These words are too common, or only exclude: add one to look for." };
  }
  const { pages, gone } = await shownPages(reads, ranking, query, options.explain === true);
  return {
    ...nothing,
    total: ranking.total - gone,
    more: ranking.more,
    pages,
    facets: ranking.facets,
    didYouMean: await betterWords(reads, ranking, query, now),
    note: noteOf(words, ranking, { standIn: reads.standIn?.() ?? null, shownTo: query.offset + query.limit }),
  };
}

/** What readers should know about how this was found. */
function noteOf(
  words: string,
  { cutShort, unranked, total }: Ranking,
  { standIn, shownTo }: { readonly standIn: string | null; readonly shownTo: number },
): string | null {
  const notes = [
    standIn,
    hasWordsCut(words) ? `Only the first ${maxSearchWords} words were searched.` : null,
    cutShort
      ? "This took too long and was cut short: there may be better pages. Add a word, or take away a filter."
      : unranked === true
        ? "Only the best 150 were ranked. Add a word to narrow the search."
        : null,
    shownTo > maxSearchOffset && shownTo < total
      ? `Only the best ${shownTo} can be paged through. Add a word or a filter to see others.`
      : null,
  ].filter((note) => note !== null);
  return notes.length === 0 ? null : notes.join(" ");
}

/** All pages of results come from one ranking; most people never ask for the deep ones. */
async function keptRanking(reads: SearchReads, query: SearchQuery, now: Date): Promise<Ranking> {
  const { words, filters, sort } = query;
  return await reads.keep(JSON.stringify([words, filters, sort, depthOf(query)]), () =>
    rankPages(reads, query, now),
  );
}

/** A page that has gone or whose site has just opted out is neither shown nor counted. */
async function shownPages(
  reads: SearchReads,
  ranking: Ranking,
  { offset, limit }: SearchQuery,
  explain: boolean,
): Promise<{ pages: FoundPage[]; gone: number }> {
  const ranked = ranking.pages.slice(offset, offset + limit);
  const shown = await reads.shown(ranked.map(({ candidate }) => candidate));
  const pages = ranked.flatMap((page, index) => {
    const details = shown[index] ?? null;
    return details === null ? [] : [foundPage(page, details, explain)];
  });
  return { pages, gone: ranked.length - pages.length };
}

function foundPage(
  page: RankedPage,
  { url, title, words, headline }: NonNullable<Awaited<ReturnType<SearchReads["shown"]>>[number]>,
  explain: boolean,
): FoundPage {
  const { host, language, country, crawler, publishedAt, fetchedAt, uses } = page.candidate;
  return {
    url,
    host,
    title,
    language,
    country,
    publishedAt: publishedAt?.toISOString() ?? null,
    fetchedAt: fetchedAt.toISOString(),
    crawler,
    uses,
    words,
    alike: page.alike,
    rank: Math.round(10 * page.points) / 10,
    snippet: snippetOf(headline),
    reasons: explain ? reasonsOf(page) : null,
  };
}

/** Other words are offered only when they find more. */
async function betterWords(
  reads: SearchReads,
  ranking: Ranking,
  query: SearchQuery,
  now: Date,
): Promise<string | null> {
  if (ranking.cutShort || ranking.total >= plentyOfResults) return null;
  const words = await suggestWords(reads, query.words, query.filters.language);
  if (words === null) return null;
  const other = await keptRanking(reads, { ...query, words }, now);
  return other.total > ranking.total ? words : null;
}

// Explains a result's rank in words and points.

/** Every part that added or removed points, largest first. */
function reasonsOf(page: RankedPage): Reason[] {
  return scoreParts
    .map((part) => ({
      part,
      points: Math.round(10 * page.score[part]) / 10,
      most: mostPoints[part],
      words: wordsOf[part](page),
    }))
    .filter(({ points }) => points !== 0)
    .sort((a, b) => Math.abs(b.points) - Math.abs(a.points));
}

const wordsOf: Readonly<Record<Reason["part"], (page: RankedPage) => string>> = {
  text: () => "how often the words are in the text, and how close to each other",
  head: ({ signals }) =>
    signals.headRank >= 0.6
      ? "the title has all of the words"
      : "words in title, headings, description or address",
  address: ({ signals }) =>
    signals.addressShare >= 1 ? "the address has all of the words" : "the address has some of the words",
  links: ({ signals }) =>
    signals.linkingHosts === 1
      ? "1 other host links to it"
      : `${signals.linkingHosts} other hosts link to it`,
  freshness: ({ candidate, signals }) => {
    const days = Math.max(0, Math.floor(signals.ageDays));
    const how = candidate.publishedAt === null ? "fetched" : "published";
    const day = dateOf(candidate).toISOString().slice(0, 10);
    return `${how} ${day}, ${days === 0 ? "today" : days === 1 ? "1 day ago" : `${days} days ago`}`;
  },
  copy: () => "another page had nearly this text before",
};

// The part of a page's text shown for a search: around the first matching word, cut between words.

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

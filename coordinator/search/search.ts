/** Search over the index: what was typed becomes a bounded query, what was found an answer that can be shown. */

import { readSearch, type SearchOptions } from "./query.ts";
import { noFacets, type RankedPage, type Ranking, rankPages } from "./rank-pages.ts";
import type { FoundPage, SearchAnswer, SearchQuery, SearchReads } from "./reads.ts";
import { reasonsOf } from "./search-reasons.ts";
import { snippetOf } from "./snippet.ts";
import { suggestWords } from "./suggest-words.ts";

/** With so many results nobody needs another idea of what was meant. */
const plentyOfResults = 5;

/** Pages that hold the words: "quoted phrases", `or` and `-not` as people type them in search engines. */
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
    return { ...nothing, note: "Type one or more words to search for." };
  }
  const ranking = await keptRanking(reads, query, now);
  if (!ranking.searchable) {
    return { ...nothing, note: "These words are too common, or only exclude: add one to look for." };
  }
  const { pages, gone } = await shownPages(reads, ranking, query, options.explain === true);
  return {
    ...nothing,
    total: ranking.pages.length - gone,
    more: ranking.more,
    pages,
    facets: ranking.facets,
    didYouMean: await betterWords(reads, ranking, query, now),
    note: ranking.cutShort ? cutShort : null,
  };
}

const cutShort =
  "This took too long and was cut short: there may be better pages. Add a word, or take away a filter.";

/** Pages of results come from one ranking. */
async function keptRanking(reads: SearchReads, query: SearchQuery, now: Date): Promise<Ranking> {
  const { words, filters, sort } = query;
  return await reads.keep(JSON.stringify([words, filters, sort]), () => rankPages(reads, query, now));
}

/** A page that has gone, or whose site opted out a moment ago, is neither shown nor counted. */
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
  const { host, language, country, crawler, publishedAt, fetchedAt } = page.candidate;
  return {
    url,
    host,
    title,
    language,
    country,
    publishedAt: publishedAt?.toISOString() ?? null,
    fetchedAt: fetchedAt.toISOString(),
    crawler,
    words,
    alike: page.alike,
    rank: Math.round(10 * page.points) / 10,
    snippet: snippetOf(headline),
    reasons: explain ? reasonsOf(page) : null,
  };
}

/** Other words are offered only when they bring more than these did. */
async function betterWords(
  reads: SearchReads,
  ranking: Ranking,
  query: SearchQuery,
  now: Date,
): Promise<string | null> {
  if (ranking.cutShort || ranking.pages.length >= plentyOfResults) return null;
  const words = await suggestWords(reads, query.words, query.filters.language);
  if (words === null) return null;
  const other = await keptRanking(reads, { ...query, words }, now);
  return other.pages.length > ranking.pages.length ? words : null;
}

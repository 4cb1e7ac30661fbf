/** Search: turns what was typed into a bounded question to the engine, and what it found into an answer that may be shown. */

import type { UrlAddress } from "#core/url-key";
import { stemmingOf, textSearchConfigOf } from "#core/words/words";
import type { EngineAnswer, SearchEngine, TermArm } from "./engine/search-engine.ts";
import {
  hasWordsCut,
  maxSearchOffset,
  maxSearchWords,
  readSearch,
  type SearchOptions,
  suggestWords,
} from "./query.ts";
import { noFacets, type RankedPage, type Ranking, rankPages, reasonsOf } from "./ranking.ts";
import type { FoundPage, SearchAnswer, SearchQuery } from "./search-answer.ts";
import { type Quotable, snippetOf } from "./snippet.ts";
import { termArms } from "./term-arms.ts";

/** What the database has of a page that may be shown. */
export interface ShownPage extends Quotable {
  readonly url: string;
  readonly title: string;
  readonly words: number;
}

export interface SearchReads {
  readonly engine: SearchEngine;
  /** Returns a list parallel to the keys, with null where the page may no longer be shown. */
  shown(keys: readonly UrlAddress[]): Promise<readonly (ShownPage | null)[]>;
  /** The cached answer to the same question, or a new one. */
  keep<T extends object>(question: string, make: () => Promise<T>): Promise<T>;
}

/** With this many results no other spelling is offered. */
const plentyOfResults = 5;

/** Only this many of the best are ranked: more than the pages of results can reach. */
const mostRanked = 1000;

/**
 * Pages that contain the words: "quoted phrases", `or` and `-not` as people type them in search engines. Throws EngineAway
 * if the engine does not answer.
 */
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
  const found = await keptFound(reads, query, now);
  if (found.arms.length === 0) return { ...nothing, note: "These words only exclude: add one to look for." };
  const { pages, gone } = await shownPages(reads, found, query, options.explain === true);
  return {
    ...nothing,
    total: found.total - gone,
    more: found.more,
    pages,
    facets: found.facets,
    didYouMean: await betterWords(reads, found, query, now),
    note: noteOf(words, found, query.offset + query.limit),
  };
}

interface Found extends Ranking {
  /** Empty: the words only exclude. */
  readonly arms: readonly TermArm[];
  /** No page has all the words, so these have some of them. */
  readonly isLoose: boolean;
  readonly isPartial: boolean;
  /** How much of the index the engine had, if it was being filled. */
  readonly percentFilled: number | null;
}

/** All pages of results come from one ranking. */
async function keptFound(reads: SearchReads, query: SearchQuery, now: Date): Promise<Found> {
  const { words, filters, sort } = query;
  return await reads.keep(JSON.stringify([words, filters, sort]), () => find(reads, query, now));
}

async function find({ engine }: SearchReads, query: SearchQuery, now: Date): Promise<Found> {
  const { words, filters, sort } = query;
  const configurations =
    filters.language === null ? await engine.configurations() : [textSearchConfigOf(filters.language)];
  // An empty index has none, but the words may be sensible.
  const arms = await termArms(
    { words, title: filters.title },
    configurations.length > 0 ? configurations : ["simple"],
  );
  const asked = { filters, most: mostRanked };
  const answer = arms.length === 0 ? noAnswer : await engine.search({ arms, ...asked });
  const isLoose = answer.total === 0 && !answer.isPartial && arms.some(({ all }) => all.length > 1);
  const loose = isLoose ? mostWords(await engine.search({ arms: arms.map(anyWord), ...asked })) : answer;
  const state = engine.state();
  const percentFilled =
    state.type === "building" ? Math.floor((100 * state.pages) / Math.max(1, state.ofPages)) : null;
  return { ...rankPages(loose, sort, now), arms, isLoose, isPartial: loose.isPartial, percentFilled };
}

const noAnswer: EngineAnswer = { matches: [], total: 0, isExact: true, isPartial: false };

const anyWord = (arm: TermArm): TermArm => ({ ...arm, all: [arm.all.flat()] });

/** Of pages with some of the words, those that have most of what the best of them has. Rare words count more. */
function mostWords(answer: EngineAnswer): EngineAnswer {
  const best = answer.matches[0]?.score ?? 0;
  const matches = answer.matches.filter(({ score }) => score >= best / 2);
  return { ...answer, matches, total: matches.length };
}

/** What readers should know about how this was found. */
function noteOf(
  words: string,
  { isLoose, isPartial, percentFilled, total }: Found,
  shownTo: number,
): string | null {
  const notes = [
    percentFilled === null ? null : `The index is being filled (${percentFilled} %): there may be more.`,
    isLoose && total > 0 ? "No page has all of these words: these have most of them." : null,
    hasWordsCut(words) ? `Only the first ${maxSearchWords} words were searched.` : null,
    isPartial
      ? "Not all of the index was searched in time: there may be better pages. Add a word, or take away a filter."
      : null,
    shownTo > maxSearchOffset && shownTo < total
      ? `Only the best ${shownTo} can be paged through. Add a word or a filter to see others.`
      : null,
  ].filter((note) => note !== null);
  return notes.length === 0 ? null : notes.join(" ");
}

/** A page that has gone or whose site has just opted out is neither shown nor counted. */
async function shownPages(
  reads: SearchReads,
  { pages: all, arms }: Found,
  { offset, limit }: SearchQuery,
  explain: boolean,
): Promise<{ pages: FoundPage[]; gone: number }> {
  const ranked = all.slice(offset, offset + limit);
  const shown = await reads.shown(ranked);
  const pages: FoundPage[] = [];
  for (const [index, page] of ranked.entries()) {
    const details = shown[index] ?? null;
    if (details !== null) pages.push(await foundPage(page, details, { arms, explain }));
  }
  return { pages, gone: ranked.length - pages.length };
}

async function foundPage(
  page: RankedPage,
  details: ShownPage,
  { arms, explain }: { readonly arms: readonly TermArm[]; readonly explain: boolean },
): Promise<FoundPage> {
  const { host, language, country, crawler, publishedAt, fetchedAt, uses, textSearchConfig } = page;
  const { url, title, words } = details;
  const arm = arms.find(({ configurations }) => configurations.includes(textSearchConfig)) ?? { all: [] };
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
    snippet: snippetOf(details, arm, await stemmingOf(textSearchConfig)),
    reasons: explain ? reasonsOf(page) : null,
  };
}

/** Other words are offered only when they find more, or pages with all of them. */
async function betterWords(
  reads: SearchReads,
  found: Found,
  query: SearchQuery,
  now: Date,
): Promise<string | null> {
  if (found.isPartial || (!found.isLoose && found.total >= plentyOfResults)) return null;
  const words = await suggestWords(reads.engine, query.words);
  if (words === null) return null;
  const other = await keptFound(reads, { ...query, words }, now);
  return other.total > found.total || (found.isLoose && !other.isLoose) ? words : null;
}

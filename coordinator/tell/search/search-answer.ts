/** Search: what can be asked of the index, and what is answered. */

import type { HostHash, UrlHash } from "#core/ids";
import type { UseAnswers } from "#protocol/preferences";
import type { ToldOf } from "../../web/api-operation.ts";
import type { KnownWord } from "./edit-distance.ts";
import type { PageSignals } from "./page-score.ts";
import type { facetValue, foundPage, searchAnswer, searchFacets, searchReason } from "./search-api.ts";

/** What each may be, and means: the parameters of the operation (search-api.ts). */
export const filterNames = [
  ...(["host", "excludeHost", "title", "language", "country", "crawler"] as const),
  ...(["from", "to", "type", "preference"] as const),
] as const;
export type FilterName = (typeof filterNames)[number];

export type SearchFilters = Readonly<Record<FilterName, string | null>>;

export type SearchSort = "relevance" | "date";

/** What the store is asked: cleaned, and every number within its bounds. */
export interface SearchQuery {
  readonly words: string;
  readonly filters: SearchFilters;
  readonly sort: SearchSort;
  readonly limit: number;
  readonly offset: number;
}

/** A page that matches, as far as it is known without reading its text. */
export interface Candidate {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly host: string;
  /** The words as the rules of the page's language make them: a tsquery. */
  readonly query: string;
  readonly headRank: number;
  /** What reading the page will give of these signals (page-score.ts), as near as it can be told before; absent: 0. */
  readonly textRank?: number;
  readonly addressShare?: number;
  readonly linkingHosts: number;
  readonly isLaterCopy: boolean;
  /** Pages of one group have nearly the same text; null: too short to tell. */
  readonly textGroup: string | null;
  readonly language: string | null;
  readonly country: string | null;
  readonly crawler: string | null;
  readonly publishedAt: Date | null;
  readonly fetchedAt: Date;
  readonly uses: UseAnswers;
}

export interface Candidates {
  readonly pages: readonly Candidate[];
  /** There may be more than were looked at. */
  readonly more: boolean;
  /** True: some of the matches were never compared with the others, so that better ones may be missing. */
  readonly unranked?: boolean;
  /** False: nothing but words too common to be indexed, or only excluded ones. */
  readonly searchable: boolean;
  /** The time was over before all of the index was looked through. */
  readonly cutShort: boolean;
}

/** A page with all that its score is made of. */
export interface ScoredCandidate {
  readonly candidate: Candidate;
  readonly signals: PageSignals;
  /** Other matching pages with nearly the same text. */
  readonly alike: number;
}

/** Every match was ranked. */
export interface RankedCandidates {
  /** The best in their order, each text once. */
  readonly pages: readonly ScoredCandidate[];
  /** How many match, each text counted once. */
  readonly total: number;
  readonly facets: Facets;
  readonly searchable: boolean;
}

export interface PageText {
  readonly url: string;
  readonly textRank: number;
}

/** What is shown of a page. */
export interface ShownPage {
  readonly url: string;
  readonly title: string;
  readonly words: number;
  /** Marked as headline.ts says. */
  readonly headline: string;
}

export interface SearchReads {
  /** From the index in memory; null: the candidates have to be looked for in the database. Left out: there is no such index. */
  ranked?(query: SearchQuery, now: Date): Promise<RankedCandidates | null>;
  /** Why the index in memory, which there should be, does not answer; null: nothing to say. */
  standIn?(): string | null;
  candidates(query: SearchQuery): Promise<Candidates>;
  /** Beside the candidates; null: the page went in the meantime, or there was no time left. */
  texts(candidates: readonly Candidate[]): Promise<readonly (PageText | null)[]>;
  /** Beside the candidates; null: not to be shown any more. */
  shown(candidates: readonly Candidate[]): Promise<readonly (ShownPage | null)[]>;
  /** Words of the index that share one of the forms (search/word-slips). */
  wordsLike(forms: readonly string[], language: string | null): Promise<readonly KnownWord[]>;
  /** The answer kept of the same question a moment ago, or made now. */
  keep<T extends object>(question: string, make: () => Promise<T>): Promise<T>;
}

export type SnippetPart = FoundPage["snippet"][number];
export type FoundPage = ToldOf<typeof foundPage>;
export type Reason = ToldOf<typeof searchReason>;
export type FacetValue = ToldOf<typeof facetValue>;
export type Facets = ToldOf<typeof searchFacets>;
export type SearchAnswer = ToldOf<typeof searchAnswer>;

export const facetNames = ["language", "country", "crawler", "host", "preference"] as const;
export type FacetName = (typeof facetNames)[number];

/** Types of the search's questions and answers. */

import type { HostHash, UrlHash } from "#core/ids";
import type { UseAnswers } from "#protocol/preferences";
import type { ToldOf } from "../../web/api-operation.ts";
import type { KnownWord } from "./edit-distance.ts";
import type { PageSignals } from "./page-score.ts";
import type { facetValue, foundPage, searchAnswer, searchFacets, searchReason } from "./search-api.ts";

/** Values and meanings: see the parameters of the operation (search-api.ts). */
export const filterNames = [
  ...(["host", "excludeHost", "title", "language", "country", "crawler"] as const),
  ...(["from", "to", "type", "preference"] as const),
] as const;
export type FilterName = (typeof filterNames)[number];

export type SearchFilters = Readonly<Record<FilterName, string | null>>;

export type SearchSort = "relevance" | "date";

/** The question to the store: cleaned, with every number within its bounds. */
export interface SearchQuery {
  readonly words: string;
  readonly filters: SearchFilters;
  readonly sort: SearchSort;
  readonly limit: number;
  readonly offset: number;
}

/** A matching page, as far as it is known without reading its text. */
export interface Candidate {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly host: string;
  /** The words under the rules of the page's language: a tsquery. */
  readonly query: string;
  readonly headRank: number;
  /** Estimates of these signals (page-score.ts) before the page is read. Default: 0. */
  readonly textRank?: number;
  readonly addressShare?: number;
  readonly linkingHosts: number;
  readonly isLaterCopy: boolean;
  /** Pages of one group have nearly the same text; null if the text is too short to compare. */
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
  /** There may be more matches than were looked at. */
  readonly more: boolean;
  /** Whether some matches were never compared with the others, so that better ones may be missing. */
  readonly unranked?: boolean;
  /** False if all words are excluded or too common to be indexed. */
  readonly searchable: boolean;
  /** Time ran out before the whole index was searched. */
  readonly cutShort: boolean;
}

/** A page with everything its score is made of. */
export interface ScoredCandidate {
  readonly candidate: Candidate;
  readonly signals: PageSignals;
  /** Other matching pages with nearly the same text. */
  readonly alike: number;
}

/** Every match was ranked. */
export interface RankedCandidates {
  /** The best in order, each text once. */
  readonly pages: readonly ScoredCandidate[];
  /** How many match, counting each text once. */
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
  /** Marked as described in headline.ts. */
  readonly headline: string;
}

export interface SearchReads {
  /** Asks the in-memory index. Null means that the database must be searched; absent if there is no such index. */
  ranked?(query: SearchQuery, now: Date): Promise<RankedCandidates | null>;
  /** Returns why the in-memory index does not answer although it should, or null. */
  standIn?(): string | null;
  candidates(query: SearchQuery): Promise<Candidates>;
  /** Returns a list parallel to the candidates, with null where the page is gone or time ran out. */
  texts(candidates: readonly Candidate[]): Promise<readonly (PageText | null)[]>;
  /** Returns a list parallel to the candidates, with null where the page may no longer be shown. */
  shown(candidates: readonly Candidate[]): Promise<readonly (ShownPage | null)[]>;
  /** Words of the index that share one of these forms (search/edit-distance). */
  wordsLike(forms: readonly string[], language: string | null): Promise<readonly KnownWord[]>;
  /** The cached answer to the same question, or a new one. */
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

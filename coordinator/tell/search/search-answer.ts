/** Types of the search's questions and answers. */

import type { UrlAddress } from "#core/url-key";
import type { ToldOf } from "../../web/api-operation.ts";
import type { SearchEngine } from "./engine/search-engine.ts";
import type { facetValue, foundPage, searchAnswer, searchFacets, searchReason } from "./search-api.ts";
import type { Quotable } from "./snippet.ts";

/** Values and meanings: see the parameters of the operation (search-api.ts). */
export const filterNames = [
  ...(["host", "excludeHost", "title", "language", "country", "crawler"] as const),
  ...(["from", "to", "type", "preference"] as const),
] as const;
export type FilterName = (typeof filterNames)[number];

export type SearchFilters = Readonly<Record<FilterName, string | null>>;

export type SearchSort = "relevance" | "date";

/** What was asked: cleaned, with every number within its bounds. */
export interface SearchQuery {
  readonly words: string;
  readonly filters: SearchFilters;
  readonly sort: SearchSort;
  readonly limit: number;
  readonly offset: number;
}

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

export type SnippetPart = FoundPage["snippet"][number];
export type FoundPage = ToldOf<typeof foundPage>;
export type Reason = ToldOf<typeof searchReason>;
export type FacetValue = ToldOf<typeof facetValue>;
export type Facets = ToldOf<typeof searchFacets>;
export type SearchAnswer = ToldOf<typeof searchAnswer>;

export const facetNames = ["language", "country", "crawler", "host", "preference"] as const;
export type FacetName = (typeof facetNames)[number];

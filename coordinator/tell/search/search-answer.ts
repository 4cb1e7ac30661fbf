/** Types of the search's questions and answers. */

import type { ToldOf } from "../../web/api-operation.ts";
import type { facetValue, foundPage, searchAnswer, searchFacets, searchReason } from "./search-api.ts";

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

export type SnippetPart = FoundPage["snippet"][number];
export type FoundPage = ToldOf<typeof foundPage>;
export type Reason = ToldOf<typeof searchReason>;
export type FacetValue = ToldOf<typeof facetValue>;
export type Facets = ToldOf<typeof searchFacets>;
export type SearchAnswer = ToldOf<typeof searchAnswer>;

export const facetNames = ["language", "country", "crawler", "host", "preference"] as const;
export type FacetName = (typeof facetNames)[number];

/** Questions to the index in memory and its answers: plain values that travel between processes. */
import type { UseAnswers } from "#protocol/preferences";
import type { PageSignals } from "../page-score.ts";
import type { FacetName, FacetValue, SearchFilters, SearchSort } from "../search-answer.ts";

/** The words under the rules of some configurations, as Postgres writes them (candidate-reads: WordQuery). */
export interface IndexArm {
  readonly configurations: readonly string[];
  readonly query: string;
  readonly headQuery: string;
  readonly anyQuery: string;
  readonly titleQuery: string | null;
}

export interface IndexQuestion {
  readonly arms: readonly IndexArm[];
  /** As typed, in lower case, to be looked for in the address. */
  readonly plainWords: readonly string[];
  readonly filters: SearchFilters;
  /** The crawler of the filter; null if there is none. */
  readonly crawlerId: number | null;
  readonly sort: SearchSort;
  /** How many of the best pages to return. */
  readonly wanted: number;
  readonly nowS: number;
}

export interface IndexedCandidate {
  readonly hostHash: string;
  readonly urlHash: string;
  readonly host: string;
  /** The number of the arm that it matches. */
  readonly arm: number;
  readonly signals: PageSignals;
  /** Other matching pages with nearly the same text. */
  readonly alike: number;
  readonly textGroup: string | null;
  readonly language: string | null;
  readonly country: string | null;
  readonly crawler: string | null;
  readonly publishedS: number | null;
  readonly fetchedS: number;
  readonly uses: UseAnswers;
}

export interface IndexAnswer {
  /** All matches, counting those with nearly the same text once. */
  readonly total: number;
  /** The best, in order. */
  readonly pages: readonly IndexedCandidate[];
  readonly facets: Readonly<Record<FacetName, readonly FacetValue[]>>;
}

/** The state of the index in memory. */
export type IndexState =
  /** Off or not needed: the database answers. */
  | { readonly type: "off"; readonly why: string }
  | { readonly type: "building"; readonly pages: number; readonly ofPages: number }
  | IndexReady
  /** It ended and is started again in a moment; `outOfRoom`: in hours, because it needs more memory than allowed. */
  | { readonly type: "failed"; readonly why: string; readonly outOfRoom: boolean };

interface IndexReady {
  readonly type: "ready";
  readonly pages: number;
  readonly bytes: number;
  /** Time since it was last level with the database. */
  readonly secondsBehind: number;
}

export interface SearchIndex {
  /** Resolves to null if the index cannot answer now, or not this question. The database then answers. */
  ask(question: IndexQuestion): Promise<IndexAnswer | null>;
  state(): IndexState;
}

// Messages between the index's process and the coordinator.

export type ToIndex =
  | { readonly type: "begin"; readonly databaseUrl: string; readonly mostBytes: number }
  | { readonly type: "ask"; readonly id: number; readonly question: IndexQuestion };

export type FromIndex =
  | { readonly type: "state"; readonly state: IndexState }
  | { readonly type: "answer"; readonly id: number; readonly answer: IndexAnswer | null };

/**
 * The port between the search and the engines that can answer it: SQLite's FTS5 beside each coordinator, and
 * OpenSearch. Both index the same terms (core/words), made by the shipper from the text that the crawler sent, so
 * that a query finds the same pages in either.
 */
import type { UrlAddress } from "#core/url-key";
import type { UseAnswers } from "#protocol/preferences";
import type { TextsElsewhere } from "../../../crawl/changes/page-text-reads.ts";
import type { SearchFilters } from "../search-answer.ts";

/** Terms that stand next to each other in a field. A term of one ideograph or kana matches every term that begins so. */
export type TermSequence = readonly string[];

/**
 * The words of a query under the rules of some configurations. A page matches if it is of one of these configurations,
 * has one sequence of each group of `all` in any of its fields, each of `title` in its title, and none of `none`.
 */
export interface TermArm {
  /** Text search configurations, such as `english`. */
  readonly configurations: readonly string[];
  readonly all: readonly (readonly TermSequence[])[];
  readonly title: readonly TermSequence[];
  readonly none: readonly TermSequence[];
}

export interface EngineQuestion {
  /** At least one; each configuration is in one arm. */
  readonly arms: readonly TermArm[];
  readonly filters: SearchFilters;
  /** How many of the best pages are wanted at most. */
  readonly most: number;
}

/** A matching page as the engine knows it. */
export interface EngineMatch extends UrlAddress {
  readonly url: string;
  readonly host: string;
  /** BM25 over the fields, as the engine computes it; higher is better. Only comparable within one answer. */
  readonly score: number;
  readonly textSearchConfig: string;
  readonly language: string | null;
  readonly country: string | null;
  readonly crawler: string | null;
  readonly publishedAt: Date | null;
  readonly fetchedAt: Date;
  readonly uses: UseAnswers;
  /** Pages with nearly the same text share a group; null if the text is too short to compare. */
  readonly textGroup: string | null;
  readonly isCopy: boolean;
  /** Other hosts that link to the page, at most 1000. */
  readonly linkingHosts: number;
  readonly pageRank: number | null;
}

export interface EngineAnswer {
  /** The best by `score`, then by key. */
  readonly matches: readonly EngineMatch[];
  /** How many pages match. Exact up to `most`, above that possibly a lower bound (see `isExact`). */
  readonly total: number;
  readonly isExact: boolean;
  /** Time ran out, or a part of the engine did not answer. */
  readonly isPartial: boolean;
}

/** A word as written in the index, and how many pages have it in their title or headings. */
export interface WrittenWord {
  readonly word: string;
  readonly pages: number;
}

/** Whether the engine can answer now. */
export type EngineState =
  | { readonly type: "ready"; readonly pages: number; readonly bytes: number; readonly secondsBehind: number }
  /** It is filled from the database. It answers with what it has so far. */
  | { readonly type: "building"; readonly pages: number; readonly ofPages: number }
  | { readonly type: "away"; readonly why: string };

/** An engine that does not answer throws EngineAway. */
export interface SearchEngine {
  state(): EngineState;
  search(question: EngineQuestion): Promise<EngineAnswer>;
  /** The configurations of the pages in the index. */
  configurations(): Promise<readonly string[]>;
  /** Words in use that are within two edits of this one, in lower case. */
  wordsLike(word: string): Promise<readonly WrittenWord[]>;
  /** If the engine keeps texts, so that the database need not. */
  readonly texts?: TextsElsewhere;
}

/** The engine cannot be asked now; the message says why in words for people. */
export class EngineAway extends Error {
  override readonly name = "EngineAway";
}

/** A result that counts, with what the frontier knew of its URL before. */

import type { FetchResult, PageExtract } from "#protocol/result";
import type { PageWorth } from "../frontier/budgets.ts";
import type { ArrivedResult, NextFetch } from "../frontier/ports.ts";
import type { KnownPage } from "../recrawl/visit-findings.ts";

export interface UrlBefore {
  readonly depth: number;
  /** In a row. */
  readonly failures: number;
  readonly visits: number;
  /** In a row that led to it. */
  readonly redirects: number;
  readonly lists: number;
  readonly worth: PageWorth | null;
  /** What is known of its changes. */
  readonly page: KnownPage;
}

export interface CountedResult extends ArrivedResult {
  readonly before: UrlBefore;
  readonly next: NextFetch;
}

/** Sitemaps and feeds in a row: an index, its sitemaps, their pages; whatever is nested deeper admits nothing. */
export const mostListsInARow = 3;

/** The page that goes into the index, or null: nothing was fetched, it says "not found", or only names URLs. */
export function indexedPage({ outcome, page }: FetchResult): PageExtract | null {
  if (outcome.type !== "fetched" || page === null || isSoftNotFound({ outcome, page })) return null;
  return isList({ outcome, page }) ? null : page;
}

export function isSoftNotFound({ outcome, page }: Pick<FetchResult, "outcome" | "page">): boolean {
  return outcome.type === "fetched" && page?.softNotFound === true;
}

/** A sitemap or feed. */
export function isList({ outcome, page }: Pick<FetchResult, "outcome" | "page">): boolean {
  return outcome.type === "fetched" && page?.kind !== undefined && page.kind !== "page";
}

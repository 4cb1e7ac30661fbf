/**
 * What a fetched URL is worth to the crawl of its host: the grounds of the host's budget (host-budget.ts).
 * Trouble that may pass says nothing of the URL, and leaves what it counted for as it was.
 */
import type { FetchOutcome, PageExtract } from "#protocol/result";

/**
 * good            a page with a text of its own
 * near-duplicate  nearly the same text as another page's
 * not-found       says "not found" with status 200
 * empty           no text to speak of
 * failed          an error that will not pass: 4xx, redirects without an end
 */
export const pageWorths = ["good", "near-duplicate", "not-found", "empty", "failed"] as const;
export type PageWorth = (typeof pageWorths)[number];

/** A page with fewer words has no text to speak of. */
const fewestWords = 5;

/** Null: it counts for nothing (a redirect, a sitemap, a refusal). `before` is what it counted for until now. */
export function pageWorth(
  fetched: { readonly outcome: FetchOutcome; readonly page: PageExtract | null },
  isNearDuplicate: boolean,
  before: PageWorth | null,
): PageWorth | null {
  const { outcome, page } = fetched;
  switch (outcome.type) {
    case "fetched":
      return page === null ? null : worthOfPage(page, isNearDuplicate);
    case "unchanged":
      return before;
    case "http-error":
      return isFinal(outcome.status) ? "failed" : before;
    case "failed":
      return /redirect/.test(outcome.code) ? "failed" : before;
    case "redirected":
    case "unsupported":
    case "refused-by-robots":
    case "refused-address":
      return null;
  }
}

function worthOfPage(page: PageExtract, isNearDuplicate: boolean): PageWorth | null {
  if (page.softNotFound === true) return "not-found";
  if (page.kind !== undefined && page.kind !== "page") return null;
  if (isNearDuplicate) return "near-duplicate";
  if (page.words < fewestWords) return "empty";
  return page.robots.noindex ? null : "good";
}

/** Statuses that tell of the URL and not of the moment. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429;
}

import type { HostHash, LeaseId, UrlHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { FetchResult, PageExtract } from "#protocol/result";
import type { AdmittedUrl, PageWorth } from "./found-urls.ts";
import type { KnownPage, VisitFindings } from "./visit.ts";

export interface UrlBefore {
  readonly depth: number;
  readonly failures: number;
  readonly visits: number;
  readonly redirects: number;
  readonly lists: number;
  readonly worth: PageWorth | null;
  readonly page: KnownPage;
}

export interface CountedResult extends ArrivedResult {
  readonly before: UrlBefore;
  readonly next: NextFetch;
  /** Absent when nothing is stated about the page's uses. */
  readonly stated?: Stated;
  /** True for a sitemap that may gain entries when another robots.txt names it. Validators and digest are then dropped. */
  readonly isUnsettled?: boolean;
}

/** The site's statement about the page's uses, as its number in table preference_set. Null if it makes none. */
interface Stated {
  readonly set: number | null;
  readonly maySearch: boolean;
  /** Null if the index has no such page. */
  readonly before: { readonly set: number | null; readonly maySearch: boolean } | null;
}

/** How many nested lists are followed: an index, its sitemaps, their pages. Deeper ones admit nothing. */
export const mostListsInARow = 3;

/** The page for the index. Null if nothing was fetched, the page says "not found", or it only names URLs. */
export function indexedPage({ outcome, page }: FetchResult): PageExtract | null {
  if (outcome.type !== "fetched" || page === null || isSoftNotFound({ outcome, page })) return null;
  return isList({ outcome, page }) ? null : page;
}

export function isSoftNotFound({ outcome, page }: Pick<FetchResult, "outcome" | "page">): boolean {
  return outcome.type === "fetched" && page?.softNotFound === true;
}

export function isList({ outcome, page }: Pick<FetchResult, "outcome" | "page">): boolean {
  return outcome.type === "fetched" && page?.kind !== undefined && page.kind !== "page";
}

export interface NextFetch {
  readonly at: Date;
  readonly isGone: boolean;
  /** What the visit found of the page's changes. Absent if there was nothing to compare. */
  readonly visit?: VisitFindings;
}

export interface ArrivedResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  /** Compressed bytes of this result on the wire. */
  readonly shippedBytes: number;
  /**
   * The caller's recrawl decision, given the consecutive failures before this result and the known page. `fetchedAt`
   * comes from a trusted clock.
   */
  readonly again: (
    failuresBefore: number,
    page?: { readonly known: KnownPage; readonly fetchedAt: Date },
  ) => NextFetch;
  /** URLs to admit, with their keys. URLs not to be followed are left out. */
  readonly admit: readonly AdmittedUrl[];
  /** A sitemap's entries for other hosts, admitted if those hosts' robots.txt names the sitemap. */
  readonly foreign: readonly AdmittedUrl[];
  readonly links: readonly {
    readonly hostHash: HostHash;
    readonly urlHash: UrlHash;
    readonly anchor: string;
    readonly nofollow: boolean;
  }[];
  readonly key: UrlKey;
}

/** Results dropped or corrected because no honest crawler with a right clock sends them. */
export interface RefusedResult {
  /** foreign-lease, wrong-host, wrong-url, impossible-pace, impossible-result, bad-result, wrong-clock or link-flood. */
  readonly kind: string;
  readonly words: string;
  readonly count: number;
}

export interface TakenResults {
  readonly stored: number;
  /** Results that had arrived before and are acknowledged again. */
  readonly duplicates: number;
  /** Results that were under no lease of this crawler, and so were dropped and acknowledged. */
  readonly withoutLease: number;
  /** URLs of the pages' own hosts. Those of other hosts follow through the outbox (frontier/link-outbox-store.ts). */
  readonly newUrls: number;
  /** URLs of other hosts that wait in the outbox. */
  readonly posted?: number;
  readonly refused?: readonly RefusedResult[];
  /** Sequence numbers of results that were compared with another crawler's and not stored (double-checks.ts). */
  readonly checked?: readonly number[];
}

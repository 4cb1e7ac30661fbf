import type { HostHash, LeaseId, UrlHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { FetchResult, PageExtract } from "#protocol/result";
import type { AdmittedUrl, PageWorth } from "./found-urls.ts";
import type { KnownPage, VisitFindings } from "./visit.ts";

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
  /** Absent: it says nothing of what a page is for. */
  readonly stated?: Stated;
  /** A sitemap that may name more once another robots.txt names it: the URL keeps no validators, and no digest. */
  readonly isUnsettled?: boolean;
}

/** What the site states of the uses of a page, by its number in table preference_set; null: nothing. */
interface Stated {
  readonly set: number | null;
  readonly maySearch: boolean;
  /** Null: the index has no such page. */
  readonly before: { readonly set: number | null; readonly maySearch: boolean } | null;
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

/* ------------------------------------------------------------------- results */

export interface NextFetch {
  readonly at: Date;
  readonly isGone: boolean;
  /** What the visit found of its page's changes; absent: nothing was known to compare with. */
  readonly visit?: VisitFindings;
}

export interface ArrivedResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  /** Bytes this result took on the wire, compressed. */
  readonly shippedBytes: number;
  /**
   * Recrawl decision, made by the flow, given how many failures in a row came before this result, and the page as it was
   * known; `fetchedAt`, by a clock that is believed.
   */
  readonly again: (
    failuresBefore: number,
    page?: { readonly known: KnownPage; readonly fetchedAt: Date },
  ) => NextFetch;
  /** URLs to admit: keys made by the flow, those not to be followed already dropped. */
  readonly admit: readonly AdmittedUrl[];
  /** Entries of other hosts in a sitemap, to be admitted where their hosts' robots.txt name it. */
  readonly foreign: readonly AdmittedUrl[];
  readonly links: readonly {
    readonly hostHash: HostHash;
    readonly urlHash: UrlHash;
    readonly anchor: string;
    readonly nofollow: boolean;
  }[];
  readonly key: UrlKey;
}

/** Results that were dropped, or set right, because no honest crawler with a right clock sends them. */
export interface RefusedResult {
  /** Of the incident: foreign-lease, wrong-host, wrong-url, impossible-pace, impossible-result, bad-result, wrong-clock, link-flood. */
  readonly kind: string;
  readonly words: string;
  readonly count: number;
}

export interface TakenResults {
  /** Results stored now. */
  readonly stored: number;
  /** Arrived before; acknowledged again. */
  readonly duplicates: number;
  /** Not under a lease of this crawler: dropped, acknowledged. */
  readonly withoutLease: number;
  /** Of the pages' own hosts; those of others come with the outbox (frontier/link-outbox-store.ts). */
  readonly newUrls: number;
  /** URLs of other hosts that were named or linked to, and wait in the outbox; absent: none. */
  readonly posted?: number;
  readonly refused?: readonly RefusedResult[];
  /** Sequences of those that were compared with another crawler's and not stored; absent: none (double-checks.ts). */
  readonly checked?: readonly number[];
}

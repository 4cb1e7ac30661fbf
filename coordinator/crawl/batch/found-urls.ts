/** What a result names, and what its page is worth, as the rooms that follow a stored batch are told. */
import type { HostHash, UrlHash } from "#core/ids";
import type { UrlAddress, UrlKey } from "#core/url-key";
import type { ChangeFrequency } from "#protocol/result";

export interface AdmittedUrl {
  readonly key: UrlKey;
  /** Links from a seed; of what a result names, links from its page, which the store adds to the page's own. */
  readonly depth: number;
  /** True: `depth` counts from a seed all the same (what a host's own sitemaps name). */
  readonly fromSeed?: boolean;
  /** Redirects in a row that lead to it, counted like `depth`; absent: none. */
  readonly redirects?: number;
  /** Sitemaps and feeds in a row that lead to it, counted like `depth`; absent: none. */
  readonly lists?: number;
  /** Named as a sitemap or feed; a host has only so many of them. */
  readonly isList?: boolean;
  /** When a sitemap or feed of the same host says that it changed last. */
  readonly modifiedAt?: Date;
  /** How often a sitemap of the same host says that it changes. */
  readonly changeFrequency?: ChangeFrequency;
  /** Registrable domain of the page that names it; absent: no page does, or it is of no account. */
  readonly linkedFrom?: string;
}

/**
 * good            a page with a text of its own
 * near-duplicate  nearly the same text as another page's
 * not-found       says "not found" with status 200
 * empty           no text to speak of
 * failed          an error that will not pass: 4xx, redirects without an end
 */
export const pageWorths = ["good", "near-duplicate", "not-found", "empty", "failed"] as const;

export type PageWorth = (typeof pageWorths)[number];

/** Where the link leads, and the page that has, or had, it. */
export interface ChangedLink extends UrlAddress {
  readonly from: HostHash;
  readonly fromUrl: UrlHash;
}

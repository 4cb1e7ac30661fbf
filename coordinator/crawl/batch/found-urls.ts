/** URLs that a result names and the worth of its page, as the rooms after a stored batch see them. */
import type { HostHash, UrlHash } from "#core/ids";
import type { UrlAddress, UrlKey } from "#core/url-key";
import type { ChangeFrequency } from "#protocol/result";

export interface AdmittedUrl {
  readonly key: UrlKey;
  /** Links from a seed; in a result, links from its page, to which the store adds the page's depth. */
  readonly depth: number;
  /** When true, `depth` counts from a seed (entries of a host's own sitemaps). */
  readonly fromSeed?: boolean;
  /** Consecutive redirects that lead to it, counted like `depth`. */
  readonly redirects?: number;
  /** Nested sitemaps and feeds that lead to it, counted like `depth`. */
  readonly lists?: number;
  /** Named as a sitemap or feed, of which a host may have only a few. */
  readonly isList?: boolean;
  /** Last change stated by a sitemap or feed of the same host. */
  readonly modifiedAt?: Date;
  /** Change frequency stated by a sitemap of the same host. */
  readonly changeFrequency?: ChangeFrequency;
  /** Registrable domain of the naming page; absent when there is none or it is ignored. */
  readonly linkedFrom?: string;
}

/**
 * good            a page with a text of its own
 * near-duplicate  nearly the same text as another page's
 * not-found       says "not found" with status 200
 * empty           no text to speak of
 * failed          an error that will not pass: 4xx, redirects without an end
 */
const pageWorths = ["good", "near-duplicate", "not-found", "empty", "failed"] as const;

export type PageWorth = (typeof pageWorths)[number];

/** The link's target, and the page that has or had it. */
export interface ChangedLink extends UrlAddress {
  readonly from: HostHash;
  readonly fromUrl: UrlHash;
}

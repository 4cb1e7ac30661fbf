/** URLs that a result names, and the worth of its page, for the rooms that follow a stored batch. */
import type { HostHash, UrlHash } from "#core/ids";
import type { UrlAddress, UrlKey } from "#core/url-key";
import type { ChangeFrequency } from "#protocol/result";

export interface AdmittedUrl {
  readonly key: UrlKey;
  /** Number of links from a seed. In a result it counts from its page, and the store adds the page's depth. */
  readonly depth: number;
  /** If true, `depth` counts from a seed (entries of a host's own sitemaps). */
  readonly fromSeed?: boolean;
  /** Consecutive redirects that lead to the URL, counted like `depth`. */
  readonly redirects?: number;
  /** Nested sitemaps and feeds that lead to the URL, counted like `depth`. */
  readonly lists?: number;
  /** Whether the URL was named as a sitemap or feed, of which a host may have only a few. */
  readonly isList?: boolean;
  /** Last modification as stated by a sitemap or feed of the same host. */
  readonly modifiedAt?: Date;
  /** Change frequency as stated by a sitemap of the same host. */
  readonly changeFrequency?: ChangeFrequency;
  /** Registrable domain of the page that names the URL. Absent if there is none or it is ignored. */
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

/** What the index knows about one page, its links and its back-links. */

import { UsageError } from "#core/errors";
import type { HostHash, UrlHash } from "#core/ids";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { notSearchedWords, type StatedUses } from "../../crawl/batch/stated-uses.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import type {
  alikePage,
  inLink,
  outLink,
  pageAnswer,
  pageFacts as pageFactsSchema,
  pageFetch,
} from "./search-api.ts";

export type PageFetch = ToldOf<typeof pageFetch>;

export type OutLink = ToldOf<typeof outLink>;

export type InLink = ToldOf<typeof inLink>;

export type AlikePage = ToldOf<typeof alikePage>;

export type PageFacts = Omit<ToldOf<typeof pageFactsSchema>, "stated"> & Stated;

interface Stated {
  /** The site's statements on use; null if there are none. */
  readonly stated: StatedUses | null;
}

/** Part of a list that may be long. */
export type Listed<T> = Omit<PageFacts["alike"], "items"> & { readonly items: readonly T[] };

/** Why the page is not shown. */
export type NoPage =
  | { readonly type: "noindex" }
  | { readonly type: "not-searched"; readonly stated: StatedUses }
  | { readonly type: "opted-out" }
  | { readonly type: "unknown" }
  | { readonly type: "no-page"; readonly outcome: string | null; readonly at: string | null };

export interface PageOffsets {
  readonly fetches: number;
  readonly outLinks: number;
  readonly inLinks: number;
}

export interface PageReads {
  page(key: PageKey, offsets: PageOffsets): Promise<PageFacts | NoPage>;
}

export type PageKey = Pick<UrlKey, "hostHash" | "urlHash">;

export type PageAnswer = Omit<ToldOf<typeof pageAnswer>, "page" | "stated"> &
  Stated & { readonly page: PageFacts | null };

export const linksShown = 25;

interface PageQuestion {
  readonly url?: string | undefined;
  /** The page's hashes, as stored in the frontier; given instead of `url`. */
  readonly host_hash?: string | undefined;
  readonly url_hash?: string | undefined;
  /** How many entries of each list to skip. */
  readonly fetches: number;
  readonly in: number;
  readonly out: number;
}

/** Throws a UsageError for text that is not the address of a page. */
export async function pageFacts(reads: PageReads, question: PageQuestion): Promise<PageAnswer> {
  const key = keyOf(question);
  const { fetches, in: inLinks, out: outLinks } = question;
  const found = await reads.page(key, { fetches, inLinks, outLinks });
  const asked = "url" in key ? (key.url as string) : `${key.hostHash}/${key.urlHash}`;
  if ("type" in found) {
    const stated = found.type === "not-searched" ? found.stated : null;
    return { asked, found: false, words: wordsOf(found), page: null, stated };
  }
  return { asked: found.url, found: true, words: null, page: found, stated: null };
}

function keyOf({
  url = "",
  host_hash: hostHash = "",
  url_hash: urlHash = "",
}: PageQuestion): PageKey | UrlKey {
  const text = url.trim();
  if (text !== "") {
    const key = urlKeyOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
    if (typeof key === "string")
      throw new UsageError(`${url.slice(0, 100)} is no address of a page (${key}).`);
    return key;
  }
  if (isHash(hostHash) && isHash(urlHash)) {
    return { hostHash: hostHash as HostHash, urlHash: urlHash as UrlHash };
  }
  throw new UsageError("Ask with ?url=, the address of a page, or with ?host_hash= and ?url_hash=.");
}

/** As a Postgres bigint. */
function isHash(text: string): boolean {
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

function wordsOf(none: NoPage): string {
  if (none.type === "not-searched") return notSearchedWords(none.stated.statements);
  if (none.type !== "no-page") return noPageWords[none.type];
  if (none.outcome === null) return "This address is known and was not fetched yet.";
  return `The index has no page at this address: its last fetch (${none.at ?? "at an unknown time"}) ended with ${none.outcome}.`;
}

const noPageWords = {
  noindex: "This page asks not to be indexed (noindex), so nothing of it is shown.",
  "opted-out": "An opt-out covers it, so nothing of it is shown.",
  unknown: "The index has no page at this address, and the crawl does not know it.",
} as const;

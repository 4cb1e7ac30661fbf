/** What the index has of one page, and what links to it and from it. */

import type { HostHash, UrlHash } from "#core/ids";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import type { ChangeKind } from "../changes/page-change.ts";
import type { TextDifference } from "../changes/text-difference.ts";
import { notSearchedWords, type StatedUses } from "../results/stated-uses.ts";
import type { ToldOf } from "../web/api-operation.ts";
import type { alikePage, inLink, outLink, pageFetch } from "./search-api.ts";

/** A stretch of a list that may be long. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly offset: number;
  readonly limit: number;
  /** How many there are; `more`: at least so many. */
  readonly total: number;
  readonly more: boolean;
}

export type PageFetch = ToldOf<typeof pageFetch>;

export type OutLink = ToldOf<typeof outLink>;

export type InLink = ToldOf<typeof inLink>;

export type AlikePage = ToldOf<typeof alikePage>;

export interface PageFacts {
  readonly url: string;
  readonly host: string;
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly title: string;
  readonly description: string;
  readonly headings: readonly { readonly level: number; readonly text: string }[];
  readonly excerpt: string;
  readonly language: string | null;
  /** What the page states of its language, and what its text looks like. */
  readonly declaredLanguage: string | null;
  readonly detectedLanguage: string | null;
  readonly textSearchConfig: string;
  readonly contentType: string;
  readonly status: number;
  readonly canonicalUrl: string | null;
  readonly publishedAt: string | null;
  readonly modifiedAt: string | null;
  readonly structured: { readonly type: string; readonly name: string; readonly description: string } | null;
  readonly fetchedAt: string;
  readonly crawler: string | null;
  /** Where the host's address lies, by the registries. */
  readonly country: string | null;
  readonly words: number;
  /** Empty without scripts: an application draws it, so that there is no text to index. */
  readonly needsScripts: boolean;
  readonly lexemes: number;
  readonly bodyBytes: number;
  readonly wireBytes: number;
  readonly shippedBytes: number;
  /** SHA-256 of the body, hex; and of its text, 64 bits, hex, alike for texts that are alike. */
  readonly digest: string;
  readonly simhash: string;
  /** Other hosts that link to it, as counted last; at most 1000 are. */
  readonly linkingHosts: number;
  /** It is looked through first (search/ranking). */
  readonly firstTier: boolean;
  /** What a site is asked with whether the page has changed. */
  readonly validators: { readonly etag: string | null; readonly lastModified: string | null };
  /** The host's robots.txt, as it was found last; null: nobody has told. */
  readonly robots: { readonly state: string; readonly at: string } | null;
  /** What the site states of its uses; null: nothing. */
  readonly stated: StatedUses | null;
  readonly discoveredAt: string | null;
  readonly nextFetchAt: string | null;
  readonly visits: number;
  readonly depth: number | null;
  /** The latest first. */
  readonly changes: readonly PageFactsChange[];
  readonly alike: Listed<AlikePage>;
  readonly fetches: Listed<PageFetch>;
  readonly outLinks: Listed<OutLink>;
  readonly inLinks: Listed<InLink>;
}

/** What a visit found changed. */
export interface PageFactsChange {
  readonly seenAt: string;
  readonly kind: ChangeKind;
  readonly words: string;
  readonly difference: TextDifference | null;
}

/** Why there is nothing to show. */
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

export interface PageAnswer {
  readonly asked: string;
  readonly found: boolean;
  /** In plain words why there is nothing to show; null: there is. */
  readonly words: string | null;
  readonly page: PageFacts | null;
  /** Of a page that its site does not want searched. */
  readonly stated: StatedUses | null;
}

/** Further into a list nobody reads, and skipping costs as much as reading. */
export const maxListOffset = 5000;
export const linksShown = 25;

export interface PageQuestion {
  readonly url: string;
  /** In place of the URL: its hashes, as the frontier has them. */
  readonly hostHash: string;
  readonly urlHash: string;
}

/** A string: why this cannot be asked. */
export async function pageFacts(
  reads: PageReads,
  question: PageQuestion,
  offsets: PageOffsets,
): Promise<PageAnswer | string> {
  const key = keyOf(question);
  if (typeof key === "string") return key;
  const found = await reads.page(key, offsets);
  const asked = "url" in key ? (key.url as string) : `${key.hostHash}/${key.urlHash}`;
  if ("type" in found) {
    const stated = found.type === "not-searched" ? found.stated : null;
    return { asked, found: false, words: wordsOf(found), page: null, stated };
  }
  return { asked: found.url, found: true, words: null, page: found, stated: null };
}

function keyOf({ url, hostHash, urlHash }: PageQuestion): PageKey | UrlKey | string {
  if (url.trim() !== "") {
    const text = url.trim();
    const key = urlKeyOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
    return typeof key === "string" ? `${url.slice(0, 100)} is no address of a page (${key}).` : key;
  }
  if (isHash(hostHash) && isHash(urlHash)) {
    return { hostHash: hostHash as HostHash, urlHash: urlHash as UrlHash };
  }
  return "Ask with ?url=, the address of a page, or with ?host_hash= and ?url_hash=.";
}

/** As Postgres' bigint. */
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

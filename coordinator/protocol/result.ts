/**
 * What a crawler ships for one URL: what the index needs instead of the page (design section 8), less than 1/20 of the
 * fetched bytes. Every string and list is bounded.
 */

import { createHash, type Hash } from "node:crypto";
import { z } from "zod";
import { challenge } from "./bot-gate.ts";
import { digest, listOf, milliseconds, url, words } from "./fields.ts";
import { NumberWriter } from "./packed/numbers.ts";
import { maxPreferences, statedPreference } from "./preferences.ts";

const count = z.int().min(0);

/** Maximum number of consecutive redirects to a page. */
export const maxRedirects = 5;

/** The cause of a failure: the site, the network path, the crawler, or our own software. */
export const blames = ["target", "network", "crawler", "us"] as const;

/**
 * What became of a URL.
 * fetched            a page that was extracted (status 2xx)
 * unchanged          304 to a conditional request, or the body that the coordinator knows by its digest (2xx)
 * redirected         3xx; `location` is admitted as a URL of its own, one redirect further than this one
 * http-error         any other status
 * refused-by-robots  robots.txt (RFC 9309) disallows it, or cannot be had and so disallows all
 * refused-address    the host resolves to a private or special-purpose address
 * unsupported        a content type that is not indexed; only the header was read
 * failed             no answer: resolution, connection, time-out, protocol, size; or a bot gate's challenge in its place
 */
const fetchOutcome = z.discriminatedUnion("type", [
  z.object({ type: z.literal("fetched"), status: z.int().min(200).max(299), truncated: z.boolean() }),
  z.object({
    type: z.literal("unchanged"),
    status: z.union([z.literal(304), z.int().min(200).max(299)]),
  }),
  z.object({ type: z.literal("redirected"), status: z.int().min(300).max(399), location: url }),
  z.object({
    type: z.literal("http-error"),
    status: z.int().min(100).max(999),
    retryAfterSeconds: z.int().min(0).max(31_536_000).nullable(),
    /** The price that a site states with a 402 (`crawler-price`), as written; absent if it states none. */
    price: z.string().max(80).optional(),
  }),
  z.object({ type: z.literal("refused-by-robots"), rule: z.string().max(300) }),
  z.object({ type: z.literal("refused-address"), address: z.string().max(45), block: z.string().max(80) }),
  z.object({
    type: z.literal("unsupported"),
    status: z.int().min(200).max(299),
    contentType: z.string().max(200),
  }),
  z.object({
    type: z.literal("failed"),
    blame: z.enum(blames),
    code: z.string().max(60),
    reason: z.string().max(300),
    /** Set with the code `challenged`. A bot gate answered, so nothing is known of the page, its links and the host's speed. */
    challenge: challenge.optional(),
  }),
]);

export type FetchOutcome = z.infer<typeof fetchOutcome>;

const fetchTiming = z.object({
  /** Null when the phase did not take place (a reused connection, a cached answer). */
  dnsMs: milliseconds.nullable(),
  connectMs: milliseconds.nullable(),
  tlsMs: milliseconds.nullable(),
  /** Time from sending the request to the first byte of the answer. */
  firstByteMs: milliseconds.nullable(),
  /** Time from the start to the last byte of the body, without politeness waits. */
  totalMs: milliseconds,
});

export type FetchTiming = z.infer<typeof fetchTiming>;

/** A day or a time in ISO 8601. */
const moment = z.string().regex(/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?$/);

/** The values of `changefreq` (sitemaps.org/protocol), stored by their index. */
export const changeFrequencyWords = [
  "always",
  "hourly",
  "daily",
  "weekly",
  "monthly",
  "yearly",
  "never",
] as const;

export type ChangeFrequency = (typeof changeFrequencyWords)[number];

const pageLink = z.object({
  url,
  anchor: z.string().max(200),
  nofollow: z.boolean(),
  /** The last change that a sitemap or feed states. */
  modifiedAt: moment.optional(),
  /** The change frequency that a sitemap states. */
  changeFrequency: z.enum(changeFrequencyWords).optional(),
  /** The content type that a HEAD request found, if no crawler can read it. Absent if it is readable or was not checked. */
  contentType: z.string().max(200).optional(),
});

export type PageLink = z.infer<typeof pageLink>;

/** The kinds of documents. Only a page is indexed; the others name URLs. */
const documentKinds = ["page", "sitemap", "feed"] as const;

/** Maximum numbers of links that are shipped of a page, and of a sitemap or feed. */
export const maxPageLinks = 2000;

export const maxListedUrls = 10_000;

/** Maximum length of a page's text, in UTF-16 units, including what may not be quoted. */
export const maxTextCharacters = 500_000;

const pageFields = z.object({
  /** Default: a page. */
  kind: z.enum(documentKinds).optional(),
  contentType: z.string().max(200),
  charset: z.string().max(40),
  /** The canonical URL that the page states, or null. */
  canonicalUrl: url.nullable(),
  title: z.string().max(500),
  description: z.string().max(1000),
  headings: listOf(z.object({ level: z.int().min(1).max(6), text: z.string().max(300) }), 100),
  /** The language in ISO 639-1, or null when undecided. */
  language: z
    .string()
    .regex(/^[a-z]{2,3}$/)
    .nullable(),
  /** The language that the page declares (BCP 47, as written) and the one that its text appears to be in (ISO 639). */
  declaredLanguage: z.string().max(40).optional(),
  detectedLanguage: z
    .string()
    .regex(/^[a-z]{2,3}$/)
    .optional(),
  /** The publication and last change that the page states: ISO 8601, a day or a time. */
  publishedAt: moment.optional(),
  modifiedAt: moment.optional(),
  /** The main item of the page's structured data (schema.org, Open Graph). */
  structured: z
    .object({
      type: z.string().max(80),
      name: z.string().max(300),
      description: z.string().max(1000),
    })
    .optional(),
  feeds: listOf(url, 20).optional(),
  /** The target of a meta refresh and its delay; also among the links. */
  refresh: z.object({ url, seconds: count }).optional(),
  /** By which stemming the words are searched (#core/words/stemming), such as `english`. */
  textSearchConfig: z.string().regex(/^[a-z_]{1,40}$/),
  /** The main text with its headings as written, one block per line. Empty if the page must not be indexed. */
  text: z.string().max(maxTextCharacters),
  /** Main text that is searched but never shown: what the page excludes from snippets, and what stands for its pictures. */
  unquoted: z.string().max(maxTextCharacters).optional(),
  /** Maximum length of a snippet of the text. Absent: no limit. */
  snippetCharacters: z.int().min(0).max(maxTextCharacters).optional(),
  words: count,
  /** The links in page order, each URL once: at most `maxPageLinks` of a page and `maxListedUrls` of a list. */
  links: listOf(pageLink, maxListedUrls),
  /**
   * A sitemap's entries on other hosts. They count if their host's robots.txt names this sitemap (sitemaps.org, "Sitemaps &
   * Cross Submits"), which the coordinator checks. Together with `links` there are at most `maxListedUrls`.
   */
  foreignLinks: listOf(pageLink, maxListedUrls).optional(),
  /** How many links were left out because they look like a trap (endless calendars, session ids, repeated segments). */
  trappedLinks: count.optional(),
  /** How many entries of a sitemap or feed were left out as invalid or surplus, or URLs of a page beyond `maxPageLinks`. */
  leftOutLinks: count.optional(),
  robots: z.object({ noindex: z.boolean(), nofollow: z.boolean() }),
  /** SHA-256 of the decoded body and a 64-bit simhash of the text, both hex. */
  digest,
  simhash: z.string().regex(/^[0-9a-f]{16}$/),
  /** The page is nearly empty without scripts, because an application draws it. It still counts as a page. */
  needsScripts: z.literal(true).optional(),
  /** The page says "not found" with status 200 and is not indexed. */
  softNotFound: z.boolean().optional(),
  /** Set by crawlers of 0.2.0 that left the text out under an old lease. The page is fetched again. */
  textKnown: z.literal(true).optional(),
  /** A page of the same host that was fetched before and has nearly the same text. */
  nearDuplicateOf: url.optional(),
});

/** Crawlers before version 7 send lexemes, which are not read, and the start of the text, which is all that is known of it. */
const withText = (page: unknown): unknown =>
  typeof page === "object" && page !== null && "excerpt" in page && !("text" in page)
    ? { ...page, text: page.excerpt }
    : page;

export const pageExtract = z.preprocess(withText, pageFields);

export type PageExtract = z.infer<typeof pageExtract>;

/**
 * A file that another parser reads differently from ours, whose reading applies (the crawler's second-opinion.ts). Only a few
 * are reported.
 */
const otherReading = z.object({
  words,
  file: z.string().max(16_384),
});

export type OtherReading = z.infer<typeof otherReading>;

/** The state of an origin's robots.txt, sent with the first result after it was requested. */
const robotsReport = z.object({
  /** rules: was read; none: 4xx or too many redirects, so all is allowed; closed: 5xx or 429; unreachable: no answer. */
  state: z.enum(["rules", "none", "closed", "unreachable"]),
  crawlDelaySeconds: z.number().min(0).max(86_400).nullable(),
  sitemaps: listOf(url, 50),
  difference: otherReading.optional(),
});

export type RobotsReport = z.infer<typeof robotsReport>;

const perHour = z.number().min(0).max(3_600_000);
const msAgo = z
  .number()
  .min(0)
  .max(366 * 86_400_000);

/** The rate that a host tolerates, as requests to it showed. */
const toleratedReport = z.object({
  perHour,
  /** How the host limits requests: by 429 and 503, by missing answers, or by answers several times slower than usual. */
  limitedBy: z.enum(["refused", "silent", "slow"]),
  /** The last rate that it refused, and how long ago that was; both are 0 when unknown. */
  refusedPerHour: perHour,
  refusedMsAgo: msAgo,
  /** How long ago this was found. In results it is 0, which means when the page was fetched. */
  saidMsAgo: msAgo,
});

export type ToleratedReport = z.infer<typeof toleratedReport>;

/** A host's politeness state apart from the wait. It moves with the host from crawler to crawler. */
export const hostPaceReport = z.object({
  crawlDelayMs: milliseconds,
  backOffMs: milliseconds,
  backedOffMsAgo: z.number().min(0),
  /** The host's usual response time; 0 when unknown. */
  usualMs: milliseconds,
  /** Absent if nothing else limits the rate, or if the release is an earlier one. */
  tolerated: toleratedReport.optional(),
});

export type HostPaceReport = z.infer<typeof hostPaceReport>;

export const fetchResultSchema = z.object({
  url,
  fetchedAt: z.iso.datetime(),
  outcome: fetchOutcome,
  /** The address of the connection, or null when none was opened. */
  address: z.string().max(45).nullable(),
  timing: fetchTiming,
  /** Size of the body on the wire and after decoding. */
  wireBytes: count,
  bodyBytes: count,
  etag: z.string().max(500).nullable(),
  lastModified: z.string().max(100).nullable(),
  /** How long to wait before the next fetch from this host (Crawl-delay, Retry-After, our minimum). */
  hostDelayMs: milliseconds,
  /** Absent when no other crawler of this host needs to know anything. */
  pace: hostPaceReport.optional(),
  /** Absent when robots.txt was not requested since the last result. */
  robots: robotsReport.optional(),
  /**
   * The site's statements on the uses of this page from all sources; absent when there are none. With `unchanged`, only those
   * of robots.txt, tdmrep.json and the header, because the page was not read and its earlier statements still apply. With an
   * error or failure, only those of robots.txt, and only if they deny search.
   */
  preferences: listOf(statedPreference, maxPreferences).optional(),
  /** The HTTP version (`1.1` or `2`) and the verified TLS version, null without TLS. Absent when there was no connection. */
  connection: z.object({ http: z.enum(["1.1", "2"]), tls: z.string().max(10).nullable() }).optional(),
  /** The page, if parsers read it differently. */
  difference: otherReading.optional(),
  /** Not null if and only if the outcome is `fetched`. */
  page: pageExtract.nullable(),
});

export type FetchResult = z.infer<typeof fetchResultSchema>;

/** The failure code that replaces a result that this schema or the database refuses. */
const badResult = "bad-result";

const { shape } = fetchResultSchema;

/** No site has this name (RFC 2606 section 2), so no lease holds such a URL. */
const soundFields = fetchResultSchema.extend({
  url: shape.url.catch("http://lost.invalid/"),
  fetchedAt: shape.fetchedAt.catch(new Date(0).toISOString()),
  address: shape.address.catch(null),
  timing: shape.timing.catch({ dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 }),
  hostDelayMs: shape.hostDelayMs.catch(0),
  pace: shape.pace.catch(undefined),
  robots: shape.robots.catch(undefined),
  connection: shape.connection.catch(undefined),
});

/**
 * Replaces a result that cannot be shipped or stored: its URL has failed and is retried later, while valid fields on
 * politeness, robots.txt and timing are kept. `result` may be anything.
 */
export function failedResult(result: unknown, reason: string, code: string = badResult): FetchResult {
  const nothing = {
    wireBytes: 0,
    bodyBytes: 0,
    etag: null,
    lastModified: null,
    preferences: undefined,
    difference: undefined,
    page: null,
  };
  const outcome = { type: "failed", blame: "crawler", code, reason: reason.slice(0, 300) };
  return soundFields.parse({ ...(result as object | null), ...nothing, outcome });
}

/** Returns why the result is such a replacement, or null. */
export function badResultReason({ outcome }: FetchResult): string | null {
  return outcome.type === "failed" && outcome.code === badResult ? outcome.reason : null;
}

// What a seal signs (identity.ts, `sealText`): a running SHA-256 over results in the form that both ends have before deflate
// and after inflate, so that nothing is packed twice. For each result
//
// length of the numbers (LEB128) | numbers | text, UTF-8 | ff
//
// No UTF-8 text holds ff, so no two rows of results have the same bytes.

/** A crawler seals after this many results, this many bytes of text and numbers, or this long after the first. */
export const sealAfter = { results: 32, bytes: 1024 * 1024, ms: 1000 } as const;

/**
 * Maximum size of a crawler's unpacked data that the coordinator holds without a seal. It fits `sealAfter.results` pages with
 * the maximum number of links and one list of maximum length.
 */
export const maxUnsealedBytes: number = 64 * 1024 * 1024;

const textEnd = Buffer.from([0xff]);

export class ResultDigest {
  #hash: Hash = createHash("sha256");

  add({ numbers, text }: { readonly numbers: Buffer; readonly text: Buffer }): void {
    const head = new NumberWriter();
    head.number(numbers.length);
    this.#hash.update(head.finish()).update(numbers).update(text).update(textEnd);
  }

  /** Returns the hex digest of what was added since the last call, and starts over. */
  take(): string {
    const digest = this.#hash.digest("hex");
    this.#hash = createHash("sha256");
    return digest;
  }
}

// The distance of two simhashes (64 bits, 16 hex digits), which crawler and coordinator compute alike.

export function simhashDistance(a: string, b: string): number {
  return bitCount(halfOf(a, 0) ^ halfOf(b, 0)) + bitCount(halfOf(a, 8) ^ halfOf(b, 8));
}

/** Counts the set bits of a 32-bit word (Hacker's Delight, section 5-1). */
export function bitCount(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

const halfOf = (simhash: string, at: 0 | 8) => Number.parseInt(simhash.slice(at, at + 8), 16);

export function perHourWords(perHour: number): string {
  const [count, unit] = perHour >= 60 ? [perHour / 60, "minute"] : [perHour, "hour"];
  const rounded = count < 9.95 ? Math.round(count * 10) / 10 : Math.round(count);
  return `${rounded.toLocaleString("en-GB")} ${rounded === 1 ? "request" : "requests"} per ${unit}`;
}

/** Such as "it answered 429 or 503 at 60 requests per minute". */
export function rateLimitWords({
  limitedBy,
  refusedPerHour,
}: Pick<ToleratedReport, "limitedBy" | "refusedPerHour">): string {
  if (limitedBy === "slow") return "its answers took several times longer than usual";
  const what = limitedBy === "silent" ? "it stopped answering" : "it answered 429 or 503";
  return refusedPerHour === 0 ? what : `${what} at ${perHourWords(refusedPerHour)}`;
}

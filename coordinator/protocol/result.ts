/**
 * What a crawler ships for one URL: not the page but what the index needs (design section 8), so that
 * under 1/20 of the fetched bytes travel. Every string and list is bounded.
 */

import { createHash, type Hash } from "node:crypto";
import { z } from "zod";
import { challenge } from "./bot-gate.ts";
import { digest, listOf, milliseconds, url, words } from "./fields.ts";
import { NumberWriter } from "./packed/numbers.ts";
import { maxPreferences, statedPreference } from "./preferences.ts";

const count = z.int().min(0);

/** A page is reached over at most so many redirects in a row. */
export const maxRedirects = 5;

/** Who is to blame for a failure: the site, the way there, the crawler, or our own software. */
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
    /** With a 402, what the site asks for a page (`crawler-price`), as written; absent: it names no price. */
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
    /** With the code `challenged`: a bot gate answered. Nothing of the page, its links and its host's speed is known by that. */
    challenge: challenge.optional(),
  }),
]);

export type FetchOutcome = z.infer<typeof fetchOutcome>;

const fetchTiming = z.object({
  /** Each null when the phase did not take place (a reused connection, a cached answer). */
  dnsMs: milliseconds.nullable(),
  connectMs: milliseconds.nullable(),
  tlsMs: milliseconds.nullable(),
  /** From sending the request to the first byte of the answer. */
  firstByteMs: milliseconds.nullable(),
  /** From the start to the last byte of the body, without waiting for politeness. */
  totalMs: milliseconds,
});

export type FetchTiming = z.infer<typeof fetchTiming>;

/** ISO 8601: a day or a time. */
const moment = z.string().regex(/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?$/);

/** The words that a sitemap has for how often a page changes (sitemaps.org/protocol, changefreq); kept by their places. */
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
  /** When a sitemap or feed says that the URL changed last. */
  modifiedAt: moment.optional(),
  /** How often a sitemap says that it changes. */
  changeFrequency: z.enum(changeFrequencyWords).optional(),
  /** Asked for by HEAD, it has this type, which no crawler reads; absent: it was not asked for, or may be read. */
  contentType: z.string().max(200).optional(),
});

export type PageLink = z.infer<typeof pageLink>;

/** What a document is for: a page is indexed, the others only name URLs. */
const documentKinds = ["page", "sitemap", "feed"] as const;

/** The most links of a document that are shipped: of a page, and of a sitemap or feed. */
export const maxPageLinks = 2000;

export const maxListedUrls = 10_000;

export const pageExtract = z.object({
  /** Absent: a page. */
  kind: z.enum(documentKinds).optional(),
  contentType: z.string().max(200),
  charset: z.string().max(40),
  /** The canonical URL that the page states for itself, or null. */
  canonicalUrl: url.nullable(),
  title: z.string().max(500),
  description: z.string().max(1000),
  headings: listOf(z.object({ level: z.int().min(1).max(6), text: z.string().max(300) }), 100),
  /** ISO 639-1, or null when undecided. */
  language: z
    .string()
    .regex(/^[a-z]{2,3}$/)
    .nullable(),
  /** What the page states of its language (BCP 47, as written), and what its text looks like (ISO 639). */
  declaredLanguage: z.string().max(40).optional(),
  detectedLanguage: z
    .string()
    .regex(/^[a-z]{2,3}$/)
    .optional(),
  /** When the page says that it was published and last changed: ISO 8601, a day or a time. */
  publishedAt: moment.optional(),
  modifiedAt: moment.optional(),
  /** The main thing that the page's structured data describes (schema.org, Open Graph). */
  structured: z
    .object({
      type: z.string().max(80),
      name: z.string().max(300),
      description: z.string().max(1000),
    })
    .optional(),
  /** RSS and Atom feeds that the page names. */
  feeds: listOf(url, 20).optional(),
  /** Where the page sends its visitors after so many seconds (meta refresh); among its links, too. */
  refresh: z.object({ url, seconds: count }).optional(),
  /** The Postgres text search configuration the lexemes were made with, such as `english`. */
  textSearchConfig: z.string().regex(/^[a-z_]{1,40}$/),
  /** The text in `tsvector` input form: `'word':1A,5 'other':2B`. */
  lexemes: z.string().max(900_000),
  /** First words of the text, for a snippet. */
  excerpt: z.string().max(600),
  words: count,
  /** In the page's order, each URL once. At most `maxPageLinks` of a page, `maxListedUrls` of a list. */
  links: listOf(pageLink, maxListedUrls),
  /**
   * Of a sitemap: entries of other hosts than its own. They count where their host's robots.txt names this sitemap (sitemaps.org,
   * "Sitemaps & Cross Submits"), which the coordinator knows. With `links` at most `maxListedUrls`.
   */
  foreignLinks: listOf(pageLink, maxListedUrls).optional(),
  /** Links left out because they look like a trap (endless calendars, session ids, repeated segments). */
  trappedLinks: count.optional(),
  /**
   * Of a sitemap or feed: entries left out, since they are no web addresses or too many. Of a page: URLs
   * beyond `maxPageLinks`.
   */
  leftOutLinks: count.optional(),
  robots: z.object({ noindex: z.boolean(), nofollow: z.boolean() }),
  /** SHA-256 of the decoded body, hex; and a 64-bit simhash of the text, hex. */
  digest,
  simhash: z.string().regex(/^[0-9a-f]{16}$/),
  /** Empty without scripts: an application draws it, and what was fetched has hardly a word. It is a page all the same. */
  needsScripts: z.literal(true).optional(),
  /** Says "not found" with status 200; it is not indexed. */
  softNotFound: z.boolean().optional(),
  /** From a crawler of 0.2.0, under a lease of then: it left the text out, and the page is fetched again. */
  textKnown: z.literal(true).optional(),
  /** A page of the same host with nearly the same text, fetched before. */
  nearDuplicateOf: url.optional(),
});

export type PageExtract = z.infer<typeof pageExtract>;

/** A file that another parser reads otherwise than ours, which decides (the crawler's second-opinion.ts); told of a few. */
const otherReading = z.object({
  words,
  /** Its beginning. */
  file: z.string().max(16_384),
});

export type OtherReading = z.infer<typeof otherReading>;

/** What became of an origin's robots.txt; told with the first result after it was asked for. */
const robotsReport = z.object({
  /** rules: read; none: 4xx or too many redirects, all allowed; closed: 5xx or 429; unreachable: no answer. */
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

/** The rate that a host tolerates, as it was found by asking it. */
const toleratedReport = z.object({
  /** Requests. */
  perHour,
  /** By 429 and 503, by answers that stayed away, by answers several times slower than usual. */
  limitedBy: z.enum(["refused", "silent", "slow"]),
  /** The rate at which it turned us away last, and how long ago; 0 and 0: not remembered. */
  refusedPerHour: perHour,
  refusedMsAgo: msAgo,
  /** How long ago this was found; in results 0, that is, when the page was fetched. */
  saidMsAgo: msAgo,
});

export type ToleratedReport = z.infer<typeof toleratedReport>;

/** What a host's politeness depends on besides the wait: it goes with the host from crawler to crawler. */
export const hostPaceReport = z.object({
  crawlDelayMs: milliseconds,
  /** The back-off in force (429, 503), and for how long it has been; 0 and 0: none. */
  backOffMs: milliseconds,
  backedOffMsAgo: z.number().min(0),
  /** How long the host usually takes to answer; 0: not known. */
  usualMs: milliseconds,
  /** Absent: nothing limits the rate besides, or an older release says this, which knows no more. */
  tolerated: toleratedReport.optional(),
});

export type HostPaceReport = z.infer<typeof hostPaceReport>;

export const fetchResultSchema = z.object({
  url,
  fetchedAt: z.iso.datetime(),
  outcome: fetchOutcome,
  /** The address the connection went to, or null when none was opened. */
  address: z.string().max(45).nullable(),
  timing: fetchTiming,
  /** Body bytes as they came over the wire, and after decoding. */
  wireBytes: count,
  bodyBytes: count,
  etag: z.string().max(500).nullable(),
  lastModified: z.string().max(100).nullable(),
  /** The pace this host asked for (Crawl-delay, Retry-After, our floor): wait so long before the next fetch. */
  hostDelayMs: milliseconds,
  /** Absent: nothing that another crawler of this host would have to know. */
  pace: hostPaceReport.optional(),
  /** Absent: robots.txt was not asked for since the last result. */
  robots: robotsReport.optional(),
  /**
   * What the site states of the uses of this page, from all places; absent: nothing was found. With `unchanged` what
   * robots.txt, tdmrep.json and the header say: the page itself was not read, and what it said before still holds. With an
   * error or a failure only what robots.txt says, and only where that denies search.
   */
  preferences: listOf(statedPreference, maxPreferences).optional(),
  /** How the site was spoken to: `1.1` or `2`, and the verified TLS version, null without TLS. Absent: not at all. */
  connection: z.object({ http: z.enum(["1.1", "2"]), tls: z.string().max(10).nullable() }).optional(),
  /** Of the page. */
  difference: otherReading.optional(),
  /** Present exactly when the outcome is `fetched`. */
  page: pageExtract.nullable(),
});

export type FetchResult = z.infer<typeof fetchResultSchema>;

/** The code of a failure that stands in place of a result that this schema, or the database, does not take. */
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
 * What is shipped and stored in place of a result that cannot be: its URL has failed, so that it is settled and comes up
 * again later, and what is sound of politeness, robots.txt and timing stays. `result` may be anything.
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

/** Whether that is so, and why; null: it is a result as any. */
export function badResultReason({ outcome }: FetchResult): string | null {
  return outcome.type === "failed" && outcome.code === badResult ? outcome.reason : null;
}

// What a seal signs (identity.ts, `sealText`): a running SHA-256 over results as both ends have them in hand,
// before deflate and after inflate, so that nothing is packed twice for it. For each result
//
// length of the numbers (LEB128) | numbers | text, UTF-8 | ff
//
// No UTF-8 text holds ff, so no two rows of results have the same bytes.

/** A crawler seals after so many results, so many bytes of text and numbers, or so long after the first. */
export const sealAfter = { results: 32, bytes: 1024 * 1024, ms: 1000 } as const;

/**
 * The coordinator holds no more than this of one crawler without a seal, unpacked: `sealAfter.results` pages with the
 * most links fit, and a longest list.
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

  /** Of what was added since the last time, in hex; starts over. */
  take(): string {
    const digest = this.#hash.digest("hex");
    this.#hash = createHash("sha256");
    return digest;
  }
}

// How far two simhashes (64 bits, 16 hex digits) are from each other: crawler and coordinator reckon it alike.

/** How many of the 64 bits differ. */
export function simhashDistance(a: string, b: string): number {
  return bitCount(halfOf(a, 0) ^ halfOf(b, 0)) + bitCount(halfOf(a, 8) ^ halfOf(b, 8));
}

/** How many bits of a 32-bit word are set (Hacker's Delight, section 5-1). */
export function bitCount(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

const halfOf = (simhash: string, at: 0 | 8) => Number.parseInt(simhash.slice(at, at + 8), 16);

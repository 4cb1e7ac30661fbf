/**
 * What a crawler ships for one URL: not the page but what the index needs (design section 8), so that
 * under 1/20 of the fetched bytes travel. Every string and list is bounded.
 */
import { z } from "zod";

const url = z.string().min(1).max(2048);
const milliseconds = z.number().min(0).max(86_400_000);
const count = z.int().min(0);

/** Who is to blame for a failure: the site, the way there, the crawler, or our own software. */
export const blames = ["target", "network", "crawler", "us"] as const;

/**
 * What became of a URL.
 * fetched            a page that was extracted (status 2xx)
 * unchanged          304 to a conditional request
 * redirected         3xx; `location` is admitted as a URL of its own
 * http-error         any other status
 * refused-by-robots  robots.txt (RFC 9309) disallows it, or cannot be had and so disallows all
 * refused-address    the host resolves to a private or special-purpose address
 * unsupported        a content type that is not indexed; only the header was read
 * failed             no answer: resolution, connection, time-out, protocol, size
 */
export const fetchOutcome = z.discriminatedUnion("type", [
  z.object({ type: z.literal("fetched"), status: z.int().min(200).max(299), truncated: z.boolean() }),
  z.object({ type: z.literal("unchanged"), status: z.literal(304) }),
  z.object({ type: z.literal("redirected"), status: z.int().min(300).max(399), location: url }),
  z.object({
    type: z.literal("http-error"),
    status: z.int().min(100).max(999),
    retryAfterSeconds: z.int().min(0).max(31_536_000).nullable(),
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
  }),
]);
export type FetchOutcome = z.infer<typeof fetchOutcome>;

export const fetchTiming = z.object({
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

export const pageLink = z.object({
  url,
  anchor: z.string().max(200),
  nofollow: z.boolean(),
});

export const pageExtract = z.object({
  contentType: z.string().max(200),
  charset: z.string().max(40),
  /** The canonical URL that the page states for itself, or null. */
  canonicalUrl: url.nullable(),
  title: z.string().max(500),
  description: z.string().max(1000),
  headings: z.array(z.object({ level: z.int().min(1).max(6), text: z.string().max(300) })).max(100),
  /** ISO 639-1, or null when undecided. */
  language: z
    .string()
    .regex(/^[a-z]{2,3}$/)
    .nullable(),
  /** The Postgres text search configuration the lexemes were made with, such as `english`. */
  textSearchConfig: z.string().regex(/^[a-z_]{1,40}$/),
  /** The text in `tsvector` input form: `'word':1A,5 'other':2B`. */
  lexemes: z.string().max(900_000),
  /** First words of the text, for a snippet. */
  excerpt: z.string().max(600),
  words: count,
  links: z.array(pageLink).max(2000),
  robots: z.object({ noindex: z.boolean(), nofollow: z.boolean() }),
  /** SHA-256 of the decoded body, hex; and a 64-bit simhash of the text, hex. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  simhash: z.string().regex(/^[0-9a-f]{16}$/),
});
export type PageExtract = z.infer<typeof pageExtract>;

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
  /** Present exactly when the outcome is `fetched`. */
  page: pageExtract.nullable(),
});
export type FetchResult = z.infer<typeof fetchResultSchema>;

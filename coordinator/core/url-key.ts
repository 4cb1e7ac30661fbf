/**
 * A URL's identity in the frontier: its canonical text and the hashes it is keyed by. Canonical means
 * WHATWG-parsed, without fragment, user and password, with an empty query dropped and percent-encoded octets in
 * their one spelling (RFC 3986 section 6.2.2); nothing that could change which resource is meant is touched (no
 * sorting of queries, no stripping of `www.`). It is also what is sent to the site (decision 0033).
 */
import { hash } from "node:crypto";
import type { HostHash, UrlHash } from "./ids.ts";
import { servicePortWords } from "./ip/service-ports.ts";
import { canonicalEscapes } from "./ip/url-escapes.ts";
import { canParseUrl, isHostName, urlHost } from "./ip/url-host.ts";

export interface UrlKey {
  /** Canonical text, at most `maxCanonicalUrlLength` characters. */
  readonly url: string;
  /** ASCII host name in lower case without a port and without a trailing dot; IPv6 literals without brackets. */
  readonly host: string;
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
}

export type UrlFault = "not-a-url" | "not-http" | "too-long" | "no-host" | "service-port";

export const maxCanonicalUrlLength = 2048;

/** The key of an absolute URL, or why it has none. Never throws. */
export function urlKeyOf(text: string): UrlKey | UrlFault {
  if (text.length > 4 * maxCanonicalUrlLength) return "too-long";
  const plain = plainUrl.exec(text);
  if (plain === null || isUnusual(text)) return parsedKey(text);
  const end = text.indexOf("#");
  const url = canonicalEscapes(end < 0 ? text : text.slice(0, end));
  const host = plain[1]!;
  if (url.length > maxCanonicalUrlLength || host.length > 253 || url.endsWith("?")) return parsedKey(text);
  return { url, host, hostHash: hostHashOf(host), urlHash: hash64(url) as UrlHash };
}

// Most URLs of the web are canonical as they stand, but for a fragment and octets. They are told by their characters: the parser
// takes five times as long to find that it has nothing to change.

/**
 * A host of names that is no number and has no port, a path, and nothing but octets that the parser writes otherwise
 * (WHATWG URL section 1.3, the percent-encode sets; a quote is encoded in a query and not in a path).
 */
const plainUrl =
  /^https?:\/\/((?:[a-z0-9_-]{1,63}\.)*[a-z][a-z0-9_-]{0,62})\/[\w\-.~!$&()*+,;=:@%/]*(?:\?[\w\-.~!$&()*+,;=:@%/?]*)?(?:#|$)/;

/** Segments of dots, which are resolved, and names in Punycode, which are checked. */
const isUnusual = (text: string) => /\/\.|\/%2e|xn--/i.test(text);

function parsedKey(text: string): UrlKey | UrlFault {
  if (!canParseUrl(text)) return "not-a-url";
  const parsed = new URL(text);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") return "not-http";
  if (parsed.port !== "" && servicePortWords(Number(parsed.port)) !== null) return "service-port";
  parsed.hash = "";
  parsed.username = "";
  parsed.password = "";
  if (parsed.search === "") parsed.search = "";
  const host = urlHost(parsed);
  if (!isHostName(host)) return "no-host";
  if (parsed.hostname.endsWith(".")) parsed.hostname = host;
  const url = canonicalEscapes(parsed.href);
  if (url.length > maxCanonicalUrlLength) return "too-long";
  return { url, host, hostHash: hostHashOf(host), urlHash: hash64(url) as UrlHash };
}

/** The host that somebody names, by itself or by a URL of it, as `UrlKey` has it; null: that is none. */
export function hostNamed(text: string): string | null {
  const given = text.trim();
  const key = urlKeyOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}/`);
  return typeof key === "string" ? null : key.host;
}

export function hostHashOf(host: string): HostHash {
  const known = hostHashes.get(host);
  if (known !== undefined) return known;
  if (hostHashes.size >= mostHostHashes) hostHashes.clear();
  const hostHash = hash64(host) as HostHash;
  // A copy: a piece of a text keeps the whole text, which may be a crawler's message.
  hostHashes.set(Buffer.from(host, "latin1").toString("latin1"), hostHash);
  return hostHash;
}

/** Links of a page share their hosts, and so do pages that are taken in together. Some 2 MB. */
const hostHashes = new Map<string, HostHash>();
const mostHostHashes = 10_000;

/** The first 64 bits of SHA-256 as a signed decimal: Postgres' bigint. In one call, a third of the time of a stream. */
function hash64(text: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hash("sha256", text, "hex").slice(0, 16)}`)).toString();
}

/** A host's name and every domain above it: `a.b.org` → `a.b.org`, `b.org`, `org`. */
export function domainsAbove(host: string): string[] {
  const labels = host.split(".");
  return labels.map((_, first) => labels.slice(first).join("."));
}

export function nameOf({ hostHash, urlHash }: UrlAddress): string {
  return `${hostHash}/${urlHash}`;
}

export interface UrlAddress {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
}

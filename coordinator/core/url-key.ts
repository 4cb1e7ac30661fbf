/**
 * A URL's identity in the frontier: its canonical text and its hashes. Canonical means WHATWG-parsed, without fragment, user,
 * password and empty query, and with percent-encoded octets in canonical form (RFC 3986 section 6.2.2). Nothing that could
 * name another resource is changed (no sorted queries, no stripped `www.`). This text is also what is sent to the site
 * (decision 0033).
 */
import { hash } from "node:crypto";
import type { HostHash, UrlHash } from "./ids.ts";
import { servicePortWords } from "./ip/special-purpose.ts";
import { canonicalEscapes, canParseUrl, isHostName, urlHost } from "./ip/url-host.ts";

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

/** Returns the key of an absolute URL, or why it has none. Never throws. */
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

// Recognises URLs that are canonical except for fragment and octets, as most are. The parser takes five times as long to find
// that nothing changes.

/**
 * Matches a URL with a host name that is no number, no port, a path, and only octets that the parser leaves alone (WHATWG URL
 * section 1.3, the percent-encode sets). A quote is encoded in a query but not in a path.
 */
const plainUrl =
  /^https?:\/\/((?:[a-z0-9_-]{1,63}\.)*[a-z][a-z0-9_-]{0,62})\/[\w\-.~!$&()*+,;=:@%/]*(?:\?[\w\-.~!$&()*+,;=:@%/?]*)?(?:#|$)/;

/** Whether the text has dot segments, which must be resolved, or Punycode, which must be checked. */
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

/** Returns the host that a text names, alone or in a URL, in the form of `UrlKey`. Returns null when there is none. */
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
  // A substring would keep the whole text, perhaps a crawler's message, in memory.
  hostHashes.set(Buffer.from(host, "latin1").toString("latin1"), hostHash);
  return hostHash;
}

/** Caches hashes (about 2 MB), because links of a page share their hosts, and so do pages that arrive together. */
const hostHashes = new Map<string, HostHash>();
const mostHostHashes = 10_000;

/** Returns the first 64 bits of SHA-256 as a signed decimal for bigint. One call takes a third of a hash stream's time. */
function hash64(text: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hash("sha256", text, "hex").slice(0, 16)}`)).toString();
}

/** Returns a host and all domains above it: `a.b.org` → `a.b.org`, `b.org`, `org`. */
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

/**
 * A URL's identity in the frontier: its canonical text and the hashes it is keyed by. Canonical means
 * WHATWG-parsed, without fragment, user and password, and with an empty query dropped; nothing that could
 * change which resource is meant is touched (no sorting of queries, no stripping of `www.`).
 */
import { createHash } from "node:crypto";
import type { HostHash, UrlHash } from "./ids.ts";
import { servicePortWords } from "./ip/service-ports.ts";
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
  const url = parsed.href;
  if (url.length > maxCanonicalUrlLength) return "too-long";
  return { url, host, hostHash: hostHashOf(host), urlHash: hash64(url) as UrlHash };
}

export function hostHashOf(host: string): HostHash {
  return hash64(host) as HostHash;
}

/** The first 64 bits of SHA-256 as a signed decimal: Postgres' bigint. */
function hash64(text: string): string {
  return createHash("sha256").update(text).digest().readBigInt64BE(0).toString();
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

/**
 * Resolves references to absolute crawlable URLs (WHATWG URL, octets as in RFC 3986 section 6.2.2) within the messages'
 * bounds.
 */
import { canonicalEscapes, canParseUrl } from "#core/ip/url-host";
import { maxUrlLength } from "#protocol/fields";

/** Returns an http(s) URL without fragment, user and password, of at most 2048 characters, or null. */
export function resolveUrl(reference: string, base: string): string | null {
  const trimmed = reference.trim();
  if (trimmed.length > 4 * maxUrlLength || !canParseUrl(trimmed, base)) return null;
  const url = new URL(trimmed, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  url.hash = "";
  url.username = "";
  url.password = "";
  const canonical = canonicalEscapes(url.href);
  return canonical.length > maxUrlLength ? null : canonical;
}

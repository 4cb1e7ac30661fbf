/**
 * A URL's host as the frontier, leases and connections name it: a name in lower case without a trailing dot, or
 * a literal address without brackets (WHATWG URL section 3.5 writes IPv6 in brackets).
 */

/** Throws a TypeError for text that is no URL. */
export function urlHost(url: URL | string): string {
  const { hostname } = typeof url === "string" ? new URL(url) : url;
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

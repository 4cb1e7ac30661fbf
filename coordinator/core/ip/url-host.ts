/**
 * What a URL says of its authority. Its host as the frontier, leases and connections name it: a name in lower case
 * without a trailing dot, or a literal address without brackets (WHATWG URL section 3.5 writes IPv6 in brackets).
 */
import { parseAddress } from "./address.ts";

/** User and password, and what stands before them: of http also without slashes, as WHATWG URL reads it. */
const userinfo = /^(\s*(?:https?:[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}))[^/\\?#]*@/i;

/**
 * A URL or a reference without user and password, and otherwise as it stands: they are nobody's business but of
 * whoever wrote them there.
 */
export function withoutUser(text: string): string {
  return text.includes("@") ? text.replace(userinfo, "$1") : text;
}

/** Throws a TypeError for text that is no URL. */
export function urlHost(url: URL | string): string {
  const { hostname } = typeof url === "string" ? new URL(url) : url;
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

const hostLabel = /^[a-z0-9_-]{1,63}$/;

/**
 * Whether a text is a host in that form: labels of letters, digits, hyphens and underscores in lower case (names beyond
 * ASCII as xn--; RFC 1035 section 2.3.4 for the lengths), or a literal address. The URL standard allows more in a host
 * (`a!b`, `a'b`), which no host of the web has and nobody's header or argument is to hold.
 */
export function isHostName(text: string): boolean {
  if (text.length > 253 || text !== text.toLowerCase()) return false;
  return parseAddress(text) !== null || text.split(".").every((label) => hostLabel.test(label));
}

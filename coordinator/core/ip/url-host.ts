/**
 * What a URL says of its authority. Its host as the frontier, leases and connections name it: a name in lower case
 * without a trailing dot, or a literal address without brackets (WHATWG URL section 3.5 writes IPv6 in brackets).
 */
import { isUtf8 } from "node:buffer";
import { parseAddress } from "./address.ts";

/**
 * User and password, and what stands before them, as WHATWG URL reads it: behind control characters and blanks, and of
 * http and ftp also without slashes.
 */
const userinfo = /^([^!-\uffff]*(?:(?:https?|ftp|wss?):[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}))[^/\\?#]*@/i;

/** The same of URLs in the middle of a text, which blanks, quotes and brackets end. */
const anyUserinfo = /((?:\b[a-z][a-z0-9+.-]{0,30}:)?[/\\]{2,})[^/\\?#\s"'<>,;]*@/gi;

/**
 * A URL or a reference without user and password, and otherwise as it stands: they are nobody's business but of
 * whoever wrote them there.
 */
export function withoutUser(text: string): string {
  if (!text.includes("@")) return text;
  // The standard passes over these wherever they stand, in `ht\ttps:` too.
  return text.replace(/[\t\r\n]+/g, "").replace(userinfo, "$1");
}

/** A text that may hold several URLs, such as a `Link` header, without users and passwords. */
export function withoutUsers(text: string): string {
  return text.includes("@") ? text.replace(anyUserinfo, "$1") : text;
}

/**
 * The text of an HTTP field that holds URLs, given as ISO-8859-1 as parsers give it. Sites send paths in it as they are in
 * their files: UTF-8 where the bytes are that (as browsers have it), else ISO-8859-1.
 */
export function urlTextOf(field: string): string {
  if (!/[\x80-\xff]/.test(field) || /[^\0-\xff]/.test(field)) return field;
  const bytes = Buffer.from(field, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : field;
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

/**
 * Whether a text is a URL (WHATWG URL), as `URL.canParse` should tell: in Node 20 that says no to whatever holds a
 * letter such as ü, once it was called some thousand times and has been compiled.
 */
export function canParseUrl(text: string, base?: string | URL): boolean {
  if (hasImpossibleHost(text)) return false;
  try {
    new URL(text, base);
    return true;
  } catch {
    return false;
  }
}

/** Code points of a label in other letters than ASCII; in ASCII it has 63 octets (RFC 1035), some of which say so. */
const maxLabel = 126;

/** Of a whole name, which has 253. */
const maxName = 506;

/**
 * True: the text names a host that no resolver can have, in letters that are not ASCII. Parsing such a name takes time
 * by the square of its length (Punycode, RFC 3492): 35 ms for 2,000 letters, where one message may hold thousands.
 */
function hasImpossibleHost(text: string): boolean {
  const host = namedHost.exec(withoutBreaks(text))?.[1];
  if (host === undefined || host.length <= maxLabel) return false;
  const name = unescaped(host.slice(host.lastIndexOf("@") + 1));
  if (isAscii(name)) return false;
  return name.length > 2 * maxName || name.split(labelEnd).some((label) => [...label].length > maxLabel);
}

/** Up to the first slash, question mark or hash after the scheme; with any name and password. */
const namedHost = /^[\0-\x20]*(?:(?:https?|wss?|ftp):[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,})([^/\\?#]*)/i;

const labelEnd = /[.\u3002\uff0e\uff61]/;

/** Tabs and line ends count for nothing in a URL, wherever they are. */
const withoutBreaks = (text: string) => (/[\t\n\r]/.test(text) ? text.replace(/[\t\n\r]+/g, "") : text);

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false;
  return true;
}

function unescaped(host: string): string {
  if (!host.includes("%")) return host;
  try {
    return decodeURIComponent(host);
  } catch {
    // The parser refuses it: it is not UTF-8.
    return host;
  }
}

/** A host name or address as it stands in a URL or a Host header: IPv6 in brackets (RFC 3986 section 3.2.2). */
export const hostInUrl = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** Of a canonical URL. */
export const withoutScheme = (url: string): string => url.slice(url.indexOf("//"));

/** A URL, a URL with everything below it, or a host. `of`: without its scheme and, of a prefix, its last slash; or the host's name. */
export interface SitePart {
  readonly scope: "url" | "prefix" | "host";
  readonly of: string;
}

/** Whether a canonical URL lies in the part. A prefix ends with a path segment: `//host/a` covers `/a`, `/a?b` and `/a/b`, not `/ab`. */
export function isInPart({ scope, of }: SitePart, url: string): boolean {
  if (scope === "host") return urlHost(url) === of;
  const rest = withoutScheme(url);
  return rest === of || (scope === "prefix" && rest.startsWith(of) && /^[/?]/.test(rest.slice(of.length)));
}

/**
 * The host of a URL, in the form that the frontier, leases and connections use: in lower case without a trailing dot, or an
 * address without brackets (WHATWG URL section 3.5 writes IPv6 in brackets).
 */
import { isUtf8 } from "node:buffer";
import { parseAddress } from "./address.ts";

/**
 * Matches user and password with everything before them, as WHATWG URL parses it: control characters and blanks may come
 * first, and the slashes may be missing for http and ftp.
 */
const userinfo = /^([^!-\uffff]*(?:(?:https?|ftp|wss?):[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}))[^/\\?#]*@/i;

/** Matches the same in URLs within a text, which end at blanks, quotes and brackets. */
const anyUserinfo = /((?:\b[a-z][a-z0-9+.-]{0,30}:)?[/\\]{2,})[^/\\?#\s"'<>,;]*@/gi;

/** Removes user and password from a URL or reference and leaves the rest unchanged. */
export function withoutUser(text: string): string {
  if (!text.includes("@")) return text;
  // The URL standard ignores these characters everywhere, even in `ht\ttps:`.
  return text.replace(/[\t\r\n]+/g, "").replace(userinfo, "$1");
}

/** Removes users and passwords from a text that may hold several URLs, such as a `Link` header. */
export function withoutUsers(text: string): string {
  return text.includes("@") ? text.replace(anyUserinfo, "$1") : text;
}

/**
 * Decodes an HTTP field with URLs, which parsers decode as ISO-8859-1. Sites send the raw bytes of their file names. These
 * are taken as UTF-8 if they are valid UTF-8 (as browsers do), else as ISO-8859-1.
 */
export function urlTextOf(field: string): string {
  if (!/[\x80-\xff]/.test(field) || /[^\0-\xff]/.test(field)) return field;
  const bytes = Buffer.from(field, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : field;
}

/** Throws a TypeError when the text is not a URL. */
export function urlHost(url: URL | string): string {
  const { hostname } = typeof url === "string" ? new URL(url) : url;
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

const hostLabel = /^[a-z0-9_-]{1,63}$/;

/**
 * Whether a text is a host in that form: lower-case labels of letters, digits, hyphens and underscores (xn-- for other
 * scripts; lengths by RFC 1035 section 2.3.4), or an address. The URL standard allows more (`a!b`, `a'b`), which no real host
 * uses and no header or argument should hold.
 */
export function isHostName(text: string): boolean {
  if (text.length > 253 || text !== text.toLowerCase()) return false;
  return parseAddress(text) !== null || text.split(".").every((label) => hostLabel.test(label));
}

/** Replaces `URL.canParse`, which in Node 20 returns false for any non-ASCII text once it has been optimised. */
export function canParseUrl(text: string, base?: string | URL): boolean {
  if (hasImpossibleHost(text)) return false;
  try {
    new URL(text, base);
    return true;
  } catch {
    return false;
  }
}

/** Maximum number of code points in a non-ASCII label. An ASCII label has 63 octets (RFC 1035), including the prefix. */
const maxLabel = 126;

/** Maximum for a whole name, which has 253 octets in ASCII. */
const maxName = 506;

/**
 * Whether the text names a non-ASCII host that no resolver can have. Parsing such a name takes quadratic time (Punycode, RFC
 * 3492): 35 ms for 2,000 letters, and a message may hold thousands of names.
 */
function hasImpossibleHost(text: string): boolean {
  const host = namedHost.exec(withoutBreaks(text))?.[1];
  if (host === undefined || host.length <= maxLabel) return false;
  const name = unescaped(host.slice(host.lastIndexOf("@") + 1));
  if (isAscii(name)) return false;
  return name.length > 2 * maxName || name.split(labelEnd).some((label) => [...label].length > maxLabel);
}

/** Matches everything from the scheme up to the first slash, question mark or hash, including any user and password. */
const namedHost = /^[\0-\x20]*(?:(?:https?|wss?|ftp):[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,})([^/\\?#]*)/i;

const labelEnd = /[.\u3002\uff0e\uff61]/;

/** URLs ignore tabs and line ends everywhere. */
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
    // The parser refuses text that is not UTF-8.
    return host;
  }
}

/** Returns the host as written in a URL or Host header, with IPv6 in brackets (RFC 3986 section 3.2.2). */
export const hostInUrl = (host: string): string => (host.includes(":") ? `[${host}]` : host);

export const withoutScheme = (url: string): string => url.slice(url.indexOf("//"));

/** A URL, a URL prefix or a host. `of` omits the scheme, and the last slash of a prefix. */
export interface SitePart {
  readonly scope: "url" | "prefix" | "host";
  readonly of: string;
}

/**
 * Whether a canonical URL is in the part. A prefix ends at a path segment: `//host/a` covers `/a`, `/a?b` and `/a/b`, but not
 * `/ab`.
 */
export function isInPart({ scope, of }: SitePart, url: string): boolean {
  if (scope === "host") return urlHost(url) === of;
  const rest = withoutScheme(url);
  return rest === of || (scope === "prefix" && rest.startsWith(of) && /^[/?]/.test(rest.slice(of.length)));
}

/** Takes a WHATWG-parsed URL or its path. Idempotent; never lengthens the text, and returns it if nothing changes. */
export function canonicalEscapes(text: string): string {
  return text.includes("%") && otherSpelling.test(text) ? text.replace(octets, canonicalOctet) : text;
}

/** Matches an encoded unreserved character or lower-case digits. Most encoded octets are neither. */
const otherSpelling = /%(?:[0-9A-Fa-f]?[a-f]|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/;

/** Matches an encoded octet, or a `%` that begins none together with the octet that follows it. */
const octets = /%(?:([0-9A-Fa-f]{2})|[0-9A-Fa-f]?(?:%[0-9A-Fa-f]{2})?)/g;

function canonicalOctet(whole: string, digits: string | undefined): string {
  if (digits === undefined) {
    const at = whole.lastIndexOf("%");
    return at === 0 ? whole : whole.slice(0, at) + whole.slice(at).toUpperCase();
  }
  const character = String.fromCharCode(Number.parseInt(digits, 16));
  return unreserved.test(character) ? character : whole.toUpperCase();
}

const unreserved = /[\w.~-]/;

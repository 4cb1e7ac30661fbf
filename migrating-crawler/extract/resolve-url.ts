/** Resolves references to absolute crawlable URLs (WHATWG URL, octets as in RFC 3986 section 6.2.2) that fit the messages. */
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

// Resolves many references against one base with the same result as `resolveUrl` (WHATWG URL), at a fraction of its cost for
// plain references, which most are. Any reference that parsing might change is passed to `resolveUrl`.

export type ResolveReference = (reference: string) => string | null;

export function linkResolver(base: string): ResolveReference {
  const parts = basePartsOf(base);
  if (parts === null) return (reference) => resolveUrl(reference, base);
  return (reference) => {
    const end = plainEnd(reference);
    if (end === notPlain) return resolveUrl(reference, base);
    const plain = end === reference.length ? reference : reference.slice(0, end);
    const url = joined(plain, parts);
    return url === null ? resolveUrl(reference, base) : canonicalEscapes(url);
  };
}

interface BaseParts {
  readonly scheme: string;
  readonly origin: string;
  /** Origin and path, up to and including the last slash. */
  readonly folder: string;
  readonly file: string;
  readonly whole: string;
}

function basePartsOf(base: string): BaseParts | null {
  if (!canParseUrl(base)) return null;
  const url = new URL(base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  const file = url.origin + url.pathname;
  return {
    scheme: url.protocol,
    origin: url.origin,
    folder: file.slice(0, file.lastIndexOf("/") + 1),
    file,
    whole: file + url.search,
  };
}

/** References up to this length give results within the limit of `resolveUrl`. */
const maxPlainCharacters = 1024;

function joined(plain: string, base: BaseParts): string | null {
  const first = plain.charCodeAt(0);
  if (first === slash) {
    if (plain.charCodeAt(1) === slash) return absolute(plain, 2, base.scheme);
    return isPlainPath(plain, 0) ? base.origin + plain : null;
  }
  if (plain.startsWith("http")) {
    if (plain.startsWith("://", 4)) return absolute(plain, 7, "");
    if (plain.startsWith("s://", 4)) return absolute(plain, 8, "");
  }
  if (plain === "") return base.whole.length < maxPlainCharacters ? base.whole : null;
  if (first === question) return base.file.length < maxPlainCharacters ? base.file + plain : null;
  // A reference with a colon may begin with a scheme.
  const isRelative = base.folder.length < maxPlainCharacters && !plain.includes(":") && isPlainPath(plain, 0);
  return isRelative ? base.folder + plain : null;
}

/** Reads `//host/path`, starting at the host. */
function absolute(plain: string, from: number, scheme: string): string | null {
  let at = from;
  let labelFrom = from;
  for (; at < plain.length; at++) {
    const code = plain.charCodeAt(at);
    if (code === slash || code === question) break;
    if (code === dot) {
      if (at === labelFrom) return null;
      labelFrom = at + 1;
    } else if (!isHostCode(code)) return null;
  }
  const isName = isLowerLetter(plain.charCodeAt(labelFrom)) && labelFrom < at;
  if (!isName || at - from > maxHostCharacters || plain.startsWith("xn--", from) || plain.includes(".xn--"))
    return null;
  if (at === plain.length) return `${scheme}${plain}/`;
  if (plain.charCodeAt(at) === question) return `${scheme}${plain.slice(0, at)}/${plain.slice(at)}`;
  return isPlainPath(plain, at) ? scheme + plain : null;
}

const maxHostCharacters = 200;
const [slash, question, dot, hash] = [0x2f, 0x3f, 0x2e, 0x23];

/** 1 for characters that need no escaping in a path or query. */
const isPlainCode = new Uint8Array(128);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&()*+,;=:@/%?") {
  isPlainCode[character.charCodeAt(0)] = 1;
}

const notPlain = -1;

/** Returns where the fragment starts, or the end. Returns `notPlain` if the reference is too long or has an unusual character. */
function plainEnd(reference: string): number {
  if (reference.length > maxPlainCharacters) return notPlain;
  for (let at = 0; at < reference.length; at++) {
    const code = reference.charCodeAt(at);
    if (code === hash) return at;
    if (code >= 128 || isPlainCode[code] === 0) return notPlain;
  }
  return reference.length;
}

/** Checks that no segment from here on is, or could be, a dot segment (`%2e`). */
function isPlainPath(plain: string, from: number): boolean {
  let isSegmentStart = true;
  for (let at = from; at < plain.length; at++) {
    const code = plain.charCodeAt(at);
    if (code === question) return true;
    if (isSegmentStart && (code === dot || code === 0x25)) return false;
    isSegmentStart = code === slash;
  }
  return true;
}

const isHostCode = (code: number) => isLowerLetter(code) || (code >= 0x30 && code <= 0x39) || code === 0x2d;
const isLowerLetter = (code: number) => code >= 0x61 && code <= 0x7a;

// Reads the targets of a relation from `Link` headers (RFC 8288), as written.

export type LinkHeader = string | readonly string[] | undefined;

const maxHeaders = 20;
const maxCharacters = 8192;

export function linkTargets(header: LinkHeader, relation: string): string[] {
  const states = new RegExp(
    `;\\s*rel\\s*=\\s*(?:"(?:[^"]*\\s)?${relation}(?:\\s[^"]*)?"|${relation}(?=\\s|[;,]|$))`,
    "i",
  );
  const links = [header ?? []]
    .flat()
    .slice(0, maxHeaders)
    .flatMap((value) => [...value.slice(0, maxCharacters).matchAll(/<([^<>]*)>([^<]*)/g)]);
  return links.flatMap(([, target, parameters]) => (states.test(parameters!) ? [target!] : []));
}

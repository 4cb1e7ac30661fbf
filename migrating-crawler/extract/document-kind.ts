/**
 * Recognises a document by its first bytes, not by its name or header. Pages are indexed. Sitemaps (sitemaps.org protocol 0.9,
 * as XML or plain text) and feeds (RSS 0.9x, 1.0, 2.0, Atom 0.3 and RFC 4287) list URLs. Any other XML document or compressed
 * file is ignored.
 */
import type { PageExtract } from "#protocol/result";
import { type DecodedText, decodeText } from "./charset.ts";
import { isGzip, peekGzip } from "./unpack-gzip.ts";

type DocumentKind = NonNullable<PageExtract["kind"]> | "other";

export type ListForm = "urlset" | "sitemapindex" | "text" | "rss" | "rdf" | "atom";

/** Enough for a prolog and the start of a root element, or for several lines of text. */
const headBytes = 16 * 1024;

const headLines = 50;

/** An HTML document that starts with white space, a byte order mark or one of these tags needs no closer look. */
const beginsAsPage = /^[\s\xef\xbb\xbf]*<(?:!doctype\s+html|html|head|body|div|p|table)\b/i;

const xmlTypes = /^(?:application|text)\/(?:xml|rss|rdf|atom|[a-z0-9.-]+\+xml)$/;
const pageTypes = new Set(["application/xhtml+xml"]);

export function documentKind(document: {
  readonly contentType: string;
  readonly bytes: Buffer;
}): DocumentKind {
  const packed = isGzip(document.bytes);
  const head = packed ? peekGzip(document.bytes, headBytes) : document.bytes.subarray(0, headBytes);
  if (!packed && beginsAsPage.test(head.toString("latin1", 0, 256))) return "page";
  const { text } = xmlText(head, document.contentType);
  const form = listForm(text);
  if (form !== null) return kindOf(form);
  if (packed) return "other";
  const type = mediaType(document.contentType);
  const isXml = xmlTypes.test(type) && !pageTypes.has(type);
  return isXml && xmlRoot(text)?.name !== "html" ? "other" : "page";
}

export function kindOf(form: ListForm): "sitemap" | "feed" {
  return form === "urlset" || form === "sitemapindex" || form === "text" ? "sitemap" : "feed";
}

export function listForm(text: string): ListForm | null {
  const root = xmlRoot(text);
  if (root === null) return isUrlText(text) ? "text" : null;
  switch (root.name) {
    case "urlset":
    case "sitemapindex":
    case "rss":
      return root.name;
    case "rdf":
      return /purl\.org\/(?:rss|net\/rss)|netscape\.com\/rdf/i.test(root.tag) ? "rdf" : null;
    case "feed":
      return /["'][^"']*atom[^"']*["']/i.test(root.tag) ? "atom" : null;
    default:
      return null;
  }
}

/** Every line must be an absolute http(s) URL (sitemaps protocol, "Text file"). */
function isUrlText(text: string): boolean {
  const lines = text
    .slice(0, headBytes)
    .split(/\r\n|\r|\n/, headLines)
    .map((line) => line.trim())
    .filter((line) => line !== "" && line !== "\ufeff");
  return lines.length > 0 && lines.every((line) => /^\ufeff?https?:\/\/[^\s/]\S*$/i.test(line));
}

// Decodes XML by its byte order mark, the header's charset or the XML declaration (RFC 7303 section 3, XML 1.0 appendix F).
// Otherwise, decodes it like any other text.

const declaration = /^\s*<\?xml\s[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z][\w.-]{0,39})["']/;

export function xmlText(bytes: Buffer, contentType: string): DecodedText {
  const stated = /;\s*charset\s*=/i.test(contentType);
  const charset = stated ? null : (unmarkedUtf16(bytes) ?? declaredCharset(bytes));
  return decodeText(bytes, charset === null ? contentType : `application/xml; charset=${charset}`);
}

/** Recognises `<?` or `<x` in UTF-16 without a byte order mark. */
function unmarkedUtf16(bytes: Buffer): string | null {
  if (bytes[0] === 0x3c && bytes[1] === 0) return "utf-16le";
  return bytes[0] === 0 && bytes[1] === 0x3c ? "utf-16be" : null;
}

/** A declaration that is readable as ASCII rules out UTF-16, whatever it says. */
function declaredCharset(bytes: Buffer): string | null {
  const stated = declaration.exec(bytes.toString("latin1", 0, 512))?.[1] ?? null;
  return stated !== null && /^utf-?16/i.test(stated) ? null : stated;
}

/** Returns the media type's essence (WHATWG MIME Sniffing) in lower case. */
export const mediaType = (contentType: string): string => contentType.split(";", 1)[0]!.trim().toLowerCase();

/**
 * Finds the root element, which identifies an XML document (XML 1.0 section 2.8). The prolog, including the document type and
 * its internal subset, is skipped, so that no declaration is mistaken for an element. The time is linear in the prolog's
 * length.
 */

interface XmlRoot {
  readonly name: string;
  /** The namespace prefix with its colon, or an empty string. */
  readonly prefix: string;
  /** The start tag, cut at a maximum length, for its namespace declarations. */
  readonly tag: string;
  readonly at: number;
}

const maxTagCharacters = 4096;

const startTag = /<([\p{L}_][\p{L}\p{N}_.-]{0,60}:)?([\p{L}_][\p{L}\p{N}_.-]{0,60})(?=[\s/>])/uy;

export function xmlRoot(text: string): XmlRoot | null {
  for (let at = pastBlanks(text, 0); text[at] === "<"; at = pastBlanks(text, at)) {
    const next = pastMarkup(text, at);
    if (next === null) return rootAt(text, at);
    if (next < 0) return null;
    at = next;
  }
  return null;
}

function rootAt(text: string, at: number): XmlRoot | null {
  startTag.lastIndex = at;
  const found = startTag.exec(text);
  if (found === null) return null;
  const tag = text.slice(at, at + maxTagCharacters);
  const end = tag.indexOf(">");
  return {
    prefix: found[1] ?? "",
    name: found[2]!.toLowerCase(),
    tag: end < 0 ? tag : tag.slice(0, end),
    at,
  };
}

function pastBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && (text.charCodeAt(at) <= 0x20 || text[at] === "\ufeff")) at++;
  return at;
}

/**
 * Returns the position after a processing instruction, comment or declaration, -1 if it does not end, or null if the text at
 * `at` is none of these.
 */
function pastMarkup(text: string, at: number): number | null {
  if (text.startsWith("<?", at)) return behind(text, "?>", at + 2);
  if (text.startsWith("<!--", at)) return behind(text, "-->", at + 4);
  if (text.startsWith("<!", at)) return pastDeclaration(text, at);
  return null;
}

function pastDeclaration(text: string, at: number): number {
  const end = text.indexOf(">", at);
  const subset = text.indexOf("[", at);
  if (end < 0 || subset < 0 || end < subset) return end < 0 ? -1 : end + 1;
  const close = /\]\s*>/g;
  close.lastIndex = subset;
  return close.exec(text) === null ? -1 : close.lastIndex;
}

function behind(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? -1 : at + mark.length;
}

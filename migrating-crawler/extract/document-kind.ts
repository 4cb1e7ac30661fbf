/**
 * What a document is for, told by what it begins with and not by its name or header: pages are indexed,
 * sitemaps (sitemaps.org protocol 0.9, in XML or as plain text) and feeds (RSS 0.9x, 1.0, 2.0; Atom 0.3 and
 * RFC 4287) name URLs. An XML document of any other kind, and packed bytes that hold none of these, are
 * nothing that we read.
 */
import type { PageExtract } from "#protocol/result";
import { type DecodedText, decodeText } from "./charset.ts";
import { isGzip, peekGzip } from "./unpack-gzip.ts";

type DocumentKind = NonNullable<PageExtract["kind"]> | "other";

/** The forms in which URLs are listed. */
export type ListForm = "urlset" | "sitemapindex" | "text" | "rss" | "rdf" | "atom";

/** So many bytes are looked at: a prolog and a root element's start, or some lines of a text. */
const headBytes = 16 * 1024;

/** The lines of a plain text that are looked at. */
const headLines = 50;

/** Every document begins with a blank, a byte order mark or these when it is HTML; the rest is looked at closer. */
const beginsAsPage = /^[\s\xef\xbb\xbf]*<(?:!doctype\s+html|html|head|body|div|p|table)\b/i;

const xmlTypes = /^(?:application|text)\/(?:xml|rss|rdf|atom|[a-z0-9.-]+\+xml)$/;
const pageTypes = new Set(["application/xhtml+xml"]);

/** `contentType` as in the header; `bytes` as fetched, content codings undone. */
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

/** The form of a list of URLs, or null for every other document. */
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

/** Every line is an absolute http(s) URL and nothing else (sitemaps protocol, "Text file"). */
function isUrlText(text: string): boolean {
  const lines = text
    .slice(0, headBytes)
    .split(/\r\n|\r|\n/, headLines)
    .map((line) => line.trim())
    .filter((line) => line !== "" && line !== "\ufeff");
  return lines.length > 0 && lines.every((line) => /^\ufeff?https?:\/\/[^\s/]\S*$/i.test(line));
}

// XML bytes to text: byte order mark, then the header's charset, then the XML declaration (RFC 7303 section
// 3, XML 1.0 appendix F), then as any other text.

const declaration = /^\s*<\?xml\s[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z][\w.-]{0,39})["']/;

export function xmlText(bytes: Buffer, contentType: string): DecodedText {
  const stated = /;\s*charset\s*=/i.test(contentType);
  const charset = stated ? null : (unmarkedUtf16(bytes) ?? declaredCharset(bytes));
  return decodeText(bytes, charset === null ? contentType : `application/xml; charset=${charset}`);
}

/** `<?` or `<x` in UTF-16 without a byte order mark. */
function unmarkedUtf16(bytes: Buffer): string | null {
  if (bytes[0] === 0x3c && bytes[1] === 0) return "utf-16le";
  return bytes[0] === 0 && bytes[1] === 0x3c ? "utf-16be" : null;
}

/** A declaration that can be read as ASCII does not stand in UTF-16, whatever it says. */
function declaredCharset(bytes: Buffer): string | null {
  const stated = declaration.exec(bytes.toString("latin1", 0, 512))?.[1] ?? null;
  return stated !== null && /^utf-?16/i.test(stated) ? null : stated;
}

/** The media type of a Content-Type header without its parameters, in lower case (WHATWG MIME Sniffing, "essence"). */
export const mediaType = (contentType: string): string => contentType.split(";", 1)[0]!.trim().toLowerCase();

/**
 * The root element of an XML document (XML 1.0 section 2.8): what says what the document is. The prolog is
 * passed over, document type and internal subset included, so that nothing declared there is ever read as
 * an element. Linear in the prolog's length.
 */

interface XmlRoot {
  /** Without its prefix, in lower case. */
  readonly name: string;
  /** The namespace prefix with its colon, or nothing. */
  readonly prefix: string;
  /** The start tag's beginning: namespaces are declared there. */
  readonly tag: string;
  /** Where the start tag begins. */
  readonly at: number;
}

/** More of a start tag is not looked at. */
const maxTagCharacters = 4096;

const startTag = /<([\p{L}_][\p{L}\p{N}_.-]{0,60}:)?([\p{L}_][\p{L}\p{N}_.-]{0,60})(?=[\s/>])/uy;

/** Null: no element before anything else, so no XML. */
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

/** Behind a processing instruction, comment or declaration; -1 when it has no end; null for anything else. */
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

/**
 * What a document is for, told by what it begins with and not by its name or header: pages are indexed,
 * sitemaps (sitemaps.org protocol 0.9, in XML or as plain text) and feeds (RSS 0.9x, 1.0, 2.0; Atom 0.3 and
 * RFC 4287) name URLs. An XML document of any other kind, and packed bytes that hold none of these, are
 * nothing that we read.
 */
import type { PageExtract } from "#protocol/result";
import { mediaType } from "./media-type.ts";
import { isGzip, peekGzip } from "./unpack-gzip.ts";
import { xmlRoot } from "./xml-root.ts";
import { xmlText } from "./xml-text.ts";

export type DocumentKind = NonNullable<PageExtract["kind"]> | "other";

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

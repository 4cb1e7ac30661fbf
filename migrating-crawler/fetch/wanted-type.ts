/**
 * Decides which documents are read: HTML, XHTML, plain text, XML that may be a feed or sitemap, and compressed sitemaps. A
 * credible header decides, or else the first bytes (WHATWG MIME Sniffing, sections 5, 7 and 8). Unlike in the standard, every
 * body is examined, because programs and images are served as HTML. Besides, HTML served as plain text is read as HTML unless
 * the site says `nosniff`, and comments are skipped.
 */
import { mediaType } from "../extract/document-kind.ts";
import { isGzip, peekGzip } from "../extract/unpack-gzip.ts";
import type { AnswerHeaders } from "./exchange.ts";

/** `leave`: not wanted. `read`: wanted, according to the header. `look`: the first bytes decide. */
type HeaderVerdict = "leave" | "read" | "look";

const pageTypes = new Set(["text/html", "application/xhtml+xml", "text/plain"]);
const listTypes = /^(?:application|text)\/(?:x-)?(?:xml|(?:rss|atom|rdf|feed|sitemap)(?:\+xml)?)$/;
/** Types that servers use for files of an unknown type, and for compressed sitemaps. */
const vagueTypes =
  /^(?:|\*\/\*|(?:unknown|application)\/unknown|(?:application|binary)\/(?:x-)?(?:octet-stream|binary)|application\/(?:x-)?gzip|application\/force-download)$/;

/** Returns the last well-formed value (WHATWG Fetch, "extract a MIME type") with its parameters, or "". */
export function contentTypeOf(header: string | readonly string[] | undefined): string {
  const values = [header ?? []].flat().flatMap((value) => value.split(","));
  const wellFormed = values.filter((value) => /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/.test(mediaType(value)));
  return (wellFormed.at(-1) ?? "").trim();
}

export function judgeHeader(contentType: string, headers: AnswerHeaders): HeaderVerdict {
  const type = mediaType(contentType);
  if (listTypes.test(type)) return "read";
  if (vagueTypes.test(type)) return "look";
  if (!pageTypes.has(type)) return "leave";
  return /^\s*attachment\b/i.test(String(headers["content-disposition"] ?? "")) ? "leave" : "read";
}

/**
 * Returns the type with the header's charset, or null if the body is not wanted. `head` contains the decoded first bytes,
 * `headBytes` of them if available.
 */
export function typeOfBody(head: Buffer, contentType: string, headers: AnswerHeaders): string | null {
  const declared = mediaType(contentType);
  const seen = sniffMediaType(head, /charset\s*=\s*"?utf-?16/i.test(contentType));
  if (seen === "application/gzip") return isText(peekGzip(head, head.length), false) ? seen : null;
  if (!isReadableType(seen)) return null;
  const isVague = vagueTypes.test(declared);
  const isHiddenHtml =
    declared === "text/plain" &&
    seen === "text/html" &&
    !/nosniff/i.test(String(headers["x-content-type-options"]));
  if (!isVague && !isHiddenHtml) return contentType;
  const charset = /;\s*charset\s*=\s*[^;]+/i.exec(contentType)?.[0] ?? "";
  return seen + charset;
}

const isReadableType = (seen: string) => seen.startsWith("text/") || seen === "application/xml";

export const isReadable = (head: Buffer): boolean => isReadableType(sniffMediaType(head));

/** Judges by the first bytes alone. `application/octet-stream` means neither text nor a known format. */
export function sniffMediaType(head: Buffer, isUtf16 = false): string {
  if (isGzip(head)) return "application/gzip";
  const known = signatures.find(([magic, , at = 0]) => head.subarray(at).indexOf(magic) === 0);
  if (known) return known[1];
  const start = head.toString("latin1").replaceAll("\0", "").replace(beforeMarkup, "");
  const isHtml = htmlStart.test(start);
  if (!isText(head, isHtml) && !isUtf16) return "application/octet-stream";
  if (isHtml) return "text/html";
  return xmlStart.test(start) ? "application/xml" : "text/plain";
}

const beforeMarkup = /^(?:\xef\xbb\xbf|\xfe\xff|\xff\xfe|\s|<!--(?:(?!-->)[\s\S])*-->)+/;
const htmlNames =
  "html|head|body|script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|meta|link|base|main|article|section|span|ul|center";
const htmlStart = new RegExp(`^<(?:!doctype\\s+html|${htmlNames}|!--)(?:[\\s>/-]|$)`, "i");
const xmlStart = /^<(?:\?xml|!doctype|(?:[\w-]+:)?(?:urlset|sitemapindex|rss|feed|rdf))\b/i;

/** Text has few control characters, except for the zero bytes of UTF-16. Markup may have more. */
function isText(head: Buffer, isMarkup: boolean): boolean {
  const zeros = { even: 0, odd: 0 };
  let controls = 0;
  for (const [at, byte] of head.entries()) {
    if (byte >= 0x20 || byte === 0x1b || (byte >= 0x09 && byte <= 0x0d)) continue;
    controls++;
    if (byte === 0) zeros[at % 2 === 0 ? "even" : "odd"]++;
  }
  const hasMark = head.length >= 2 && [0xfeff, 0xfffe].includes(head.readUInt16BE(0));
  const zeroShare = Math.max(zeros.even, zeros.odd) / Math.max(1, head.length / 2);
  if (hasMark || (isMarkup && zeroShare > 0.8)) return true;
  return controls * (isMarkup ? 5 : 50) <= head.length;
}

/** The leading bytes, type and offset of formats that are not text or not wanted. */
const signatures: readonly (readonly [magic: Buffer, type: string, at?: number])[] = [
  [Buffer.from("%PDF-"), "application/pdf"],
  [Buffer.from("%!PS-Adobe-"), "application/postscript"],
  [Buffer.from("{\\rtf"), "application/rtf"],
  [Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), "image/png"],
  [Buffer.from("GIF87a"), "image/gif"],
  [Buffer.from("GIF89a"), "image/gif"],
  [Buffer.from("\xff\xd8\xff", "latin1"), "image/jpeg"],
  [Buffer.from("RIFF"), "application/x-riff"],
  [Buffer.from("PK\x03\x04", "latin1"), "application/zip"],
  [Buffer.from("Rar!\x1a\x07", "latin1"), "application/vnd.rar"],
  [Buffer.from("7z\xbc\xaf\x27\x1c", "latin1"), "application/x-7z-compressed"],
  [Buffer.from("BZh"), "application/x-bzip2"],
  [Buffer.from("\xfd7zXZ\x00", "latin1"), "application/x-xz"],
  [Buffer.from("\x28\xb5\x2f\xfd", "latin1"), "application/zstd"],
  [Buffer.from("OggS\x00", "latin1"), "application/ogg"],
  [Buffer.from("ID3"), "audio/mpeg"],
  [Buffer.from("fLaC"), "audio/flac"],
  [Buffer.from("ftyp"), "video/mp4", 4],
  [Buffer.from("\x1a\x45\xdf\xa3", "latin1"), "video/webm"],
  [Buffer.from("wOFF"), "font/woff"],
  [Buffer.from("wOF2"), "font/woff2"],
  [Buffer.from("\x7fELF", "latin1"), "application/x-elf"],
  [Buffer.from("MZ\x90\x00", "latin1"), "application/x-msdownload"],
  [Buffer.from("\x00asm", "latin1"), "application/wasm"],
  [Buffer.from("SQLite format 3\x00", "latin1"), "application/vnd.sqlite3"],
];

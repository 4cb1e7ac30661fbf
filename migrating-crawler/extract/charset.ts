/**
 * Decodes bytes as browsers do (WHATWG HTML, section 13.2.3). The encoding comes from the byte order mark, the header's
 * charset, or the page's own declaration, even a late one. Failing these, valid UTF-8 is recognised, then the byte frequencies
 * decide, and finally windows-1252 applies. @exodus/bytes does the WHATWG decoding, because Node 20 decodes windows-1252
 * wrongly.
 */
import { isAscii, isUtf8 } from "node:buffer";
import { labelToName, TextDecoder as WhatwgDecoder } from "@exodus/bytes/encoding.js";
import { analyse } from "chardet";
import sniffEncoding from "html-encoding-sniffer";
import type { HtmlTag } from "./html-tags.ts";
import { HtmlScanner, type HtmlSink } from "./scan-html.ts";
import { type SourceText, sourceOf, utf8Source } from "./source-text.ts";

export interface DecodedText {
  readonly text: string;
  readonly charset: string;
}

export function decodeText(bytes: Buffer, contentType: string): DecodedText {
  const { source, charset } = decodeSource(bytes, contentType);
  return { text: source.slice(0, source.units.length), charset };
}

export function decodeSource(
  bytes: Buffer,
  contentType: string,
): { readonly source: SourceText; readonly charset: string } {
  const encoding = statedEncoding(bytes, contentType) ?? likelyEncoding(bytes);
  return { source: sourceIn(bytes, encoding), charset: encoding.toLowerCase() };
}

/** Returns the encoding that the byte order mark, the header or the page declares, or null. */
export function statedEncoding(bytes: Buffer, contentType: string): string | null {
  const label = headerCharset(contentType);
  const stated = sniffEncoding(bytes, {
    defaultEncoding: unstated,
    ...(label === null ? {} : { transportLayerEncodingLabel: label }),
  });
  if (stated !== unstated) return stated;
  const late = xmlCharset(bytes) ?? (bytes.length > prescanBytes ? lateLabel(bytes) : null);
  return late === null ? null : readable(labelToName(late));
}

const prescanBytes = 1024;
const unstated = "";

/** Malformed parameters are ignored (RFC 9110, section 5.6.6). */
function headerCharset(contentType: string): string | null {
  const parameters = /;[ \t]*([^\s;=,"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"']+))(?=[\s;,]|$)/g;
  for (const [, name, quoted, plain] of contentType.slice(0, 1000).matchAll(parameters)) {
    if (name!.toLowerCase() === "charset") return quoted ?? plain ?? null;
  }
  return null;
}

function xmlCharset(bytes: Buffer): string | null {
  if (bytes[0] !== 0x3c || bytes[1] !== 0x3f) return null;
  const head = bytes.toString("latin1", 0, 256);
  return /^<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']/.exec(head)?.[1] ?? null;
}

/** A declaration readable as ASCII cannot be in UTF-16, and `x-user-defined` says nothing (WHATWG HTML, section 13.2.3.2). */
function readable(encoding: string | null): string | null {
  if (encoding === null || encoding === "replacement") return null;
  if (encoding.startsWith("UTF-16")) return "UTF-8";
  return encoding === "x-user-defined" ? "windows-1252" : encoding;
}

const minConfidence = 10;

/** Fewer non-ASCII bytes, such as those of quotation marks, are no evidence. */
const minTellingBytes = 8;

function likelyEncoding(bytes: Buffer): string {
  if (isUtf8(bytes) || isUtf8(bytes.subarray(0, endOfWhole(bytes)))) return "UTF-8";
  const text = textBytes(bytes);
  if (!hasTellingBytes(text)) return "windows-1252";
  for (const { name, confidence } of analyse(text)) {
    const encoding = confidence < minConfidence ? null : readable(labelToName(name));
    if (encoding !== null && encoding !== "UTF-8" && canRead(encoding, text)) return encoding;
  }
  return "windows-1252";
}

function hasTellingBytes(text: Buffer): boolean {
  let found = 0;
  for (const byte of text) if (byte >= 0x80 && ++found === minTellingBytes) return true;
  return false;
}

/** Accepts an encoding in which hardly any byte of the text is undefined. */
function canRead(encoding: string, text: Buffer): boolean {
  const strange = new WhatwgDecoder(encoding).decode(text).split("\ufffd").length - 1;
  return strange <= 2 + text.length / 1000;
}

/** Finds the end of the last complete character, because a truncated body may end in the middle of one. */
function endOfWhole(bytes: Buffer): number {
  let at = bytes.length - 1;
  while (at > bytes.length - 4 && at > 0 && (bytes[at]! & 0xc0) === 0x80) at--;
  return Math.max(0, at);
}

function sourceIn(bytes: Buffer, encoding: string): SourceText {
  if (encoding !== "UTF-8") return sourceOf(new WhatwgDecoder(encoding).decode(bytes));
  if (isAscii(bytes)) return sourceOf(bytes.toString("latin1"));
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return utf8Source(marked ? bytes.subarray(3) : bytes);
}

// Finds the encoding of a page whose first 1,024 bytes do not declare it: from a later declaration, at which browsers switch
// the encoding (WHATWG HTML, section 13.2.3.5), or from the bytes of its text. Markup is left out, because it is ASCII and
// looks like English in any encoding.

/** A page that has declared no charset within this many bytes has shown enough of its text. */
const maxBytes = 64 * 1024;

function lateLabel(bytes: Buffer): string | null {
  return new BytesReader(bytes.toString("latin1", 0, maxBytes)).label();
}

const textBytes = (bytes: Buffer): Buffer => new BytesReader(bytes.toString("latin1", 0, maxBytes)).text();

/** Reads in steps, because most late declarations follow soon after the first 1,024 bytes. */
const stepBytes = 2048;

class BytesReader implements HtmlSink {
  readonly isForeign = false;
  readonly #bytes: string;
  readonly #scanner: HtmlScanner;
  #label: string | null = null;
  #text = "";
  #isMarkup = true;

  constructor(bytes: string) {
    this.#bytes = bytes;
    this.#scanner = new HtmlScanner(bytes, this);
  }

  label(): string | null {
    for (let end = stepBytes; this.#label === null && !this.#scanner.isDone; end += stepBytes)
      this.#scanner.scanTo(end);
    return this.#label;
  }

  text(): Buffer {
    this.#scanner.scanTo(this.#bytes.length);
    return Buffer.from(this.#text, "latin1");
  }

  openTag(tag: HtmlTag): void {
    this.#isMarkup = tag.content === "markup" || tag.content === "rcdata";
    if (tag.name === "meta") this.#label ??= this.#metaCharset();
  }

  closeTag(): void {
    this.#isMarkup = true;
  }

  takeText(from: number, to: number): void {
    if (this.#isMarkup) this.#text += `${this.#bytes.slice(from, to)} `;
  }

  #metaCharset(): string | null {
    const charset = this.#scanner.tag.attribute("charset");
    if (charset !== null) return charset.trim().slice(0, 40);
    if (this.#scanner.tag.attribute("http-equiv")?.trim().toLowerCase() !== "content-type") return null;
    const content = (this.#scanner.tag.attribute("content") ?? "").slice(0, 1000);
    return /charset\s*=\s*["']?([^\s"';]{1,40})/i.exec(content)?.[1] ?? null;
  }
}

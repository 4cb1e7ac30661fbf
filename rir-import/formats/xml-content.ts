/**
 * What one XML record holds: nested values by element name, as fast-xml-parser gives them, and the ways to take
 * a text out of them. Entities stay as they are written until a text is taken.
 */
import { XMLParser } from "fast-xml-parser";
import { maxTextLength } from "./text-decoding.ts";

/** An element with children: their values by name, a list where a name comes more than once. */
export type XmlContent = { readonly [name: string]: unknown };

/** One parser for all records: no attributes, no type guessing, no entities beyond the five of XML. */
const parser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  processEntities: false,
  htmlEntities: false,
  removeNSPrefix: true,
  trimValues: true,
});

/** A record's value (content, or a text where it has no children); null when it is not well formed. */
export function parseXmlRecord(name: string, xml: string): unknown {
  try {
    return (parser.parse(xml, true) as XmlContent)[name] ?? null;
  } catch {
    return null;
  }
}

export function isContent(value: unknown): value is XmlContent {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A child element's text, entities decoded; null when it is absent, empty, or not plain text. */
export function textOf(content: XmlContent, name: string): string | null {
  const value = content[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" ? plainText(first) : null;
}

/** A child element's content when it has children; null otherwise. */
export function childOf(content: XmlContent, name: string): XmlContent | null {
  const value = content[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return isContent(first) ? first : null;
}

/** An entity or a control character. */
const marked = /[&\p{Cc}]/u;

/** Entities decoded, control characters as spaces, bounded; null when nothing is left. */
export function plainText(written: string): string | null {
  const text = marked.test(written)
    ? decodeEntities(written)
        .replace(/\p{Cc}+/gu, " ")
        .trim()
    : written;
  return text === "" ? null : text.slice(0, maxTextLength);
}

const namedEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The five entities of XML and character references; anything else stays as it is written. */
function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/g,
    (whole, hex, decimal, name) => {
      if (name) return namedEntities[name as string] ?? whole;
      const code = hex ? Number.parseInt(hex as string, 16) : Number(decimal);
      return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
        ? String.fromCodePoint(code)
        : "";
    },
  );
}

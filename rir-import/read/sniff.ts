/**
 * Recognises a file by its first bytes, whatever its name: the packing by its magic number, the format by the first
 * lines that are not comments. The error says what was found instead, most often a web page.
 */
import { parse } from "node-html-parser";
import { SourceFileError } from "#core/errors";
import { parseAddress } from "#core/ip/address";
import type { PublishedFormat } from "../formats/published.ts";

type Packing = "plain" | "gzip" | "zip";
export type RegistryFormat = "rpsl" | "delegated" | "arin-xml" | "iana-xml";
/** `geofeeds` stands for all geofeeds that registry objects name, which are reported as one. */
export type SourceFormat = RegistryFormat | PublishedFormat | "geofeeds";

/** More than the longest known comment header (APNIC's: 2 KB). */
export const sniffBytes = 65_536;

export function sniffPacking(start: Buffer): Packing {
  if (start.length >= 2 && start[0] === 0x1f && start[1] === 0x8b) return "gzip";
  if (start.length >= 4 && start.readUInt32BE(0) === 0x504b0304) return "zip";
  if (start.length >= 4 && start.readUInt32BE(0) === 0x504b0506) return "zip";
  return "plain";
}

/** Returns the format of unpacked bytes. Throws SourceFileError that says what they look like instead. */
export function sniffFormat(file: string, start: Buffer): RegistryFormat | PublishedFormat {
  if (start.length === 0) throw new SourceFileError(file, null, "the file is empty");
  const text = start.toString("latin1").trimStart();
  if (text.startsWith("<")) return sniffXml(file, text);
  if (start.subarray(0, 512).includes(0) && /^\0|\0\0/.test(text.slice(0, 512))) {
    throw new SourceFileError(file, 1, "binary data, not a registry file");
  }
  if (text.startsWith("{")) return sniffJson(file, text);
  return sniffText(file, start.toString("latin1"));
}

/** Recognises a cloud's list by the names in its first bytes. */
function sniffJson(file: string, text: string): PublishedFormat {
  const has = (...names: readonly string[]) => names.every((name) => text.includes(`"${name}"`));
  if (has("syncToken", "prefixes", "ip_prefix")) return "aws-ranges";
  if (has("syncToken", "prefixes") && (has("ipv4Prefix") || has("ipv6Prefix"))) return "google-ranges";
  if (has("changeNumber", "values")) return "azure-ranges";
  if (has("last_updated_timestamp", "regions")) return "oracle-ranges";
  if (has("result", "ipv4_cidrs")) return "cloudflare-ranges";
  throw new SourceFileError(file, 1, "JSON, and no cloud's list of ranges that is known");
}

function sniffXml(file: string, text: string): RegistryFormat {
  const html = /<(?:!doctype\s+html|html)[\s>]/i.exec(text.slice(0, 4096));
  if (html) {
    const title = parse(text).querySelector("title")?.text.trim().slice(0, 80);
    throw new SourceFileError(file, 1, `a web page${title ? ` ("${title}")` : ""}, not a registry file`);
  }
  if (/<!doctype/i.test(text)) {
    throw new SourceFileError(file, lineOf(text, /<!doctype/i), "a document type definition is refused");
  }
  const root = /^<([A-Za-z][\w.-]*(?::[\w.-]+)?)([^>]*)/.exec(withoutProlog(text));
  const name = root?.[1]?.replace(/^.*:/, "");
  if (name === "bulkwhois") return "arin-xml";
  if (
    name === "registry" &&
    /\bid\s*=\s*["'](ipv4-address-space|ipv6-unicast-address-assignments)["']/.test(root![2]!)
  ) {
    return "iana-xml";
  }
  const found = name ? `XML with the root <${name.slice(0, 40)}>` : "XML without a root element";
  throw new SourceFileError(file, 1, `${found}, neither ARIN's bulk data nor an IANA address registry`);
}

/** Returns what follows the declaration and comments at the start. */
function withoutProlog(text: string): string {
  let rest = text;
  for (;;) {
    const closing = rest.startsWith("<?") ? "?>" : rest.startsWith("<!--") ? "-->" : null;
    const end = closing === null ? -1 : rest.indexOf(closing);
    if (closing === null || end < 0) return rest;
    rest = rest.slice(end + closing.length).trimStart();
  }
}

function sniffText(file: string, text: string): RegistryFormat | PublishedFormat {
  const lines = text.split("\n");
  const index = lines.findIndex((line) => !/^\s*$|^[#%]/.test(line));
  const line = (lines[index] ?? "").trim();
  if (index < 0) throw new SourceFileError(file, null, "nothing but comments in its first 64 KiB");
  if (/^\d+(\.\d+)?\|[a-z]+\|/i.test(line)) return "delegated";
  if (/^[a-z]+\|[A-Za-z*]{0,2}\|(asn|ipv4|ipv6)\|/.test(line)) return "delegated";
  if (isGeofeedLine(line)) return "geofeed";
  if (/^[A-Za-z*][A-Za-z0-9*_-]{0,62} {0,4}:/.test(line)) return "rpsl";
  // The first lines may be column names, or malformed.
  if (lines.slice(index + 1, index + linesLooked).some(isGeofeedLine)) return "geofeed";
  const start = line.replace(/[^\x20-\x7e]/g, "?").slice(0, 60);
  throw new SourceFileError(file, index + 1, `not a registry format that is known: it starts "${start}"`);
}

const linesLooked = 20;

function isGeofeedLine(line: string): boolean {
  const form = /^\s*"?([0-9a-f.:]{2,45})(?:\/\d{1,3})?"?\s*,\s*"?(?:[a-z]{2})?"?\s*(?:,|$)/i;
  return parseAddress(form.exec(line)?.[1] ?? "") !== null;
}

function lineOf(text: string, pattern: RegExp): number {
  return text.slice(0, text.search(pattern)).split("\n").length;
}

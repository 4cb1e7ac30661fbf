/**
 * A page's links as lines, short and alike on the pages of one host: `[!]url[\tanchor]`, where `!` stands for
 * nofollow, a URL of the page's origin is without that origin, and another https one without `https:`.
 */
import { ProtocolError } from "#core/errors";

interface Link {
  readonly url: string;
  readonly anchor: string;
  readonly nofollow: boolean;
}

/** Null unless all values are links that come back the same. */
export function linkLines(values: readonly unknown[], origin: string): string[] | null {
  const lines: string[] = [];
  for (const value of values) {
    if (!isLink(value)) return null;
    const line = `${value.nofollow ? "!" : ""}${shortUrl(value.url, origin)}${value.anchor === "" ? "" : "\t"}${value.anchor}`;
    if (line.includes("\n") || value.url.includes("\t")) return null;
    lines.push(line);
  }
  return lines;
}

/** Whatever the line is, a link of strings comes of it; the schema judges it like any other. */
export function linkOf(line: string, origin: string): Link {
  const nofollow = line.startsWith("!");
  const tab = line.indexOf("\t");
  const url = line.slice(nofollow ? 1 : 0, tab < 0 ? undefined : tab);
  return { url: longUrl(url, origin), anchor: tab < 0 ? "" : line.slice(tab + 1), nofollow };
}

/** Links repeat their origin, so a short line can stand for a long URL: what is said is counted, too. */
export function checkOrigin(origin: string): string {
  if (origin.length <= 300 && (origin === "" || /^https?:\/\/[^/\s]+$/.test(origin))) return origin;
  throw new ProtocolError("a packed message has no valid origin");
}

const keys = ["url", "anchor", "nofollow"];

function isLink(value: unknown): value is Link {
  if (typeof value !== "object" || value === null) return false;
  const { url, anchor, nofollow } = value as Partial<Link>;
  if (typeof url !== "string" || typeof anchor !== "string" || typeof nofollow !== "boolean") return false;
  return /^[a-z]+:/.test(url) && Object.keys(value).length === keys.length;
}

function shortUrl(url: string, origin: string): string {
  if (
    origin !== "" &&
    url.startsWith(origin) &&
    url[origin.length] === "/" &&
    url[origin.length + 1] !== "/"
  ) {
    return url.slice(origin.length);
  }
  return url.startsWith("https://") ? url.slice("https:".length) : url;
}

function longUrl(short: string, origin: string): string {
  if (short.startsWith("//")) return `https:${short}`;
  return short.startsWith("/") ? origin + short : short;
}

/**
 * Reads geofeeds (RFC 8805): lines of `prefix,country,region,city,postal code` and `#` comments. All fields but the
 * prefix may be empty. A line without a place says that none is published. Postal codes, which the RFC deprecates, and
 * later fields are ignored. A wrong line is reported and skipped.
 */
import { createHash } from "node:crypto";
import { canParseUrl } from "#core/ip/url-host";
import { maxPlaceLength, type PublishedSink, readPublishedRange } from "./published.ts";
import { countryCode } from "./record.ts";
import { decodeText, LineCutter, type LineHandler } from "./text-decoding.ts";

/** The size limit admits a million of the shortest lines. No geofeed has lines longer than `maxLineLength`. */
const mostLines = 1_000_000;
const maxLineLength = 1000;

/** An ISO 3166-2 code, such as `GR-I`. */
const regionForm = /^[A-Z]{2}-[A-Z0-9]{1,3}$/;

export class GeofeedReader implements LineHandler {
  readonly #sink: PublishedSink;
  readonly #cutter = new LineCutter(this);

  constructor(sink: PublishedSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  end(): void {
    this.#cutter.end();
  }

  longLine(beginning: string, line: number): void {
    const reason = `a line longer than ${maxLineLength} characters`;
    this.#sink.malformed({ line, reason, value: decodeText(beginning.slice(0, 80)) });
  }

  line(line: string, number: number): void {
    if (number > mostLines) this.#sink.ignore(`lines behind the first ${mostLines}`);
    else if (line.length > maxLineLength) this.longLine(line, number);
    else this.#read(line, number);
  }

  #read(line: string, number: number): void {
    const [text = ""] = decodeText(line)
      .replace(/^\uFEFF/, "")
      .split("#", 1);
    if (text.trim() === "") return;
    const fields = fieldsOf(text);
    const [prefix = ""] = fields;
    const reading = readPublishedRange(prefix);
    if ("reason" in reading) {
      this.#sink.malformed({ line: number, reason: reading.reason, value: text.trim() });
      return;
    }
    const place = placeOf(fields);
    if ("reason" in place) this.#sink.malformed({ line: number, reason: place.reason, value: text.trim() });
    else this.#sink.range({ line: number, range: reading.range, place: place.place });
  }
}

/** Returns for example `GR-I Athens`. Leaves out an invalid or foreign region, which the RFC makes optional. */
function placeOf([, alpha2 = "", isoRegion = "", city = ""]: readonly string[]):
  | { readonly place: string | null }
  | { readonly reason: string } {
  if (alpha2 === "" && isoRegion === "" && city === "") return { place: null };
  const [written, part] = isoRegion.toUpperCase().split(/-(.*)/s);
  const region = part === undefined ? isoRegion.toUpperCase() : `${countryCode(written!) ?? written}-${part}`;
  const country = countryCode(alpha2 === "" ? region.slice(0, 2) : alpha2);
  if (country === null) return { reason: "no country by two letters (ISO 3166-1)" };
  if (region !== "" && !regionForm.test(region)) return { reason: "no region of the form ISO 3166-2" };
  if (region !== "" && !region.startsWith(`${country}-`)) return { reason: "a region of another country" };
  if (city.length > maxPlaceLength - 10)
    return { reason: `a city of more than ${maxPlaceLength - 10} characters` };
  // Two spellings of one city would count as two places.
  const name = city.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return { place: [region === "" ? country : region, name].filter((part) => part !== "").join(" ") };
}

function fieldsOf(line: string): readonly string[] {
  if (!line.includes('"')) return line.split(",", 5).map((field) => field.trim());
  const fields: string[] = [];
  let field = "";
  let isQuoted = false;
  for (const letter of line) {
    if (letter === '"') isQuoted = !isQuoted;
    else if (letter !== "," || isQuoted) field += letter;
    else {
      fields.push(field.trim());
      field = "";
      if (fields.length === 5) return fields;
    }
  }
  return [...fields, field.trim()];
}

// Finds geofeed URLs in registry objects (RFC 9632 section 3): the attribute `geofeed:`, or a remark that starts with
// the word.

const maxUrlLength = 500;

/** Reads `Geofeed https://example.net/geofeed.csv` or the attribute's value alone, or returns null. */
export function geofeedUrlIn(value: string): string | null {
  const [, url] = /^\s*(?:geofeed:?\s+)?(https:\/\/\S+)/i.exec(value) ?? [];
  if (url === undefined || url.length > maxUrlLength || !canParseUrl(url)) return null;
  const { protocol, username, password, hostname, pathname, search, host } = new URL(url);
  if (protocol !== "https:" || username !== "" || password !== "" || hostname === "") return null;
  return `https://${host}${pathname}${search}`;
}

/**
 * Scans a registry file of any format for geofeed URLs to fetch. The import determines which ranges they may describe.
 */
export class GeofeedFinder {
  readonly urls = new Set<string>();
  readonly #mostUrls: number;
  /** The last complete line and the incomplete one after it. */
  #carry: Buffer = Buffer.alloc(0);

  constructor(mostUrls: number) {
    this.#mostUrls = mostUrls;
  }

  push(chunk: Buffer): void {
    const bytes = this.#carry.length > 0 ? Buffer.concat([this.#carry, chunk]) : chunk;
    // Keeps the last complete line, because the next line may continue it with the URL.
    const last = bytes.lastIndexOf(lineFeed);
    const end = last <= 0 ? 0 : bytes.lastIndexOf(lineFeed, last - 1) + 1;
    this.#find(bytes, end);
    this.#carry = Buffer.from(bytes.subarray(Math.max(end, bytes.length - mostCarried)));
  }

  end(): void {
    this.#find(this.#carry, this.#carry.length);
  }

  #find(bytes: Buffer, end: number): void {
    const next = (from: number) => bytes.subarray(0, end).indexOf(geofeedWord, from);
    for (let at = next(0); at >= 0; at = next(at + 1)) {
      if (this.urls.size >= this.#mostUrls) return;
      const url = geofeedUrlBehind(bytes.toString("latin1", at, at + geofeedBytes));
      if (url !== null) this.urls.add(url);
    }
  }
}

const lineFeed = 0x0a;
const mostCarried = 4096;

/** `geofeed` without its first letter, which may be upper or lower case. */
const geofeedWord = "eofeed";
/** Enough bytes, counted from the word, to contain the URL. */
const geofeedBytes = maxUrlLength + 40;

export function geofeedUrlAmong(text: string): string | null {
  const at = text.indexOf(geofeedWord);
  return at < 0 ? null : geofeedUrlBehind(text.slice(at, at + geofeedBytes));
}

/** Reads the URL after the word, on its line or a continuation, up to the end of the line or of the XML element. */
function geofeedUrlBehind(text: string): string | null {
  const [, named] = /^eofeed:?(?:[ \t]+|[ \t]*\r?\n[ \t+][ \t]*)(https:\/\/[^\s<>"]+)/i.exec(text) ?? [];
  return named === undefined ? null : geofeedUrlIn(named);
}

/** The cache file of a geofeed URL. Its name tells which registry objects may use it: those that name this URL. */
export function geofeedFileOf(url: string): string {
  return `geofeed-${createHash("sha256").update(url).digest("hex").slice(0, 32)}.csv`;
}

export const geofeedFileForm = /^geofeed-[0-9a-f]{32}\.csv$/;

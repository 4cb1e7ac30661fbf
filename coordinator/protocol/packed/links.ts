/**
 * The links that a session has seen, per host. The pages of a host repeat its navigation, far apart in the stream when many
 * hosts are crawled at once. A line sent before is replaced by its number, and a run of lines in the same order by one
 * reference. Both ends keep the same history of what was sent, in that order; it is empty at a session's start.
 */
import { ProtocolError } from "#core/errors";
import { maxListedUrls, maxPageLinks } from "../result.ts";
import type { NumberReader, NumberWriter } from "./numbers.ts";

/** Maximum numbers of lines for one origin and for all. The least recently seen origin is dropped first. */
const maxOriginLines = 1024;

const maxLineCharacters = 400;
const maxCharacters = 300_000;

interface Known {
  readonly lines: string[];
  /** The position of each line, which only the sender needs. */
  readonly places: Map<string, number>;
  characters: number;
}

export class LinkHistory {
  readonly #origins = new Map<string, Known>();
  #characters = 0;

  /** Writes references to known lines and returns the other lines, which are sent as they are. */
  shorten(origin: string, lines: readonly string[], numbers: NumberWriter): string[] {
    const { lines: known, places } = this.#known(origin);
    const fresh: string[] = [];
    for (let at = 0; at < lines.length; ) {
      const before = fresh.length;
      let place = places.get(lines[at]!);
      while (place === undefined && at < lines.length) {
        fresh.push(lines[at++]!);
        place = places.get(lines[at] ?? "");
      }
      numbers.number(fresh.length - before);
      if (place === undefined) break;
      const start = at;
      while (at < lines.length && lines[at] === known[place + at - start]) at++;
      numbers.number(at - start);
      numbers.number(place);
    }
    this.#remember(origin, lines.length, fresh, true);
    return fresh;
  }

  /** Restores all `count` lines; `next` returns the sent lines one by one. */
  restore(origin: string, count: number, numbers: NumberReader, next: () => string): string[] {
    if (count > maxListedUrls) throw new ProtocolError(`a packed message has ${count} links`);
    const { lines: known } = this.#known(origin);
    const fresh: string[] = [];
    const lines: string[] = [];
    while (lines.length < count) {
      const freshCount = numbers.number();
      if (freshCount > count - lines.length) throw new ProtocolError("packed links do not add up");
      for (let at = 0; at < freshCount; at++) fresh.push(next());
      lines.push(...fresh.slice(fresh.length - freshCount));
      if (lines.length === count) break;
      const [runLength, place] = [numbers.number(), numbers.number()];
      if (runLength === 0 || runLength > count - lines.length || place + runLength > known.length) {
        throw new ProtocolError("packed links refer to none that were sent");
      }
      lines.push(...known.slice(place, place + runLength));
    }
    this.#remember(origin, count, fresh, false);
    return lines;
  }

  /** How many characters are kept, for tests of the bound. */
  get characters(): number {
    return this.#characters;
  }

  #known(origin: string): Known {
    const known = this.#origins.get(origin) ?? { lines: [], places: new Map(), characters: 0 };
    this.#origins.delete(origin);
    this.#origins.set(origin, known);
    return known;
  }

  /** Links of lists (sitemaps) are not remembered, because other documents do not repeat them. */
  #remember(origin: string, count: number, fresh: readonly string[], findable: boolean): void {
    const known = this.#known(origin);
    if (count > maxPageLinks) return;
    for (const line of fresh) {
      if (known.lines.length >= maxOriginLines || line.length > maxLineCharacters) continue;
      if (findable) known.places.set(line, known.lines.length);
      // A substring would keep the whole message in memory.
      known.lines.push(findable ? line : Buffer.from(line).toString());
      known.characters += line.length;
      this.#characters += line.length;
    }
    this.#forget();
  }

  #forget(): void {
    for (const [origin, known] of this.#origins) {
      if (this.#characters <= maxCharacters && this.#origins.size <= maxOriginLines) return;
      this.#characters -= known.characters;
      this.#origins.delete(origin);
    }
  }
}

// A page's links as lines that are short and similar on the pages of one host: `[!]url[\tanchor]`. `!` stands for nofollow.
// URLs of the page's origin omit it, other https URLs omit `https:`.

interface Link {
  readonly url: string;
  readonly anchor: string;
  readonly nofollow: boolean;
}

/** Returns null unless all values are links that survive the round trip. */
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

/** Any line yields a link whose fields are strings. The schema validates it afterwards. */
export function linkOf(line: string, origin: string): Link {
  const nofollow = line.startsWith("!");
  const tab = line.indexOf("\t");
  const url = line.slice(nofollow ? 1 : 0, tab < 0 ? undefined : tab);
  return { url: longUrl(url, origin), anchor: tab < 0 ? "" : line.slice(tab + 1), nofollow };
}

/** Links repeat their origin, so a short line can stand for a long URL. The restored length is therefore bounded, too. */
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

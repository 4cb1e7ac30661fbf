/**
 * The links that a session has seen, host by host: the pages of a host repeat its navigation, far apart in the
 * stream when many hosts are crawled at once. A line that went over the wire before is told by its number, and
 * lines that follow each other as before are told as one run. Both ends keep the same history: only what was
 * sent counts, in the order of sending, and every session begins with none.
 */
import { ProtocolError } from "#core/errors";
import { maxListedUrls, maxPageLinks } from "../result.ts";
import type { NumberReader, NumberWriter } from "./numbers.ts";

/** Kept of one origin, and of all together. The least recently seen origin is forgotten first. */
const maxOriginLines = 1024;
const maxLineCharacters = 400;
const maxCharacters = 300_000;

interface Known {
  readonly lines: string[];
  /** Where each line is; only the sender asks. */
  readonly places: Map<string, number>;
  characters: number;
}

export class LinkHistory {
  readonly #origins = new Map<string, Known>();
  #characters = 0;

  /** Writes which of the lines are known; returns the others, to be sent as they are. */
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

  /** All `count` lines again; `next` gives the lines that were sent, one after the other. */
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

  /** Characters kept, for tests of the bound. */
  get characters(): number {
    return this.#characters;
  }

  #known(origin: string): Known {
    const known = this.#origins.get(origin) ?? { lines: [], places: new Map(), characters: 0 };
    this.#origins.delete(origin);
    this.#origins.set(origin, known);
    return known;
  }

  /** Lists of URLs (sitemaps) are not repeated by other documents. */
  #remember(origin: string, count: number, fresh: readonly string[], findable: boolean): void {
    const known = this.#known(origin);
    if (count > maxPageLinks) return;
    for (const line of fresh) {
      if (known.lines.length >= maxOriginLines || line.length > maxLineCharacters) continue;
      if (findable) known.places.set(line, known.lines.length);
      // A copy of its own: a part of a message would keep the whole of it in memory.
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

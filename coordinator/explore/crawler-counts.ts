/**
 * How many subnets of any stretch of the tree each crawler has. A thousand places are counted once and remembered until
 * one of them changes, so that an answer over millions adds up a few thousand small counts, and a view's legend, its
 * totals and the bar of a row in the tree are the same figures. Each subnet counts once, whatever its size.
 */
import type { CrawlerId } from "#core/ids";
import type { Span } from "./places.ts";
import type { WorkTurns } from "./work-turns.ts";

/** 0 in the place of a crawler: those that nobody crawls. */
export const nobody = 0;

/** Subnets by crawler. */
export type Counts = Map<CrawlerId | typeof nobody, number>;

export const placesPerBlock = 1024;

export const blockOf = (place: number): number => Math.floor(place / placesPerBlock);

export class CrawlerCounts {
  readonly #places: number;
  readonly #crawlerAt: (place: number) => CrawlerId | typeof nobody;
  readonly #blocks: (Counts | undefined)[] = [];

  constructor(places: number, crawlerAt: (place: number) => CrawlerId | typeof nobody) {
    this.#places = places;
    this.#crawlerAt = crawlerAt;
  }

  /** These places were delegated otherwise. */
  forget({ from, to }: Span): void {
    for (let block = blockOf(from); block * placesPerBlock < to; block += 1) delete this.#blocks[block];
  }

  async of(span: Span, turns: WorkTurns): Promise<Counts> {
    for (let block = blockOf(span.from); block * placesPerBlock < span.to; block += 1) {
      if (this.#blocks[block] !== undefined) continue;
      this.block(block);
      await turns.breathe();
    }
    return this.known(span);
  }

  /** The same at once, for spans that were asked for before, or are small. */
  known({ from, to }: Span): Counts {
    const counts: Counts = new Map();
    for (let at = from; at < to; ) {
      const block = blockOf(at);
      const end = Math.min(to, (block + 1) * placesPerBlock);
      const isWhole = end - at === placesPerBlock;
      for (const [crawler, count] of isWhole ? this.block(block) : this.#counted(at, end))
        counts.set(crawler, (counts.get(crawler) ?? 0) + count);
      at = end;
    }
    return counts;
  }

  /** Of the places of this number times a thousand and those that follow. */
  block(block: number): Counts {
    const first = block * placesPerBlock;
    const counts =
      this.#blocks[block] ?? this.#counted(first, Math.min(this.#places, first + placesPerBlock));
    this.#blocks[block] = counts;
    return counts;
  }

  #counted(from: number, to: number): Counts {
    const counts: Counts = new Map();
    for (let place = from; place < to; place += 1) {
      const crawler = this.#crawlerAt(place);
      counts.set(crawler, (counts.get(crawler) ?? 0) + 1);
    }
    return counts;
  }
}

/**
 * How many subnets of any stretch of the tree each crawler has. Blocks of a thousand places are counted once and cached until
 * one changes, so that an answer over millions adds a few thousand small counts, and a view's legend, totals and bars agree.
 * Each subnet counts once, whatever its size.
 */
import type { CrawlerId } from "#core/ids";
import type { Span } from "./places.ts";
import type { WorkTurns } from "./work-turns.ts";

/** The key 0 counts subnets that nobody crawls. */
export const nobody = 0;

/** Subnets by crawler. */
export type Counts = Map<CrawlerId | typeof nobody, number>;

export const placesPerBlock = 1024;

export const blockOf = (place: number): number => Math.floor(place / placesPerBlock);

interface Block {
  readonly crawlers: Int32Array;
  readonly counts: Counts;
}

export class CrawlerCounts {
  readonly #places: number;
  readonly #crawlerOf: (place: number) => CrawlerId | typeof nobody;
  readonly #blocks: (Block | undefined)[] = [];

  constructor(places: number, crawlerOf: (place: number) => CrawlerId | typeof nobody) {
    this.#places = places;
    this.#crawlerOf = crawlerOf;
  }

  /** Called when these places were delegated otherwise. */
  forget({ from, to }: Span): void {
    for (let block = blockOf(from); block * placesPerBlock < to; block += 1) delete this.#blocks[block];
  }

  at(place: number): CrawlerId | typeof nobody {
    return this.#block(blockOf(place)).crawlers[place % placesPerBlock] as CrawlerId;
  }

  /** Whether any of the thousand places of this block, or of those that follow, is the crawler's. */
  has(block: number, crawler: CrawlerId | typeof nobody): boolean {
    return this.#block(block).counts.has(crawler);
  }

  async of(span: Span, turns: WorkTurns): Promise<Counts> {
    for (let block = blockOf(span.from); block * placesPerBlock < span.to; block += 1) {
      if (this.#blocks[block] !== undefined) continue;
      this.#block(block);
      await turns.breathe();
    }
    return this.known(span);
  }

  /** Synchronous; for spans that are cached or small. */
  known({ from, to }: Span): Counts {
    const sums: Counts = new Map();
    for (let at = from; at < to; ) {
      const first = blockOf(at) * placesPerBlock;
      const end = Math.min(to, first + placesPerBlock);
      const { crawlers, counts } = this.#block(blockOf(at));
      if (end - at === placesPerBlock) for (const [crawler, count] of counts) addTo(sums, crawler, count);
      else for (; at < end; at += 1) addTo(sums, crawlers[at - first] as CrawlerId, 1);
      at = end;
    }
    return sums;
  }

  #block(index: number): Block {
    const known = this.#blocks[index];
    if (known !== undefined) return known;
    const first = index * placesPerBlock;
    const crawlers = new Int32Array(Math.min(placesPerBlock, this.#places - first));
    const counts: Counts = new Map();
    for (let at = 0; at < crawlers.length; at += 1) {
      const crawler = this.#crawlerOf(first + at);
      crawlers[at] = crawler;
      addTo(counts, crawler, 1);
    }
    const block = { crawlers, counts };
    this.#blocks[index] = block;
    return block;
  }
}

export function addTo(counts: Counts, crawler: CrawlerId | typeof nobody, count: number): void {
  counts.set(crawler, (counts.get(crawler) ?? 0) + count);
}

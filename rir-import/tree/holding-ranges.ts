/**
 * Finds the ranges that contain a given range, whether they nest or cross. The ranges are in tree order (by first
 * address, the widest first), so those that start at or before the given range are the beginning of the columns. Which
 * of them also end at or after its end is found through the latest last address of each block of sixteen ranges, of
 * each block of sixteen blocks, and so on:
 *
 * ranges     0 1 2 … 15 | 16 17 … 31 | …            last address of each
 * level 0        ↓             ↓                     the latest of sixteen
 * level 1                ↓                           the latest of sixteen of those
 *
 * A block that ends too early is skipped whole. Each range found takes about 16 · log₁₆(n) steps. The levels take a
 * fifteenth of the columns' memory, and recursion is no deeper than the levels (6 for ten million ranges).
 */
import { columnsOf, compareWords, type RangeColumns } from "#coordinator/place/subnets/range-columns";
import type { IpRange } from "#core/ip/range";

const blockBits = 4;
const blockSize = 1 << blockBits;

export class HoldingRanges {
  readonly #columns: RangeColumns;
  /** `#latest[level][block]` is the range that ends last in the block. */
  readonly #latest: readonly Int32Array[];

  /** The columns must be in tree order and stay unchanged. */
  constructor(columns: RangeColumns) {
    this.#columns = columns;
    this.#latest = latestOfBlocks(columns);
  }

  /** Returns the ascending indexes of the ranges that contain `asked`. Where they nest, the less specific come first. */
  holdersOf(asked: IpRange): number[] {
    const found: number[] = [];
    if (asked.family !== this.#columns.family) return found;
    const bound = columnsOf([asked]);
    const count = this.#countStartingBy(bound);
    if (count > 0) this.#collect(this.#latest.length, 0, { bound, count, found });
    return found;
  }

  /** Counts the ranges that start at or before the bound's first address. */
  #countStartingBy(bound: RangeColumns): number {
    const { first, words } = this.#columns;
    let low = 0;
    for (let high = this.#columns.count; low < high; ) {
      const middle = (low + high) >>> 1;
      if (compareWords(first, middle, bound.first, 0, words) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Level 0 is the ranges themselves. A block of level n has sixteen parts at level n − 1. */
  #collect(level: number, block: number, search: Search): void {
    if (level === 0) {
      search.found.push(block);
      return;
    }
    const { last, words } = this.#columns;
    const below = level - 1;
    const behind = Math.min(this.#partsAt(below), (block + 1) << blockBits);
    for (let part = block << blockBits; part < behind; part += 1) {
      if (part << (blockBits * below) >= search.count) return;
      if (compareWords(last, this.#latestOf(below, part), search.bound.last, 0, words) < 0) continue;
      this.#collect(below, part, search);
    }
  }

  #partsAt(level: number): number {
    return level === 0 ? this.#columns.count : (this.#latest[level - 1] as Int32Array).length;
  }

  #latestOf(level: number, part: number): number {
    return level === 0 ? part : (this.#latest[level - 1]?.[part] as number);
  }
}

interface Search {
  readonly bound: RangeColumns;
  /** Ranges from this index on start too late to contain the given range. */
  readonly count: number;
  readonly found: number[];
}

function latestOfBlocks(columns: RangeColumns): readonly Int32Array[] {
  const levels: Int32Array[] = [];
  let below = columns.count;
  while (below > (levels.length === 0 ? 0 : 1)) {
    const ranges = levels.at(-1);
    const blocks = new Int32Array(Math.ceil(below / blockSize));
    for (let part = 0; part < below; part += 1) {
      const range = ranges === undefined ? part : (ranges[part] as number);
      const block = part >>> blockBits;
      const isFirst = part % blockSize === 0;
      if (isFirst || endsLater(columns, range, blocks[block] as number)) blocks[block] = range;
    }
    levels.push(blocks);
    below = blocks.length;
  }
  return levels;
}

const endsLater = ({ last, words }: RangeColumns, a: number, b: number) =>
  compareWords(last, a, last, b, words) > 0;

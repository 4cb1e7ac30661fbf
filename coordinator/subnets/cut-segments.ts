/**
 * Cuts the address space of one family into the segments of `segments.ts`: one walk over the ranges in order,
 * with the ranges that are open at the place reached in a heap, the most specific on top. Ranges may cross;
 * the rule is that of `nest.ts`. O(n log depth).
 */
import { compareSpecificity, compareWords, type RangeColumns } from "./range-columns.ts";
import { indexSegments, type Segments } from "./segments.ts";

/** The table over the ranges in `order`, which sorts them by first address, the widest first; owners are indexes into the columns. */
export function cutSegments(columns: RangeColumns, order: Int32Array): Segments {
  const { first, last, words } = columns;
  const cut = new SegmentWriter(columns, order.length);
  const open = new OpenRanges(columns);
  for (const coming of order) {
    while (open.top >= 0 && compareWords(last, open.top, first, coming, words) < 0) endTop(open, cut);
    open.add(coming);
    cut.startAt(coming, open.top);
  }
  while (open.top >= 0) endTop(open, cut);
  return cut.finish();
}

function endTop(open: OpenRanges, cut: SegmentWriter): void {
  const ended = open.top;
  open.dropThrough(ended);
  cut.startAfter(ended, open.top);
}

/**
 * A binary heap. A range that has ended stays in it while a more specific one that still runs lies on top,
 * and is dropped when it comes up: the top alone is always open.
 */
class OpenRanges {
  readonly #columns: RangeColumns;
  readonly #heap: number[] = [];

  constructor(columns: RangeColumns) {
    this.#columns = columns;
  }

  get top(): number {
    return this.#heap[0] ?? -1;
  }

  add(range: number): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#goesAbove(range, heap[above] as number)) break;
      heap[at] = heap[above] as number;
      at = above;
    }
    heap[at] = range;
  }

  /** Takes ranges off the top until one ends behind the end of `ended`. */
  dropThrough(ended: number): void {
    const { last, words } = this.#columns;
    while (this.top >= 0 && compareWords(last, this.top, last, ended, words) <= 0) this.#removeTop();
  }

  #removeTop(): void {
    const heap = this.#heap;
    const moved = heap.pop() as number;
    if (heap.length === 0) return;
    let at = 0;
    for (let below = 1; below < heap.length; below = 2 * at + 1) {
      if (below + 1 < heap.length && this.#goesAbove(heap[below + 1] as number, heap[below] as number))
        below += 1;
      if (!this.#goesAbove(heap[below] as number, moved)) break;
      heap[at] = heap[below] as number;
      at = below;
    }
    heap[at] = moved;
  }

  #goesAbove(i: number, j: number): boolean {
    return compareSpecificity(this.#columns, i, j) < 0;
  }
}

/** Collects segments; neither an empty one nor one with the owner of the one before is kept. */
class SegmentWriter {
  readonly #columns: RangeColumns;
  readonly #starts: Uint32Array;
  readonly #owners: Int32Array;
  #count = 0;

  constructor(columns: RangeColumns, ranges: number) {
    this.#columns = columns;
    // A range starts one segment and ends one, at most.
    this.#starts = new Uint32Array(2 * ranges * columns.words);
    this.#owners = new Int32Array(2 * ranges);
  }

  startAt(range: number, owner: number): void {
    const { first, words } = this.#columns;
    this.#put(first.subarray(range * words, (range + 1) * words), owner);
  }

  /** A segment from the address behind the range's last; none when that was the last of the whole space. */
  startAfter(range: number, owner: number): void {
    const { last, words } = this.#columns;
    const start = last.slice(range * words, (range + 1) * words);
    for (let word = words - 1; word >= 0; word -= 1) {
      start[word] = (start[word] as number) + 1;
      if (start[word] === 0) continue;
      this.#put(start, owner);
      return;
    }
  }

  finish(): Segments {
    const { words } = this.#columns;
    return indexSegments(this.#starts.slice(0, this.#count * words), this.#owners.slice(0, this.#count));
  }

  #put(start: Uint32Array, owner: number): void {
    const { words } = this.#columns;
    if (this.#count > 0 && compareWords(this.#starts, this.#count - 1, start, 0, words) === 0)
      this.#count -= 1;
    const before = this.#count > 0 ? (this.#owners[this.#count - 1] as number) : -1;
    if (owner === before) return;
    this.#starts.set(start, this.#count * words);
    this.#owners[this.#count++] = owner;
  }
}

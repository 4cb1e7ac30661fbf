/**
 * The address space of one family cut into segments, each owned by the most specific range over it. The tree
 * has such a table over the stretches where the way from place to parent does not serve (`hard-stretches.ts`).
 *
 *   ranges      A [0 .......................... 99]
 *                   B [10 ........ 49]
 *                        C [20..29]
 *   segments    A     B    C      B      A            (none)
 *   starts      0     10   20     30     50           100
 *
 * A look-up finds the last segment that starts at the address or before: a first jump by the top bits of the
 * address, then a binary search of a few steps. Nothing is walked, however deep the ranges nest or cross.
 */

import type { Crossing } from "./nest.ts";
import { compareSpecificity, compareWords, type RangeColumns } from "./range-columns.ts";

export interface Segments {
  /** First address of each segment, ascending: one 32-bit word (IPv4) or four. */
  readonly starts: Uint32Array;
  /** The owner's index in the columns, or -1 where nobody registered anything. */
  readonly owners: Int32Array;
  /** For each value of an address's top bits: how many segments start below it. One more slot closes the list. */
  readonly slots: Int32Array;
  /** Bits of the first word that are not top bits. */
  readonly shift: number;
}

/** Segments per slot, on average, and the bounds of the number of top bits. */
const segmentsPerSlot = 4;

const fewestTopBits = 8;
const mostTopBits = 22;

/** The table over segments that are in order. */
export function indexSegments(starts: Uint32Array, owners: Int32Array): Segments {
  const wanted = Math.ceil(Math.log2(Math.max(1, owners.length / segmentsPerSlot)));
  const topBits = Math.min(mostTopBits, Math.max(fewestTopBits, wanted));
  const shift = 32 - topBits;
  const words = owners.length === 0 ? 1 : starts.length / owners.length;
  const slots = new Int32Array(2 ** topBits + 1);
  for (let segment = 0; segment < owners.length; segment += 1) {
    const slot = ((starts[segment * words] as number) >>> shift) + 1;
    slots[slot] = (slots[slot] as number) + 1;
  }
  for (let slot = 1; slot < slots.length; slot += 1)
    slots[slot] = (slots[slot] as number) + (slots[slot - 1] as number);
  return { starts, owners, slots, shift };
}

export function segmentBytes({ starts, owners, slots }: Segments): number {
  return starts.byteLength + owners.byteLength + slots.byteLength;
}

/** The segment of the address, or −1 before the first. */
export function findIpv4({ starts, slots, shift }: Segments, value: number): number {
  const slot = value >>> shift;
  let low = slots[slot] as number;
  let high = slots[slot + 1] as number;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The same for an IPv6 address of four words, the most significant first. */
export function findIpv6({ starts, slots, shift }: Segments, words: Uint32Array): number {
  const slot = (words[0] as number) >>> shift;
  let low = slots[slot] as number;
  let high = slots[slot + 1] as number;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareWords(starts, middle, words, 0, 4) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Cuts the address space of one family into the segments of `segments.ts`: one walk over the ranges in order,
// with the ranges that are open at the place reached in a heap, the most specific on top. Ranges may cross;
// the rule is that of `nest.ts`. O(n log depth).

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

// Every place has a stretch of addresses: from where its range starts to where the next one does. Within it a
// look-up tries the place and then its parents, the nearest first. That is right wherever the ranges over an
// address hold one another, and quick wherever the way up is short. The other stretches are hard, and look-ups
// there ask a table of segments that is cut from the ranges over hard stretches alone:
//
// A [0 ............... 99]              place  stretch   behind B comes A, one step up: easy
// B [10 .. 19]                        A      0–9
// C [50 .. 69]              B      10–49
// D [60 ..... 150]    C      50–59     C and D cross: 60–69 lies in both
// D      60–…      hard
//
// Why only places whose stretch touches an address in two ranges that cross: at any other place P all ranges
// over its first address hold one another, so they are the chain of its parents; and a range over a later
// address of the stretch starts no later than P, so it is P or holds P.

/** Ranges of one family in the order of places. */
interface Hierarchy {
  readonly columns: RangeColumns;
  readonly parents: Int32Array;
  readonly crossings: readonly Crossing[];
}

/** A way up that is longer is hard whatever lies there: the look-up's time stays bounded. */
const mostStepsUp = 8;

/** 1 for each place whose stretch is hard. */
export function findHardStretches(hierarchy: Hierarchy): Uint8Array {
  const hard = new Uint8Array(hierarchy.columns.count);
  markCrossings(hierarchy, hard);
  markLongWays(hierarchy, hard);
  return hard;
}

/** The table over the ranges that touch a hard stretch; its answers hold in hard stretches only. */
export function cutHardSegments(columns: RangeColumns, hard: Uint8Array): Segments {
  const { first, last, words } = columns;
  const touching: number[] = [];
  let next = -1;
  for (let place = columns.count - 1; place >= 0; place -= 1) {
    if (hard[place] === 1) next = place;
    if (next >= 0 && compareWords(first, next, last, place, words) <= 0) touching.push(place);
  }
  return cutSegments(columns, Int32Array.from(touching.reverse()));
}

/**
 * Two ranges that cross share what lies from the first address of the later one to the last of the earlier.
 * The list of crossings need not have every pair, but its shares cover those of all: a pair is left out where
 * one of the two crosses a third that is listed and shares as much.
 */
function markCrossings({ columns, crossings }: Hierarchy, hard: Uint8Array): void {
  const { first, last, words } = columns;
  const crossed = new Map<number, number>();
  for (const { earlier, later } of crossings) {
    const known = crossed.get(later);
    if (known === undefined || compareWords(last, known, last, earlier, words) < 0)
      crossed.set(later, earlier);
  }
  let reaching = -1;
  for (let place = 0; place < columns.count && crossed.size > 0; place += 1) {
    const earlier = crossed.get(place) ?? -1;
    if (earlier >= 0 && (reaching < 0 || compareWords(last, reaching, last, earlier, words) < 0))
      reaching = earlier;
    if (reaching >= 0 && compareWords(last, reaching, first, place, words) >= 0) hard[place] = 1;
  }
}

function markLongWays({ columns, parents }: Hierarchy, hard: Uint8Array): void {
  const { first, last, words, count } = columns;
  for (let place = 0; place < count; place += 1) {
    const next = place + 1;
    let steps = 0;
    for (let at = place; at >= 0 && steps <= mostStepsUp; steps += 1) {
      if (next < count && compareWords(last, at, first, next, words) >= 0) break;
      at = parents[at] as number;
    }
    if (steps > mostStepsUp) hard[place] = 1;
  }
}

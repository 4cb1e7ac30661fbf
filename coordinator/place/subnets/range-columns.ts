/**
 * Ranges of one family in flat typed arrays, so that millions can be sorted, nested and searched without an object
 * each. An address is one 32-bit word (IPv4) or four, most significant first (IPv6).
 */

import type { IpAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress } from "#core/ip/range";
import { GrowingColumn } from "#core/text-pool";

export interface RangeColumns {
  readonly family: 4 | 6;
  /** 32-bit words per address: 1 or 4. */
  readonly words: 1 | 4;
  readonly count: number;
  /** First addresses: `count * words` numbers. */
  readonly first: Uint32Array;
  readonly last: Uint32Array;
}

/** Ranges of one family, while their number is not known yet. */
export class GrowingRanges {
  readonly #family: 4 | 6;
  readonly first = new GrowingColumn((length) => new Uint32Array(length));
  readonly last = new GrowingColumn((length) => new Uint32Array(length));

  constructor(family: 4 | 6) {
    this.#family = family;
  }

  ranges(): RangeColumns {
    const words = this.#family === 4 ? 1 : 4;
    const [first, last] = [this.first.values(), this.last.values()];
    return { family: this.#family, words, count: first.length / words, first, last };
  }
}

/** Columns for `count` ranges, to be filled with `writeRange`. */
export function emptyColumns(family: 4 | 6, count: number): RangeColumns {
  const words = family === 4 ? 1 : 4;
  return {
    family,
    words,
    count,
    first: new Uint32Array(count * words),
    last: new Uint32Array(count * words),
  };
}

/** Keeps the order. Throws if families are mixed. An empty list counts as IPv4. */
export function columnsOf(ranges: readonly IpRange[]): RangeColumns {
  const columns = emptyColumns(ranges[0]?.family ?? 4, ranges.length);
  ranges.forEach((range, index) => {
    writeRange(columns, index, range);
  });
  return columns;
}

export function writeRange(columns: RangeColumns, index: number, range: IpRange): void {
  if (range.family !== columns.family) {
    throw new RangeError(`an IPv${range.family} range among IPv${columns.family} ranges`);
  }
  writeAddress(columns.first, index, firstAddress(range));
  writeAddress(columns.last, index, lastAddress(range));
}

export function rangeAt(columns: RangeColumns, index: number): IpRange {
  if (columns.words === 1) {
    return { family: 4, first: columns.first[index] as number, last: columns.last[index] as number };
  }
  return { family: 6, first: readIpv6(columns.first, index), last: readIpv6(columns.last, index) };
}

/** Addresses as unsigned words, or with their top bits flipped. */
type Words = Uint32Array | Int32Array;

export function compareWords(a: Words, i: number, b: Words, j: number, words: 1 | 4): number {
  const at = words * i;
  const to = words * j;
  const first = (a[at] as number) - (b[to] as number);
  if (words === 1 || first !== 0) return first;
  // Unrolled, because a loop takes twice the time.
  const second = (a[at + 1] as number) - (b[to + 1] as number);
  if (second !== 0) return second;
  const third = (a[at + 2] as number) - (b[to + 2] as number);
  return third !== 0 ? third : (a[at + 3] as number) - (b[to + 3] as number);
}

/**
 * Negative if range `i` is more specific than range `j`: smaller, or of equal size and starting later. This rule orders
 * crossing ranges everywhere, in parents and in look-ups.
 */
export function compareSpecificity(columns: RangeColumns, i: number, j: number): number {
  const { first, last, words } = columns;
  const bySize =
    words === 1
      ? (last[i] as number) - (first[i] as number) - ((last[j] as number) - (first[j] as number))
      : compareIpv6Sizes(columns, i, j);
  return bySize !== 0 ? bySize : compareWords(first, j, first, i, words);
}

/** Indexes by first address, widest first, so that less specific ranges come before more specific ones. */
export function sortedOrder(columns: RangeColumns): Int32Array<ArrayBuffer> {
  let order = new Int32Array(columns.count).map((_, index) => index);
  if (isSorted(columns)) return order;
  let spare = new Int32Array(columns.count);
  const pass = (values: Uint32Array, word: number, shift: number, flip: number) => {
    if (sortByDigit({ order, spare, values, words: columns.words, word, shift, flip }))
      [order, spare] = [spare, order];
  };
  for (let word = columns.words - 1; word >= 0; word -= 1) {
    for (const shift of [0, 16]) pass(columns.last, word, shift, 0xffffffff);
  }
  for (let word = columns.words - 1; word >= 0; word -= 1) {
    for (const shift of [0, 16]) pass(columns.first, word, shift, 0);
  }
  return order;
}

/** Returns the ranges in the given order. */
export function reordered({ family, words, first, last }: RangeColumns, order: Int32Array): RangeColumns {
  const sorted = emptyColumns(family, order.length);
  for (let place = 0; place < order.length; place += 1) {
    const from = words * (order[place] as number);
    for (let word = 0; word < words; word += 1) {
      sorted.first[place * words + word] = first[from + word] as number;
      sorted.last[place * words + word] = last[from + word] as number;
    }
  }
  return sorted;
}

function writeAddress(column: Uint32Array, index: number, address: IpAddress): void {
  if (address.family === 4) {
    column[index] = address.value;
    return;
  }
  for (let word = 0; word < 4; word += 1) {
    column[index * 4 + word] = Number((address.value >> BigInt(96 - 32 * word)) & 0xffffffffn);
  }
}

function readIpv6(column: Uint32Array, index: number): bigint {
  let value = 0n;
  for (let word = 0; word < 4; word += 1) value = (value << 32n) | BigInt(column[index * 4 + word] as number);
  return value;
}

/** Compares `last - first` of two IPv6 ranges, word by word from the least significant, with borrow. */
function compareIpv6Sizes({ first, last }: RangeColumns, i: number, j: number): number {
  let result = 0;
  let borrowI = 0;
  let borrowJ = 0;
  for (let word = 3; word >= 0; word -= 1) {
    const sizeI = (last[i * 4 + word] as number) - (first[i * 4 + word] as number) - borrowI;
    const sizeJ = (last[j * 4 + word] as number) - (first[j * 4 + word] as number) - borrowJ;
    borrowI = sizeI < 0 ? 1 : 0;
    borrowJ = sizeJ < 0 ? 1 : 0;
    const difference = (sizeI >>> 0) - (sizeJ >>> 0);
    if (difference !== 0) result = difference;
  }
  return result;
}

function isSorted({ first, last, words, count }: RangeColumns): boolean {
  for (let index = 1; index < count; index += 1) {
    const byFirst = compareWords(first, index - 1, first, index, words);
    if (byFirst > 0 || (byFirst === 0 && compareWords(last, index - 1, last, index, words) < 0)) return false;
  }
  return true;
}

/**
 * One stable counting pass of a radix sort from `order` into `spare`, by 16 bits of an address word (`flip` reverses the
 * order). Returns false, without moving anything, if all digits are equal.
 */
function sortByDigit(pass: {
  readonly order: Int32Array;
  readonly spare: Int32Array;
  readonly values: Uint32Array;
  readonly words: number;
  readonly word: number;
  readonly shift: number;
  readonly flip: number;
}): boolean {
  const { order, spare, values, words, word, shift, flip } = pass;
  const starts = new Int32Array(0x10000 + 1);
  const count = order.length;
  // Counts in memory order, which is faster and gives the same counts.
  for (let index = 0; index < count; index += 1) {
    const digit = (((values[index * words + word] as number) ^ flip) >>> shift) & 0xffff;
    starts[digit + 1] = (starts[digit + 1] as number) + 1;
  }
  if (starts.includes(count)) return false;
  for (let digit = 1; digit <= 0x10000; digit += 1)
    starts[digit] = (starts[digit] as number) + (starts[digit - 1] as number);
  for (let at = 0; at < count; at += 1) {
    const index = order[at] as number;
    const digit = (((values[index * words + word] as number) ^ flip) >>> shift) & 0xffff;
    spare[starts[digit] as number] = index;
    starts[digit] = (starts[digit] as number) + 1;
  }
  return true;
}

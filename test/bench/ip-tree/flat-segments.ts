/**
 * The fastest flat design we could write, as the yardstick: the space cut into segments once, each with the id
 * that answers for it, unary subnets resolved beforehand. A jump by leading bits, a short binary search, one
 * read of the id. It can answer nothing else: no ranges, no parents, no labels. Right where no ranges cross.
 */

import type { RangeColumns } from "#coordinator/subnets/range-columns";
import { type FirstIndex, indexFirsts, ipv6Slot, topBit } from "#coordinator/subnets/range-table";
import type { IpAddress } from "#core/ip/address";

export interface FlatTable {
  /** The id of the most specific range, 0 for none. */
  idOf(address: IpAddress): number;
  readonly segments: number;
  readonly bytes: number;
}

interface Segment {
  /** Where it starts, as the first 32 bits (IPv4) or 64 (IPv6). */
  readonly put: (high: number, low: number, owner: number) => void;
}

/** Top bits of an IPv4 address; the low half of a segment's start is then enough to tell it from its neighbours. */
const slotBits = 22;

/** Ids are the places + 1; 0 for nobody. `columns` are sorted, `parents` are places. */
export function flatIpv4(columns: RangeColumns, parents: Int32Array): FlatTable {
  const starts = new Uint32Array(2 * columns.count);
  const ids = new Int32Array(2 * columns.count);
  const answers = answersOf(columns, parents);
  let count = 0;
  cut(columns, parents, {
    put: (start, _, owner) => {
      if (count > 0 && starts[count - 1] === start) count -= 1;
      const id = owner < 0 ? 0 : (answers[owner] as number) + 1;
      if (id === (count > 0 ? ids[count - 1] : 0)) return;
      starts[count] = start;
      ids[count++] = id;
    },
  });
  return ipv4Table(starts.subarray(0, count), ids.slice(0, count));
}

function ipv4Table(starts: Uint32Array, ids: Int32Array): FlatTable {
  const shift = 32 - slotBits;
  const slots = new Int32Array(2 ** slotBits + 1);
  for (const start of starts) slots[(start >>> shift) + 1] = (slots[(start >>> shift) + 1] as number) + 1;
  for (let at = 1; at < slots.length; at += 1) slots[at] = (slots[at] as number) + (slots[at - 1] as number);
  return new FlatIpv4(slots, Uint16Array.from(starts), ids);
}

class FlatIpv4 implements FlatTable {
  readonly #slots: Int32Array;
  /** The low half of each segment's start. */
  readonly #halves: Uint16Array;
  readonly #ids: Int32Array;

  constructor(slots: Int32Array, halves: Uint16Array, ids: Int32Array) {
    this.#slots = slots;
    this.#halves = halves;
    this.#ids = ids;
  }

  get segments(): number {
    return this.#ids.length;
  }

  get bytes(): number {
    return this.#slots.byteLength + this.#halves.byteLength + this.#ids.byteLength;
  }

  idOf(address: IpAddress): number {
    const value = address.value as number;
    const halves = this.#halves;
    const slot = value >>> (32 - slotBits);
    const half = value & 0xffff;
    let low = this.#slots[slot] as number;
    let high = this.#slots[slot + 1] as number;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((halves[middle] as number) <= half) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? 0 : (this.#ids[low - 1] as number);
  }
}

/** By the first 64 bits: ranges within one block of 64 bits must be left out of `columns`. */
export function flatIpv6(columns: RangeColumns, parents: Int32Array): FlatTable {
  const starts = new Int32Array(4 * columns.count);
  const ids = new Int32Array(2 * columns.count);
  let count = 0;
  cut(columns, parents, {
    put: (high, low, owner) => {
      if (count > 0 && starts[2 * count - 2] === (high ^ topBit) && starts[2 * count - 1] === (low ^ topBit))
        count -= 1;
      if (owner + 1 === (count > 0 ? ids[count - 1] : 0)) return;
      starts[2 * count] = high ^ topBit;
      starts[2 * count + 1] = low ^ topBit;
      ids[count++] = owner + 1;
    },
  });
  return ipv6Table(starts.slice(0, 2 * count), ids.slice(0, count));
}

function ipv6Table(starts: Int32Array, ids: Int32Array): FlatTable {
  const firsts = new Int32Array(2 * starts.length);
  for (let at = 0; at < starts.length; at += 1) firsts[2 * at - (at & 1)] = starts[at] as number;
  return new FlatIpv6(indexFirsts(firsts, 4), starts, ids);
}

class FlatIpv6 implements FlatTable {
  readonly #index: FirstIndex;
  /** The first two words of each segment's start, top bits flipped. */
  readonly #starts: Int32Array;
  readonly #ids: Int32Array;
  readonly #scratch = new DataView(new ArrayBuffer(8));

  constructor(index: FirstIndex, starts: Int32Array, ids: Int32Array) {
    this.#index = index;
    this.#starts = starts;
    this.#ids = ids;
  }

  get segments(): number {
    return this.#ids.length;
  }

  get bytes(): number {
    const { slots, blocks } = this.#index;
    return slots.byteLength + blocks.byteLength + this.#starts.byteLength + this.#ids.byteLength;
  }

  idOf(address: IpAddress): number {
    const starts = this.#starts;
    const { slots } = this.#index;
    this.#scratch.setBigUint64(0, (address.value as bigint) >> 64n);
    const high = this.#scratch.getInt32(0) ^ topBit;
    const low = this.#scratch.getInt32(4) ^ topBit;
    const slot = ipv6Slot(this.#index, high, low);
    let from = slots[slot] as number;
    let to = slots[slot + 2] as number;
    while (from < to) {
      const middle = (from + to) >>> 1;
      const start = starts[2 * middle] as number;
      if (start < high || (start === high && (starts[2 * middle + 1] as number) <= low)) from = middle + 1;
      else to = middle;
    }
    return from === 0 ? 0 : (this.#ids[from - 1] as number);
  }
}

/** The place that answers where this one is most specific: its parent for a unary range. */
function answersOf({ first, last }: RangeColumns, parents: Int32Array): Int32Array {
  return parents.map((parent, place) => (first[place] === last[place] ? parent : place));
}

function cut(columns: RangeColumns, parents: Int32Array, { put }: Segment): void {
  const { first, words } = columns;
  let open = -1;
  for (let place = 0; place < columns.count; place += 1) {
    const parent = parents[place] as number;
    for (; open !== parent; open = parents[open] as number)
      putBehind(columns, open, parents[open] as number, put);
    put(first[place * words] as number, words === 1 ? 0 : (first[place * words + 1] as number), place);
    open = place;
  }
  for (; open >= 0; open = parents[open] as number) putBehind(columns, open, parents[open] as number, put);
}

/** From the address behind the range on, `owner` answers. */
function putBehind({ last, words }: RangeColumns, place: number, owner: number, put: Segment["put"]): void {
  const high = last[place * words] as number;
  if (words === 1) {
    if (high < 0xffffffff) put(high + 1, 0, owner);
    return;
  }
  const low = last[place * words + 1] as number;
  if (low < 0xffffffff) put(high, low + 1, owner);
  else if (high < 0xffffffff) put(high + 1, 0, owner);
}

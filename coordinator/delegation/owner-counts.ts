/**
 * Who owns how many subnets under each key of one kind. A key that one crawler owns alone, as nearly all are, is
 * one number in a table of numbers; only keys that several crawlers share have a list (`owner-lists.ts`):
 *
 *   0                       nobody
 *   slot · 2^19 + count     one owner
 *   below 0                 less the number of a list
 */
import { NumberMap } from "#core/small-collections";
import type { PlaceKey } from "./placement.ts";

/** 12 bits of slot above 19 bits of count stay below 2^31; beyond either, a list. */
const countBits = 19;

const mostPacked = 2 ** countBits - 1;
const lastPackedSlot = 2 ** 12 - 1;

export class OwnerCounts {
  /** Keys of 32 bits, as subnets and holders have; all others are in a map. */
  readonly #byNumber = new NumberMap();
  readonly #byText = new Map<PlaceKey, number>();
  readonly #lists: OwnerLists;

  /** The lists may serve several kinds of keys. */
  constructor(lists: OwnerLists) {
    this.#lists = lists;
  }

  /** But for lists and keys that are texts. */
  get bytes(): number {
    return this.#byNumber.bytes;
  }

  /** One more for the slot. */
  raise(key: PlaceKey, slot: number): void {
    this.#change(key, slot, this.#raised);
  }

  /** One less; a slot that owns nothing here is left alone. */
  lower(key: PlaceKey, slot: number): void {
    this.#change(key, slot, this.#lowered);
  }

  /** First come first. */
  each(key: PlaceKey, visit: (slot: number, count: number) => void): void {
    const cell = this.#get(key);
    if (cell > 0) visit(cell >>> countBits, cell & mostPacked);
    else if (cell < 0) this.#lists.each(-cell, visit);
  }

  /** The counts of the slots whose index is not below 0. */
  total(key: PlaceKey, indices: Int32Array): number {
    const cell = this.#get(key);
    if (cell < 0) return this.#lists.total(-cell, indices);
    return cell > 0 && indices[cell >>> countBits]! >= 0 ? cell & mostPacked : 0;
  }

  /** Adds those counts, times the weight, at their slots' indices. */
  addTo(sums: Float64Array, key: PlaceKey, indices: Int32Array, weight: number): void {
    const cell = this.#get(key);
    if (cell < 0) this.#lists.addTo(sums, -cell, indices, weight);
    if (cell <= 0) return;
    const index = indices[cell >>> countBits]!;
    if (index >= 0) sums[index]! += (cell & mostPacked) * weight;
  }

  #get(key: PlaceKey): number {
    return isSmall(key) ? this.#byNumber.get(key) : (this.#byText.get(key) ?? 0);
  }

  /** Numbers are looked for once: a million subnets are learned anew after an import. */
  #change(key: PlaceKey, slot: number, change: (cell: number, slot: number) => number): void {
    if (isSmall(key)) {
      const place = this.#byNumber.placeOf(key);
      this.#byNumber.put(place, key, change(this.#byNumber.valueAt(place), slot));
      return;
    }
    const cell = change(this.#byText.get(key) ?? 0, slot);
    if (cell === 0) this.#byText.delete(key);
    else this.#byText.set(key, cell);
  }

  readonly #raised = (cell: number, slot: number): number => {
    if (cell < 0) return -this.#lists.raise(-cell, slot, 1);
    if (cell === 0) return slot <= lastPackedSlot ? packed(slot, 1) : -this.#lists.make(slot, 1);
    const count = cell & mostPacked;
    if (cell >>> countBits === slot && count < mostPacked) return cell + 1;
    return -this.#lists.raise(this.#lists.make(cell >>> countBits, count), slot, 1);
  };

  readonly #lowered = (cell: number, slot: number): number => {
    if (cell < 0) return this.#loweredList(-cell, slot);
    if (cell === 0 || cell >>> countBits !== slot) return cell;
    return (cell & mostPacked) > 1 ? cell - 1 : 0;
  };

  /** A list of one becomes a number again. */
  #loweredList(list: number, slot: number): number {
    this.#lists.lower(list, slot);
    const count = this.#lists.countAt(list, 0);
    const first = this.#lists.slotAt(list, 0);
    const isLong = this.#lists.countAt(list, 1) > 0;
    if (count > 0 && (isLong || first > lastPackedSlot || count > mostPacked)) return -list;
    this.#lists.free(list);
    return count > 0 ? packed(first, count) : 0;
  }
}

const packed = (slot: number, count: number): number => slot * 2 ** countBits + count;

const isSmall = (key: PlaceKey): key is number => typeof key === "number" && (key | 0) === key;

/**
 * Lists of (crawler slot, count), first come first, for the places that several crawlers share: a million short
 * lists in one typed array, 8 bytes a pair. A list lies in a block of 1, 2, 4 … pairs and moves to one twice as
 * large when it is full; blocks that were left are used again.
 *
 * A list is known by a number of 31 bits, position · 32 + log2 of the block's size, never 0; it changes when
 * the list moves. Pairs behind the last one have the count 0.
 */
const sizeBits = 5;

const sizes = 2 ** sizeBits;

/** Positions that fit beside the size: 67 million pairs, half a gigabyte. */
const mostPairs = 2 ** (31 - sizeBits);

const growth = 1.5;

export class OwnerLists {
  #pairs = new Int32Array(128);
  /** The first position that no block has. Position 0 stays free, so that no list is number 0. */
  #end = 1;
  /** Per size the first block that was left, 0 for none; its first word names the next one. */
  readonly #left = new Int32Array(sizes);

  get bytes(): number {
    return this.#pairs.byteLength;
  }

  /** A new list of one. */
  make(slot: number, count: number): number {
    const list = this.#take(0);
    const at = 2 * (list >>> sizeBits);
    this.#pairs[at] = slot;
    this.#pairs[at + 1] = count;
    return list;
  }

  /** Adds to the slot's count, or appends the slot; returns the list's number from now on. */
  raise(list: number, slot: number, by: number): number {
    const end = endOf(list);
    let at = startOf(list);
    while (at < end && this.#pairs[at + 1] !== 0 && this.#pairs[at] !== slot) at += 2;
    if (at < end) {
      this.#pairs[at] = slot;
      this.#pairs[at + 1]! += by;
      return list;
    }
    return this.raise(this.#moved(list), slot, by);
  }

  /** Takes 1 from the slot's count; at 0 those behind move up. A slot that is not in the list is left alone. */
  lower(list: number, slot: number): void {
    const end = endOf(list);
    for (let at = startOf(list); at < end && this.#pairs[at + 1] !== 0; at += 2) {
      if (this.#pairs[at] !== slot) continue;
      this.#pairs[at + 1]! -= 1;
      if (this.#pairs[at + 1] !== 0) return;
      this.#pairs.copyWithin(at, at + 2, end);
      this.#pairs[end - 1] = 0;
      return;
    }
  }

  /** Every slot with its count, first come first. */
  each(list: number, visit: (slot: number, count: number) => void): void {
    const end = endOf(list);
    for (let at = startOf(list); at < end && this.#pairs[at + 1] !== 0; at += 2) {
      visit(this.#pairs[at] as number, this.#pairs[at + 1] as number);
    }
  }

  /** The slot at an index of the list where `countAt` is not 0. */
  slotAt(list: number, index: number): number {
    return this.#pairs[startOf(list) + 2 * index] as number;
  }

  /** The count at an index of the list, 0 behind its end. */
  countAt(list: number, index: number): number {
    const at = startOf(list) + 2 * index;
    return at < endOf(list) ? (this.#pairs[at + 1] as number) : 0;
  }

  /** The counts of the slots whose index is not below 0. */
  total(list: number, indices: Int32Array): number {
    let total = 0;
    const end = endOf(list);
    for (let at = startOf(list); at < end && this.#pairs[at + 1] !== 0; at += 2) {
      if (indices[this.#pairs[at] as number]! >= 0) total += this.#pairs[at + 1] as number;
    }
    return total;
  }

  /** Adds those counts, times the weight, at their slots' indices. */
  addTo(sums: Float64Array, list: number, indices: Int32Array, weight: number): void {
    const end = endOf(list);
    for (let at = startOf(list); at < end && this.#pairs[at + 1] !== 0; at += 2) {
      const index = indices[this.#pairs[at] as number]!;
      if (index >= 0) sums[index]! += (this.#pairs[at + 1] as number) * weight;
    }
  }

  /** The list is no longer needed; its number means nothing from now on. */
  free(list: number): void {
    const position = list >>> sizeBits;
    const size = list & (sizes - 1);
    this.#pairs[2 * position] = this.#left[size] as number;
    this.#left[size] = position;
  }

  #moved(list: number): number {
    const larger = this.#take((list & (sizes - 1)) + 1);
    this.#pairs.copyWithin(startOf(larger), startOf(list), endOf(list));
    this.free(list);
    return larger;
  }

  /** A block of 2^size pairs without any. */
  #take(size: number): number {
    const left = this.#left[size] as number;
    const position = left === 0 ? this.#end : left;
    const list = position * sizes + size;
    if (left === 0) this.#reserve(position + 2 ** size);
    else this.#left[size] = this.#pairs[2 * left] as number;
    this.#pairs.fill(0, startOf(list), endOf(list));
    return list;
  }

  #reserve(end: number): void {
    if (end > mostPairs) throw new RangeError(`more than ${mostPairs} owners of shared subnets`);
    this.#end = end;
    if (2 * end <= this.#pairs.length) return;
    const larger = new Int32Array(2 * Math.ceil(end * growth));
    larger.set(this.#pairs);
    this.#pairs = larger;
  }
}

const startOf = (list: number): number => 2 * (list >>> sizeBits);
const endOf = (list: number): number => startOf(list) + 2 * 2 ** (list & (sizes - 1));

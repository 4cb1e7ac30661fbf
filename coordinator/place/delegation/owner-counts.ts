/**
 * Counts how many subnets each crawler owns under each key of one kind. A key with one owner, as nearly all have, is
 * one number in a table; only keys with several owners have a list:
 *
 *   0                       nobody
 *   slot · 2^19 + count     one owner
 *   below 0                 less the number of a list
 */
import type { PlaceKey } from "./placement.ts";

/** 12 bits of slot above 19 bits of count stay below 2^31; larger values use a list. */
const countBits = 19;

const mostPacked = 2 ** countBits - 1;
const lastPackedSlot = 2 ** 12 - 1;

export class OwnerCounts {
  readonly #cells = new Map<PlaceKey, number>();
  readonly #lists: OwnerLists;

  /** Several kinds of keys may share the lists. */
  constructor(lists: OwnerLists) {
    this.#lists = lists;
  }

  /** Adds one to the slot's count. */
  raise(key: PlaceKey, slot: number): void {
    this.#change(key, slot, this.#raised);
  }

  /** Subtracts one; ignores a slot without a count. */
  lower(key: PlaceKey, slot: number): void {
    this.#change(key, slot, this.#lowered);
  }

  /** First come first. */
  each(key: PlaceKey, visit: (slot: number, count: number) => void): void {
    const cell = this.#get(key);
    if (cell > 0) visit(cell >>> countBits, cell & mostPacked);
    if (cell >= 0) return;
    const pairs = this.#lists.pairsOf(-cell);
    for (let at = 0; at < pairs.length; at += 2) visit(pairs[at]!, pairs[at + 1]!);
  }

  /** Sum over the slots with a non-negative index. */
  total(key: PlaceKey, indices: Int32Array): number {
    const cell = this.#get(key);
    if (cell >= 0) return cell > 0 && indices[cell >>> countBits]! >= 0 ? cell & mostPacked : 0;
    const pairs = this.#lists.pairsOf(-cell);
    let total = 0;
    for (let at = 0; at < pairs.length; at += 2) if (indices[pairs[at]!]! >= 0) total += pairs[at + 1]!;
    return total;
  }

  /** Adds those counts, times the weight, at the slots' indices. */
  addTo(sums: Float64Array, key: PlaceKey, indices: Int32Array, weight: number): void {
    const cell = this.#get(key);
    if (cell > 0) {
      const index = indices[cell >>> countBits]!;
      if (index >= 0) sums[index]! += (cell & mostPacked) * weight;
    }
    if (cell >= 0) return;
    const pairs = this.#lists.pairsOf(-cell);
    for (let at = 0; at < pairs.length; at += 2) {
      const index = indices[pairs[at]!]!;
      if (index >= 0) sums[index]! += pairs[at + 1]! * weight;
    }
  }

  #get(key: PlaceKey): number {
    return this.#cells.get(key) ?? 0;
  }

  #change(key: PlaceKey, slot: number, change: (cell: number, slot: number) => number): void {
    const cell = change(this.#get(key), slot);
    if (cell === 0) this.#cells.delete(key);
    else this.#cells.set(key, cell);
  }

  readonly #raised = (cell: number, slot: number): number => {
    if (cell === 0) return slot <= lastPackedSlot ? packed(slot, 1) : -this.#lists.make(slot, 1);
    const count = cell & mostPacked;
    if (cell > 0 && cell >>> countBits === slot && count < mostPacked) return cell + 1;
    const list = cell < 0 ? -cell : this.#lists.make(cell >>> countBits, count);
    this.#lists.raise(list, slot);
    return -list;
  };

  readonly #lowered = (cell: number, slot: number): number => {
    if (cell < 0) return this.#loweredList(-cell, slot);
    if (cell === 0 || cell >>> countBits !== slot) return cell;
    return (cell & mostPacked) > 1 ? cell - 1 : 0;
  };

  /** A list with one owner becomes a number again. */
  #loweredList(list: number, slot: number): number {
    this.#lists.lower(list, slot);
    const [first = 0, count = 0, second] = this.#lists.pairsOf(list);
    if (count > 0 && (second !== undefined || first > lastPackedSlot || count > mostPacked)) return -list;
    this.#lists.free(list);
    return count > 0 ? packed(first, count) : 0;
  }
}

const packed = (slot: number, count: number): number => slot * 2 ** countBits + count;

/** Lists of slots with counts, first come first, for keys with several owners. */
export class OwnerLists {
  /** Slot, count, slot, count … of each list. List number 0 is unused. */
  readonly #lists: number[][] = [[]];
  readonly #left: number[] = [];

  /** Creates a list with one owner; returns its number. */
  make(slot: number, count: number): number {
    const list = this.#left.pop() ?? this.#lists.length;
    this.#lists[list] = [slot, count];
    return list;
  }

  raise(list: number, slot: number): void {
    const pairs = this.#lists[list]!;
    const at = indexOf(pairs, slot);
    if (at < 0) pairs.push(slot, 1);
    else pairs[at + 1]! += 1;
  }

  /** Ignores missing slots; removes a slot whose count reaches 0. */
  lower(list: number, slot: number): void {
    const pairs = this.#lists[list]!;
    const at = indexOf(pairs, slot);
    if (at < 0) return;
    pairs[at + 1]! -= 1;
    if (pairs[at + 1] === 0) pairs.splice(at, 2);
  }

  pairsOf(list: number): readonly number[] {
    return this.#lists[list]!;
  }

  /** Frees the list; its number becomes invalid. */
  free(list: number): void {
    this.#lists[list] = [];
    this.#left.push(list);
  }
}

function indexOf(pairs: readonly number[], slot: number): number {
  for (let at = 0; at < pairs.length; at += 2) if (pairs[at] === slot) return at;
  return -1;
}

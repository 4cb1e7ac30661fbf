/**
 * Who owns how many subnets under each key of one kind. A key that one crawler owns alone, as nearly all are, is
 * one number in a table of numbers; only keys that several crawlers share have a list (`owner-lists.ts`):
 *
 *   0                       nobody
 *   slot · 2^19 + count     one owner
 *   below 0                 less the number of a list
 */
import { NumberMap } from "#core/small-collections";
import type { OwnerLists } from "./owner-lists.ts";
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

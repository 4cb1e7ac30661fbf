/**
 * Past subnets' RTT vectors in a few typed arrays. A round examines dozens of them per answer for one crawler's RTT;
 * an object for each would cost three cache misses instead of one.
 *
 * A vector is a hash table of 128 places, at most 96 used: the entry of a slot is at the slot modulo 128 or behind it
 * (linear probing). It takes 1.7 KB, whatever the fleet's size. Rows are reused, so whoever remembers a row must
 * remember its generation.
 */
import { mix32 } from "#core/random";
import { smallestOf } from "#core/small-collections";
import type { PlaceKey, Placement } from "../placement.ts";

const placesBits = 7;
const places = 2 ** placesBits;

/** Entries per vector: measured ones and the nearest expected ones. */
export const mostEntries = 96;

/** Crawlers listed as nearest; farther ones cannot be the nearest. */
export const listedAsNearest = 24;
/** Crawlers listed as having measured it. */
const listedAsMeasured = 24;

/** Stands for no entry. */
const none = -1;

/** RTTs of a subnet by the crawlers' slots. */
export interface RttEntries {
  readonly slots: ArrayLike<number>;
  /** Measured or expected RTT in ms. */
  readonly rttsMs: ArrayLike<number>;
  /** One standard deviation of an expectation, in ms; 0 for measured. */
  readonly spreadsMs: ArrayLike<number>;
}

/** Placement keys as numbers for comparison; 0 for none. */
interface PlaceNumbers {
  readonly holder: number;
  readonly parent: number;
  readonly grandparent: number;
  readonly country: number;
  /** Published places. */
  readonly published: readonly number[];
}

const numbersOfRow = 7;
const publishedOfRow = numbersOfRow - 4;

export class VectorTable {
  /** The crawler's slot by row and place, or none. */
  slots = new Int32Array(0);
  /** RTT and spread in ms, by row and place. */
  figures = new Float32Array(0);
  /** The winner's slot by row. */
  winners = new Int32Array(0);
  /** By row; changes with each vector stored there. */
  generations = new Int32Array(0);
  /** Places by row of the nearest, nearest first, and of those that measured. */
  readonly nearest = new PlaceLists(listedAsNearest);
  readonly measured = new PlaceLists(listedAsMeasured);
  #placeNumbers = new Int32Array(0);
  #references = new Uint8Array(0);
  readonly #free: number[] = [];
  #rows = 0;

  /** Vectors in use. */
  get size(): number {
    return this.#rows - this.#free.length;
  }

  /** Returns the row of a new vector that nobody holds yet. */
  add(winner: number, placement: Placement, entries: RttEntries): number {
    const row = this.#free.pop() ?? this.#newRow();
    this.winners[row] = winner;
    this.#writeEntries(row, entries);
    const { holder, parent, grandparent, country, published } = placeNumbersOf(placement);
    const numbers = [holder, parent, grandparent, country, ...published];
    for (let at = 0; at < numbersOfRow; at++) this.#placeNumbers[row * numbersOfRow + at] = numbers[at] ?? 0;
    return row;
  }

  hold(row: number): void {
    this.#references[row]! += 1;
  }

  /** Releases a hold; the last one frees the row. */
  release(row: number): void {
    this.#references[row]! -= 1;
    if (this.#references[row]! > 0) return;
    this.generations[row]! += 1;
    this.#free.push(row);
  }

  /** Index of the slot's entry in `slots` (twice that in `figures`); negative for none. */
  find(row: number, slot: number): number {
    const first = row << placesBits;
    for (let place = slot & (places - 1); ; place = (place + 1) & (places - 1)) {
      const found = this.slots[first + place]!;
      if (found === slot) return first + place;
      if (found === none) return none;
    }
  }

  /** The row's range in `slots`; places without an entry are negative. */
  placesOf(row: number): { readonly first: number; readonly last: number } {
    return { first: row << placesBits, last: (row << placesBits) + places - 1 };
  }

  /** Likeness of the placements, by the weights of what both share; 1 without anything in common. */
  likeness(row: number, other: PlaceNumbers, weights: LikenessWeights): number {
    const numbers = this.#placeNumbers;
    const first = row * numbersOfRow;
    let likeness = 1;
    if (other.holder !== 0 && numbers[first] === other.holder) likeness = weights.holder;
    else if (other.parent !== 0 && numbers[first + 1] === other.parent) likeness = weights.neighbourhood;
    else if (other.grandparent !== 0 && numbers[first + 2] === other.grandparent)
      likeness = weights.neighbourhood;
    else if (other.country !== 0 && numbers[first + 3] === other.country) likeness = weights.country;
    for (let claim = 0; claim < other.published.length; claim++)
      for (let at = first + 4; at < first + numbersOfRow; at++)
        if (numbers[at] === other.published[claim]) likeness = Math.max(likeness, weights.published[claim]!);
    return likeness;
  }

  #writeEntries(row: number, { slots, rttsMs, spreadsMs }: RttEntries): void {
    const first = row << placesBits;
    this.slots.fill(none, first, first + places);
    const placeOf: number[] = [];
    for (let entry = 0; entry < slots.length; entry++) {
      const slot = slots[entry]!;
      let place = slot & (places - 1);
      while (this.slots[first + place] !== none) place = (place + 1) & (places - 1);
      this.slots[first + place] = slot;
      this.figures[2 * (first + place)] = rttsMs[entry]!;
      this.figures[2 * (first + place) + 1] = spreadsMs[entry]!;
      placeOf.push(place);
    }
    this.nearest.clear(row);
    for (const entry of smallestOf(rttsMs, listedAsNearest)) this.nearest.push(row, placeOf[entry]!);
    this.measured.clear(row);
    for (let entry = 0; entry < slots.length; entry++)
      if (spreadsMs[entry] === 0) this.measured.push(row, placeOf[entry]!);
  }

  #newRow(): number {
    const row = this.#rows++;
    if (row < this.winners.length) return row;
    const rows = Math.max(64, Math.ceil(1.5 * row));
    const grown = <Column extends Int32Array | Float32Array | Uint8Array>(column: Column, made: Column) => {
      made.set(column);
      return made;
    };
    this.slots = grown(this.slots, new Int32Array(rows * places));
    this.figures = grown(this.figures, new Float32Array(2 * rows * places));
    this.winners = grown(this.winners, new Int32Array(rows));
    this.generations = grown(this.generations, new Int32Array(rows));
    this.#placeNumbers = grown(this.#placeNumbers, new Int32Array(rows * numbersOfRow));
    this.#references = grown(this.#references, new Uint8Array(rows));
    this.nearest.grow(rows);
    this.measured.grow(rows);
    return row;
  }
}

/** A short list of places per row. */
class PlaceLists {
  readonly most: number;
  counts = new Uint8Array(0);
  #places = new Uint8Array(0);

  constructor(most: number) {
    this.most = most;
  }

  /** Index in the table's `slots` of the entry with that rank. */
  at(row: number, rank: number): number {
    return (row << placesBits) + this.#places[row * this.most + rank]!;
  }

  clear(row: number): void {
    this.counts[row] = 0;
  }

  /** Ignores entries beyond the limit. */
  push(row: number, place: number): void {
    const rank = this.counts[row]!;
    if (rank === this.most) return;
    this.#places[row * this.most + rank] = place;
    this.counts[row] = rank + 1;
  }

  grow(rows: number): void {
    const [counts, listed] = [this.counts, this.#places];
    this.counts = new Uint8Array(rows);
    this.counts.set(counts);
    this.#places = new Uint8Array(rows * this.most);
    this.#places.set(listed);
  }
}

interface LikenessWeights {
  readonly holder: number;
  readonly neighbourhood: number;
  readonly country: number;
  /** In the order of the published places. */
  readonly published: readonly number[];
}

export function placeNumbersOf({
  holderKey,
  ancestorKeys,
  country,
  published = [],
}: Placement): PlaceNumbers {
  return {
    holder: numberOf(holderKey),
    parent: numberOf(ancestorKeys[0]),
    grandparent: numberOf(ancestorKeys[1]),
    country: numberOf(country),
    published: published.slice(0, publishedOfRow).map(({ place }) => numberOf(place)),
  };
}

/** Two keys collide once in four billion; then subnets look slightly more alike than they are. */
function numberOf(key: PlaceKey | null | undefined): number {
  if (key === null || key === undefined) return 0;
  if (typeof key === "number") return mix32(key) | 0 || 1;
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return mix32(hash) | 0 || 1;
}

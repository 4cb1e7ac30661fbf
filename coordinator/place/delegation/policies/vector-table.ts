/**
 * Past subnets as the crawlers see them, side by side in a few typed arrays: a round looks at some dozen of them with
 * every answer, each for one crawler's RTT, and an object for each would be three cache misses instead of one.
 *
 * A vector has 128 places, of which at most 96 are taken: its entries lie at their slot, modulo 128, or behind it
 * (linear probing). 1.7 KB a vector, whatever the size of the fleet. Rows are used again: who keeps the number of a row beyond
 * the moment keeps its generation, too.
 */
import { mix32 } from "#core/random";
import { smallestOf } from "#core/small-collections";
import type { PlaceKey, Placement } from "../placement.ts";

const placesBits = 7;
const places = 2 ** placesBits;

/** Entries of a vector: what was measured, and the nearest of what is expected. */
export const mostEntries = 96;

/** Crawlers that a vector lists as nearest: a farther one is no candidate for being the nearest. */
export const listedAsNearest = 24;
/** Of those that measured it. */
const listedAsMeasured = 24;

/** Stands for no entry. */
const none = -1;

/** A subnet as the crawlers see it, by their slots. */
export interface RttEntries {
  readonly slots: ArrayLike<number>;
  /** Measured or expected RTT in ms. */
  readonly rttsMs: ArrayLike<number>;
  /** How far off the expectation may be, in ms (one standard deviation); 0 where it was measured. */
  readonly spreadsMs: ArrayLike<number>;
}

/** Where a subnet sits, as numbers: equal numbers are one place. 0: there is none. */
interface PlaceNumbers {
  readonly holder: number;
  readonly parent: number;
  readonly grandparent: number;
  readonly country: number;
  /** Places that networks publish. */
  readonly published: readonly number[];
}

const numbersOfRow = 7;
const publishedOfRow = numbersOfRow - 4;

export class VectorTable {
  /** By row and place the slot of the crawler, or none. */
  slots = new Int32Array(0);
  /** By row and place: RTT in ms, spread in ms. */
  figures = new Float32Array(0);
  /** By row: who won it, as a slot. */
  winners = new Int32Array(0);
  /** By row: another number with each vector that lies in it. */
  generations = new Int32Array(0);
  /** By row the places of the nearest, nearest first, and of those that measured it. */
  readonly nearest = new PlaceLists(listedAsNearest);
  readonly measured = new PlaceLists(listedAsMeasured);
  #placeNumbers = new Int32Array(0);
  #references = new Uint8Array(0);
  readonly #free: number[] = [];
  #rows = 0;

  /** Vectors that somebody holds. */
  get size(): number {
    return this.#rows - this.#free.length;
  }

  /** The row of a new vector, which nobody holds yet. */
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

  /** Who held it does no longer; the last one's row is free for another vector. */
  release(row: number): void {
    this.#references[row]! -= 1;
    if (this.#references[row]! > 0) return;
    this.generations[row]! += 1;
    this.#free.push(row);
  }

  /** Where the entry of a slot stands in `slots`, and at twice that in `figures`; below 0: there is none. */
  find(row: number, slot: number): number {
    const first = row << placesBits;
    for (let place = slot & (places - 1); ; place = (place + 1) & (places - 1)) {
      const found = this.slots[first + place]!;
      if (found === slot) return first + place;
      if (found === none) return none;
    }
  }

  /** Where the places of a row stand in `slots`; those without an entry are below 0. */
  placesOf(row: number): { readonly first: number; readonly last: number } {
    return { first: row << placesBits, last: (row << placesBits) + places - 1 };
  }

  /** How alike the placement of a row's subnet is, by the weights given for what both share; 1 where nothing. */
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

/** A short list of places for each row. */
class PlaceLists {
  readonly most: number;
  counts = new Uint8Array(0);
  #places = new Uint8Array(0);

  constructor(most: number) {
    this.most = most;
  }

  /** Where the entry of that rank stands in the table's `slots`. */
  at(row: number, rank: number): number {
    return (row << placesBits) + this.#places[row * this.most + rank]!;
  }

  clear(row: number): void {
    this.counts[row] = 0;
  }

  /** What is beyond the most is left out. */
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

/** Two keys have the same number once in four billion; then subnets look a little more alike than they are. */
function numberOf(key: PlaceKey | null | undefined): number {
  if (key === null || key === undefined) return 0;
  if (typeof key === "number") return mix32(key) | 0 || 1;
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return mix32(hash) | 0 || 1;
}

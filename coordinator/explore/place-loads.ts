/**
 * What the subnets with hosts are to be fetched a day, by place: few beside all subnets, so a sorted list with running
 * sums, which answers for one subnet and for all that start in a stretch of places alike.
 */
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { lastPosition, startPosition } from "./places.ts";
import type { MapSpace } from "./space.ts";
import type { TileCells } from "./tile.ts";

/** In any order, each place once: a number of each for a subnet. */
export interface LoadColumns {
  readonly places: Int32Array;
  readonly pagesPerDay: Float64Array;
  /** Hosts with pages that are due. */
  readonly dueHosts: Int32Array;
}

/** A place and where it stood in one number, which the engine sorts fastest: 2^26 loads of 2^27 places are exact. */
const mostLoads = 2 ** 26;

export class PlaceLoads {
  readonly #places: Int32Array;
  /** One more than places: the sum of those before. */
  readonly #sums: Float64Array;
  readonly #dueHosts: Int32Array;

  constructor({ places, pagesPerDay, dueHosts }: LoadColumns) {
    const count = places.length;
    const keys = new Float64Array(count);
    for (let at = 0; at < count; at += 1) keys[at] = (places[at] as number) * mostLoads + at;
    keys.sort();
    this.#places = new Int32Array(count);
    this.#dueHosts = new Int32Array(count);
    this.#sums = new Float64Array(count + 1);
    for (let index = 0; index < count; index += 1) {
      const at = (keys[index] as number) % mostLoads;
      this.#places[index] = places[at] as number;
      this.#dueHosts[index] = dueHosts[at] as number;
      this.#sums[index + 1] = (this.#sums[index] as number) + (pagesPerDay[at] as number);
    }
  }

  get count(): number {
    return this.#places.length;
  }

  get bytes(): number {
    return this.#places.byteLength + this.#sums.byteLength + this.#dueHosts.byteLength;
  }

  pagesPerDayAt(place: number): number {
    const index = this.indexFrom(place);
    return this.#places[index] === place ? this.pagesPerDayOf(index) : 0;
  }

  /** Of the load of this number, in the order of the tree. */
  pagesPerDayOf(index: number): number {
    return (this.#sums[index + 1] as number) - (this.#sums[index] as number);
  }

  /** Of all that stand at these places, the last excluded. */
  pagesPerDayWithin(from: number, to: number): number {
    return (this.#sums[this.indexFrom(to)] as number) - (this.#sums[this.indexFrom(from)] as number);
  }

  dueHostsWithin(from: number, to: number): number {
    let due = 0;
    const last = this.indexFrom(to);
    for (let index = this.indexFrom(from); index < last; index += 1) due += this.#dueHosts[index] as number;
    return due;
  }

  dueHostsAt(place: number): number {
    const index = this.indexFrom(place);
    return this.#places[index] === place ? (this.#dueHosts[index] as number) : 0;
  }

  /** How many stand before the place: where to go on with `placeAt`. */
  indexFrom(place: number): number {
    let [low, high] = [0, this.#places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#places[middle] as number) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** In the order of the tree. */
  get places(): Int32Array {
    return this.#places;
  }
}

export interface LoadedCells {
  readonly columns: TreeColumns;
  readonly space: MapSpace;
  readonly from: number;
  readonly cellPositions: number;
  readonly count: number;
  readonly target: number;
}

/** Adds what these places are fetched a day to the cells, each spread evenly over its own addresses. */
export function addLoads(
  into: TileCells,
  span: LoadedCells,
  places: Iterable<readonly [number, number]>,
): void {
  const { columns, space, from, cellPositions, count, target } = span;
  const to = from + count * cellPositions - 1;
  for (const [place, pagesPerDay] of places) {
    const start = startPosition(columns, space, place);
    const end = lastPosition(columns, space, place);
    const perPosition = pagesPerDay / (end - start + 1);
    const last = Math.min(end, to);
    for (let position = Math.max(start, from); position <= last; ) {
      const cell = Math.floor((position - from) / cellPositions);
      const cellEnd = Math.min(last, from + (cell + 1) * cellPositions - 1);
      into.loads[target + cell] =
        (into.loads[target + cell] as number) + perPosition * (cellEnd - position + 1);
      position = cellEnd + 1;
    }
  }
}

/**
 * What the subnets with hosts are to be fetched a day, by place: few beside all subnets, so a sorted list with running
 * sums, which answers for one subnet and for all that start in a stretch of places alike.
 */
import type { TreeColumns } from "../subnet/tree-columns.ts";
import type { MapSpace } from "./map-space.ts";
import type { TileCells } from "./tile-cells.ts";
import { lastPosition, startPosition } from "./tree-places.ts";

/** In any order, each place once: a number of each for a subnet. */
export interface LoadColumns {
  readonly places: Int32Array;
  readonly pagesPerDay: Float64Array;
  /** Hosts with pages that are due. */
  readonly dueHosts: Int32Array;
}

export class PlaceLoads {
  readonly #places: Int32Array;
  /** One more than places: the sum of those before. */
  readonly #sums: Float64Array;
  readonly #dueHosts: Int32Array;

  constructor({ places, pagesPerDay, dueHosts }: LoadColumns) {
    const order = orderOf(places);
    this.#places = order.map((at) => places[at] as number);
    this.#dueHosts = order.map((at) => dueHosts[at] as number);
    this.#sums = new Float64Array(places.length + 1);
    order.forEach((at, index) => {
      this.#sums[index + 1] = (this.#sums[index] as number) + (pagesPerDay[at] as number);
    });
  }

  get count(): number {
    return this.#places.length;
  }

  get bytes(): number {
    return this.#places.byteLength + this.#sums.byteLength + this.#dueHosts.byteLength;
  }

  pagesPerDayAt(place: number): number {
    const index = this.indexFrom(place);
    if (this.#places[index] !== place) return 0;
    return (this.#sums[index + 1] as number) - (this.#sums[index] as number);
  }

  /** Of all that stand at these places, the last excluded. */
  pagesPerDayWithin(from: number, to: number): number {
    return (this.#sums[this.indexFrom(to)] as number) - (this.#sums[this.indexFrom(from)] as number);
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

/** Indexes by place: two counting passes of 16 bits (Knuth, volume 3, section 5.2.5), 20 ms for a million. */
function orderOf(places: Int32Array): Int32Array {
  let order = new Int32Array(places.length);
  for (let at = 0; at < order.length; at += 1) order[at] = at;
  for (const shift of [0, 16]) {
    const starts = new Int32Array(0x10001);
    const digit = (at: number) => ((places[at] as number) >>> shift) & 0xffff;
    for (const at of order) starts[digit(at) + 1] = (starts[digit(at) + 1] as number) + 1;
    for (let one = 1; one < starts.length; one += 1)
      starts[one] = (starts[one] as number) + (starts[one - 1] as number);
    const sorted = new Int32Array(order.length);
    for (const at of order) {
      const to = starts[digit(at)] as number;
      starts[digit(at)] = to + 1;
      sorted[to] = at;
    }
    order = sorted;
  }
  return order;
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

/**
 * What the subnets with hosts are to be fetched a day, by place: few beside all subnets, so a sorted list with running
 * sums, which answers for one subnet and for all that start in a stretch of places alike.
 */
import type { TreeColumns } from "../subnet/tree-columns.ts";
import type { MapSpace } from "./map-space.ts";
import type { TileCells } from "./tile-cells.ts";
import { lastPosition, startPosition } from "./tree-places.ts";

export interface PlaceLoad {
  readonly place: number;
  readonly pagesPerDay: number;
  /** Hosts with pages that are due. */
  readonly dueHosts: number;
}

export class PlaceLoads {
  readonly #places: Int32Array;
  /** One more than places: the sum of those before. */
  readonly #sums: Float64Array;
  readonly #dueHosts: Int32Array;

  constructor(loads: readonly PlaceLoad[]) {
    const sorted = [...loads].sort((a, b) => a.place - b.place);
    this.#places = Int32Array.from(sorted, ({ place }) => place);
    this.#dueHosts = Int32Array.from(sorted, ({ dueHosts }) => dueHosts);
    this.#sums = new Float64Array(sorted.length + 1);
    sorted.forEach(({ pagesPerDay }, index) => {
      this.#sums[index + 1] = (this.#sums[index] as number) + pagesPerDay;
    });
  }

  get count(): number {
    return this.#places.length;
  }

  get bytes(): number {
    return this.#places.byteLength + this.#sums.byteLength + this.#dueHosts.byteLength;
  }

  pagesPerDayAt(place: number): number {
    return this.pagesPerDayWithin(place, place + 1);
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

/**
 * The space cut into stretches, each with the most specific subnet over it, from one position to another in order:
 *
 *   subnets     A [0 .................. 99]
 *                   B [10 ....... 49]
 *   stretches   A     B             A        (none)
 *
 * A stretch ends where its subnet does or the next one starts. What crosses is answered as every look-up is.
 */
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { familyPlaces, firstPlaceFrom, lastPosition, nowhere, placeOver, startPosition } from "./places.ts";
import type { MapSpace } from "./space.ts";

export interface SweepSpan {
  readonly space: MapSpace;
  /** Positions, both included. */
  readonly from: number;
  readonly to: number;
}

export class PlaceSweep {
  readonly #columns: TreeColumns;
  readonly #space: MapSpace;
  readonly #to: number;
  readonly #firstPlace: number;
  readonly #endPlace: number;
  #at: number;
  /** The last place that starts at `#at` or before. */
  #last: number;
  /** The stretch that `next` found: positions, and the place or −1. */
  first = 0;
  last = 0;
  place = nowhere;

  constructor(columns: TreeColumns, { space, from, to }: SweepSpan) {
    this.#columns = columns;
    this.#space = space;
    this.#at = from;
    this.#to = to;
    [this.#firstPlace, this.#endPlace] = familyPlaces(columns, space.family);
    this.#last = firstPlaceFrom(columns, space, from) - 1;
  }

  /** False when there is no further stretch. */
  next(): boolean {
    const position = this.#at;
    if (position > this.#to) return false;
    const columns = this.#columns;
    const space = this.#space;
    let last = this.#last;
    while (last + 1 < this.#endPlace && startPosition(columns, space, last + 1) <= position) last += 1;
    this.#last = last;
    const place = last < this.#firstPlace ? nowhere : placeOver(columns, space, { position, last });
    let end = this.#to;
    if (place >= 0) end = Math.min(end, lastPosition(columns, space, place));
    if (last + 1 < this.#endPlace) end = Math.min(end, startPosition(columns, space, last + 1) - 1);
    this.first = position;
    this.last = end;
    this.place = place;
    this.#at = end + 1;
    return true;
  }
}

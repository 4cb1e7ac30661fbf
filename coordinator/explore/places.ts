/** The tree by its places: what goes over many subnets at once reads these numbers, not a record for each. */
import type { IpRange } from "#core/ip/range";
import { endOf, ipv4At, placeOfIpv4, placeOfIpv6, rangeOfPlace, topBit } from "../subnets/range-table.ts";
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { addressAt, type MapSpace } from "./space.ts";

const nowhere = -1;

/** The place of a place's parent, or −1. */
export function parentPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): number {
  if (place < ipv6Base) return ipv4.parents[place] as number;
  const parent = ipv6.parents[place - ipv6Base] as number;
  return parent < 0 ? nowhere : ipv6Base + parent;
}

/** Behind the last place that starts within the range of this one. */
export function endPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): number {
  return place < ipv6Base ? endOf(ipv4, place) : ipv6Base + endOf(ipv6, place - ipv6Base);
}

export function rangeAtPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): IpRange {
  return place < ipv6Base ? rangeOfPlace(ipv4, place) : rangeOfPlace(ipv6, place - ipv6Base);
}

/** Log2 of how many addresses the place's range has; what sizes are compared and shown by. */
export function sizeBits(columns: TreeColumns, place: number): number {
  const range = rangeAtPlace(columns, place);
  return Math.log2(Number(BigInt(range.last) - BigInt(range.first) + 1n));
}

/** The first and the last place of a family, the last excluded. */
export function familyPlaces(
  { ipv6Base, ids }: TreeColumns,
  family: 4 | 6,
): readonly [from: number, to: number] {
  return family === 4 ? [0, ipv6Base] : [ipv6Base, ids.length];
}

/** The first place that starts at the position or behind it. */
export function firstPlaceFrom(columns: TreeColumns, space: MapSpace, position: number): number {
  let [low, high] = familyPlaces(columns, space.family);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (startPosition(columns, space, middle) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** IPv6 before 2000:: has a position below 0, behind 3fff:… one beyond the space. */
export function startPosition({ ipv4, ipv6, ipv6Base }: TreeColumns, space: MapSpace, place: number): number {
  return space.family === 4 ? ipv4At(ipv4.firsts, place) : ipv6Position(ipv6.firsts, place - ipv6Base);
}

export function lastPosition(columns: TreeColumns, space: MapSpace, place: number): number {
  const { ipv4, ipv6, ipv6Base } = columns;
  return space.family === 4 ? ipv4At(ipv4.lasts, place) : ipv6Position(ipv6.lasts, place - ipv6Base);
}

function ipv6Position(addresses: Int32Array, place: number): number {
  const [high, low] = [addresses[4 * place] as number, addresses[4 * place + 1] as number];
  return (((high ^ topBit) >>> 0) - 0x20000000) * 2 ** 23 + ((low ^ topBit) >>> 9);
}

/** The most specific place over a position, where `last` is the last of its family that starts there or before. */
export function placeOver(
  columns: TreeColumns,
  space: MapSpace,
  at: { position: number; last: number },
): number {
  const { ipv4, ipv6, ipv6Base } = columns;
  if (space.family === 4) return placeOfIpv4(ipv4, at.position ^ topBit);
  const place = placeOfIpv6(ipv6, addressAt(space, at.position).value as bigint);
  return place < 0 ? nowhere : ipv6Base + place;
}

/** The most specific place over the range's first address that holds the range whole, or −1. */
export function placeHolding(columns: TreeColumns, range: IpRange): number {
  const { ipv4, ipv6, ipv6Base } = columns;
  let place = range.family === 4 ? placeOfIpv4(ipv4, range.first ^ topBit) : placeOfIpv6(ipv6, range.first);
  if (range.family === 6 && place >= 0) place += ipv6Base;
  while (place >= 0 && rangeAtPlace(columns, place).last < range.last) place = parentPlace(columns, place);
  return place;
}

/** The places that start within the range, the last excluded. */
export function placesStartingIn(columns: TreeColumns, range: IpRange): readonly [from: number, to: number] {
  return [
    firstPlaceAt(columns, range.family, range.first),
    firstPlaceAt(columns, range.family, BigInt(range.last) + 1n),
  ];
}

function firstPlaceAt(columns: TreeColumns, family: 4 | 6, address: number | bigint): number {
  let [low, high] = familyPlaces(columns, family);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rangeAtPlace(columns, middle).first < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The space cut into stretches, each with the most specific subnet over it, from one position to another in order:
//
// subnets     A [0 .................. 99]
// B [10 ....... 49]
// stretches   A     B             A        (none)
//
// A stretch ends where its subnet does or the next one starts. What crosses is answered as every look-up is.

interface SweepSpan {
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

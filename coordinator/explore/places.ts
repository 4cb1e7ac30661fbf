/** The tree by its places: what goes over many subnets at once reads these numbers, not a record for each. */
import type { IpRange } from "#core/ip/range";
import {
  ipv4EndOf,
  ipv4Key,
  ipv4LastAt,
  ipv4ParentOf,
  ipv4RangeAt,
  ipv4Reaching,
  placeOfIpv4,
} from "../subnets/ipv4-places.ts";
import { ipv6EndOf, ipv6ParentOf, ipv6RangeAt, oddWords, placeOfIpv6 } from "../subnets/ipv6-places.ts";
import { extentIn, oddEntry, oddExtent, topBit } from "../subnets/place-index.ts";
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { addressAt, ipv6Space, type MapSpace } from "./space.ts";

const nowhere = -1;

/** The place of a place's parent, or −1. */
export function parentPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): number {
  if (place < ipv6Base) return ipv4ParentOf(ipv4, place);
  const parent = ipv6ParentOf(ipv6, place - ipv6Base);
  return parent < 0 ? nowhere : ipv6Base + parent;
}

/** Behind the last place that starts within the range of this one. */
export function endPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): number {
  return place < ipv6Base ? ipv4EndOf(ipv4, place) : ipv6Base + ipv6EndOf(ipv6, place - ipv6Base);
}

export function rangeAtPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): IpRange {
  return place < ipv6Base ? ipv4RangeAt(ipv4, place) : ipv6RangeAt(ipv6, place - ipv6Base);
}

/** Log2 of how many addresses the place's range has; what sizes are compared and shown by. */
export function sizeBits(columns: TreeColumns, place: number): number {
  const { ipv4, ipv6Base } = columns;
  if (place < ipv6Base)
    return Math.log2(ipv4LastAt(ipv4, place) - (((ipv4.keys[place] as number) ^ topBit) >>> 0) + 1);
  const extent = extentIn(columns.ipv6.links[place - ipv6Base] as number);
  if (extent < oddExtent) return 128 - extent;
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
  if (space.family === 4) return ((ipv4.keys[place] as number) ^ topBit) >>> 0;
  const at = 2 * (place - ipv6Base);
  return ipv6Position((ipv6.keys[at] as number) ^ topBit, (ipv6.keys[at + 1] as number) ^ topBit);
}

export function lastPosition(columns: TreeColumns, space: MapSpace, place: number): number {
  const { ipv4, ipv6, ipv6Base } = columns;
  if (space.family === 4) return ipv4LastAt(ipv4, place);
  const at = place - ipv6Base;
  const extent = extentIn(ipv6.links[at] as number);
  if (extent >= oddExtent) {
    const word = oddWords * oddEntry(ipv6.lists, at, extent) + 2;
    return ipv6Position(
      (ipv6.lists.odd[word] as number) ^ topBit,
      (ipv6.lists.odd[word + 1] as number) ^ topBit,
    );
  }
  const first = startPosition(columns, space, place);
  return extent >= positionPrefix ? first : first + 2 ** (positionPrefix - extent) - 1;
}

const positionPrefix = ipv6Space.leadingBits + ipv6Space.positionBits;

function ipv6Position(high: number, low: number): number {
  return ((high >>> 0) - 0x20000000) * 2 ** 23 + (low >>> 9);
}

/** The most specific place over a position, where `last` is the last of its family that starts there or before. */
export function placeOver(
  columns: TreeColumns,
  space: MapSpace,
  at: { position: number; last: number },
): number {
  const { ipv4, ipv6, ipv6Base } = columns;
  if (space.family === 4) return ipv4Reaching(ipv4, at.last, ipv4Key(at.position));
  const place = placeOfIpv6(ipv6, addressAt(space, at.position).value as bigint);
  return place < 0 ? nowhere : ipv6Base + place;
}

/** The most specific place over the range's first address that holds the range whole, or −1. */
export function placeHolding(columns: TreeColumns, range: IpRange): number {
  const { ipv4, ipv6, ipv6Base } = columns;
  let place = range.family === 4 ? placeOfIpv4(ipv4, ipv4Key(range.first)) : placeOfIpv6(ipv6, range.first);
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

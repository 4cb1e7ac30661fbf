/** The tree by places. Code that scans many subnets reads these numbers instead of records. */
import type { IpAddress } from "#core/ip/address";
import type { IpRange } from "#core/ip/range";
import { endOf, placeOfIpv4, placeOfIpv6, rangeOfPlace, topBit } from "../../place/subnets/range-table.ts";
import type { TreeColumns } from "../../place/subnets/tree-columns.ts";

/** Consecutive places, excluding the last one. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Returns the parent's place, or −1. */
export function parentPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): number {
  if (place < ipv6Base) return ipv4.parents[place] as number;
  const parent = ipv6.parents[place - ipv6Base] as number;
  return parent < 0 ? -1 : ipv6Base + parent;
}

/** Returns the place and those that start within its range. */
export function spanOfPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): Span {
  const to = place < ipv6Base ? endOf(ipv4, place) : ipv6Base + endOf(ipv6, place - ipv6Base);
  return { from: place, to };
}

export function rangeAtPlace({ ipv4, ipv6, ipv6Base }: TreeColumns, place: number): IpRange {
  return place < ipv6Base ? rangeOfPlace(ipv4, place) : rangeOfPlace(ipv6, place - ipv6Base);
}

export function spanOfFamily({ ipv6Base, ids }: TreeColumns, family: 4 | 6): Span {
  return family === 4 ? { from: 0, to: ipv6Base } : { from: ipv6Base, to: ids.length };
}

/** Returns the most specific place that contains the address, or −1. */
export function placeOver({ ipv4, ipv6, ipv6Base }: TreeColumns, { family, value }: IpAddress): number {
  if (family === 4) return placeOfIpv4(ipv4, value ^ topBit);
  const place = placeOfIpv6(ipv6, value);
  return place < 0 ? -1 : ipv6Base + place;
}

/** Returns the most specific place that contains the whole range, or −1. */
export function placeHolding(columns: TreeColumns, range: IpRange): number {
  let place = placeOver(columns, { family: range.family, value: range.first } as IpAddress);
  while (place >= 0 && rangeAtPlace(columns, place).last < range.last) place = parentPlace(columns, place);
  return place;
}

export function spanStartingIn(columns: TreeColumns, { family, first, last }: IpRange): Span {
  return {
    from: firstPlaceFrom(columns, family, first),
    to: firstPlaceFrom(columns, family, BigInt(last) + 1n),
  };
}

/** Returns the first place that starts at the address or after it. */
export function firstPlaceFrom(columns: TreeColumns, family: 4 | 6, address: number | bigint): number {
  let { from, to } = spanOfFamily(columns, family);
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (rangeAtPlace(columns, middle).first < address) from = middle + 1;
    else to = middle;
  }
  return from;
}

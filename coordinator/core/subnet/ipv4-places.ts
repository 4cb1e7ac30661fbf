/**
 * IPv4 subnets by place: places are in the order of first addresses, the widest first of those that start
 * together, so a parent stands before its children. 8 bytes a place, and about 1.7 for the index.
 *
 * A look-up finds the last place that starts at the address or before. Where its range ends short of the
 * address, the answer is the nearest of its parents that reaches so far: every range that holds the address
 * starts before, and so holds that place whole, unless ranges cross. Places behind which ranges cross, or from
 * which the way up is long, are marked, and answered from a table of segments (`hard-stretches.ts`).
 */
import type { Ipv4Range } from "../ip/range.ts";
import { type Ipv4Index, indexIpv4, topBit } from "./first-index.ts";
import type { NestedRanges } from "./nested-ranges.ts";
import {
  type ExtentCoding,
  extentIn,
  isHard,
  linkBytes,
  oddEntry,
  oddExtent,
  type PlaceLinks,
  packLinks,
  parentAt,
} from "./place-links.ts";
import { findIpv4, type Segments, segmentBytes } from "./segments.ts";

export interface Ipv4Places {
  /** First addresses, their top bit flipped (`topBit`). */
  readonly keys: Int32Array;
  /** An extent is the last address less the first; one that does not fit stands in `odd` as the last address, flipped. */
  readonly links: PlaceLinks;
  readonly index: Ipv4Index;
  /** Its owners are places. */
  readonly segments: Segments;
}

/** Of ranges in the order of places. */
export function placeIpv4({ columns, parents, hard, segments }: NestedRanges): Ipv4Places {
  const { first, last } = columns;
  const coding: ExtentCoding = {
    oddWords: 1,
    extentOf: (place) => {
      const extent = (last[place] as number) - (first[place] as number);
      return extent < oddExtent ? extent : -1;
    },
    writeOdd: (place, into) => into.push((last[place] as number) ^ topBit),
  };
  return ipv4PlacesOf({ keys: flipped(first), links: packLinks({ parents, hard, coding }), segments });
}

/** With the index, which is made from the keys. */
export function ipv4PlacesOf(parts: Omit<Ipv4Places, "index">): Ipv4Places {
  return { ...parts, index: indexIpv4(parts.keys) };
}

function flipped(addresses: Uint32Array): Int32Array {
  const keys = new Int32Array(addresses.length);
  for (let at = 0; at < keys.length; at += 1) keys[at] = (addresses[at] as number) ^ topBit;
  return keys;
}

/** The most specific place over the address, or −1. */
export function placeOfIpv4(places: Ipv4Places, address: number): number {
  const { links, segments } = places;
  const key = address ^ topBit;
  let place = lastStartingAt(places, key);
  if (place < 0) return -1;
  let link = links.words[place] as number;
  if (isHard(link)) return segments.owners[findIpv4(segments, address)] ?? -1;
  while (endsBefore(places, place, key)) {
    place = parentAt(links, place, link);
    if (place < 0) return -1;
    link = links.words[place] as number;
  }
  return place;
}

/** Behind the last place that starts within the range of this one. */
export function ipv4EndOf(places: Ipv4Places, place: number): number {
  return lastStartingAt(places, lastKey(places, place)) + 1;
}

export function ipv4RangeAt(places: Ipv4Places, place: number): Ipv4Range {
  const first = ((places.keys[place] as number) ^ topBit) >>> 0;
  return { family: 4, first, last: (lastKey(places, place) ^ topBit) >>> 0 };
}

export function isUnaryIpv4({ links }: Ipv4Places, place: number): boolean {
  return extentIn(links.words[place] as number) === 0;
}

export function ipv4Bytes({ keys, links, index, segments }: Ipv4Places): number {
  return keys.byteLength + linkBytes(links) + index.slots.byteLength + segmentBytes(segments);
}

/** −1 when none does. */
function lastStartingAt({ keys, index }: Ipv4Places, key: number): number {
  const { slots, shift } = index;
  const slot = (key ^ topBit) >>> shift;
  let low = slots[slot] as number;
  let high = slots[slot + 1] as number;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as number) <= key) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Whether the range at the place, which starts at the key or before, ends short of it. */
function endsBefore({ keys, links }: Ipv4Places, place: number, key: number): boolean {
  const extent = extentIn(links.words[place] as number);
  if (extent < oddExtent) return (key - (keys[place] as number)) >>> 0 > extent;
  return (links.odd[oddEntry(links, place, extent)] as number) < key;
}

function lastKey({ keys, links }: Ipv4Places, place: number): number {
  const extent = extentIn(links.words[place] as number);
  if (extent < oddExtent) return ((keys[place] as number) + extent) | 0;
  return links.odd[oddEntry(links, place, extent)] as number;
}

/**
 * IPv4 subnets by place: places are in the order of first addresses, the widest first of those that start
 * together, so a parent stands before its children. 8 bytes a place, and 1.5 for the index.
 *
 * A look-up finds the last place that starts at the address or before. Where its range ends short of the
 * address, the answer is the nearest of its parents that reaches so far: every range that holds the address
 * starts before, and so holds that place whole, unless ranges cross. Places behind which ranges cross, or from
 * which the way up is long, are marked, and answered from a table of segments (`hard-stretches.ts`).
 */
import { formatRange, type Ipv4Range } from "#core/ip/range";
import { nest } from "./nest.ts";
import {
  answerSlot,
  type ExtentCoding,
  extentIn,
  type FirstIndex,
  forEachSlot,
  indexKeys,
  ipv4Slot,
  isHard,
  type LinkLists,
  listBytes,
  oddEntry,
  oddExtent,
  packLinks,
  parentAt,
  slotAnswer,
  topBit,
} from "./place-index.ts";
import { emptyColumns, type RangeColumns, rangeAt, sortedOrder } from "./range-columns.ts";
import { cutHardSegments, findHardStretches, findIpv4, type Segments, segmentBytes } from "./segments.ts";

export interface Ipv4Places extends Ipv4Parts, FirstIndex {}

/** What a snapshot holds: the index is made from it. */
export interface Ipv4Parts {
  /** First addresses, the top bit flipped (`topBit`). */
  readonly keys: Int32Array;
  /**
   * An extent is the last address less the first; one that does not fit stands in `lists.odd` as the last address,
   * flipped.
   */
  readonly links: Int32Array;
  readonly lists: LinkLists;
  /** Its owners are places. */
  readonly segments: Segments;
}

/** Of ranges in the order of places. */
export function placeIpv4({ columns, parents, hard, segments }: NestedRanges): Ipv4Places {
  const keys = new Int32Array(columns.count);
  for (let place = 0; place < columns.count; place += 1)
    keys[place] = (columns.first[place] as number) ^ topBit;
  return indexedIpv4({ keys, ...packLinks({ parents, hard, coding: codingOf(columns) }), segments });
}

function codingOf({ first, last }: RangeColumns): ExtentCoding {
  return {
    oddWords: 1,
    extentOf: (place) => {
      const extent = (last[place] as number) - (first[place] as number);
      return extent < oddExtent ? extent : -1;
    },
    writeOdd: (place, into) => into.push((last[place] as number) ^ topBit),
  };
}

export function indexedIpv4(parts: Ipv4Parts): Ipv4Places {
  const places = { ...parts, ...indexKeys(parts.keys, 4) };
  fillAnswers(places);
  return places;
}

/** From the first slot to the last: an answer never hides a count that is still needed. */
function fillAnswers(places: Ipv4Places): void {
  const { keys, slots } = places;
  forEachSlot(places, (slot, block, from, to) => {
    const first = ((block << 16) | (from >>> 16)) ^ topBit;
    const before = (slots[slot + 1] as number) - 1;
    if (before >= (slots[slot] as number) && keys[before] !== first) return;
    const place = before < 0 ? -1 : ipv4Reaching(places, before, first);
    const last = ((block << 16) | (to >>> 16)) ^ topBit;
    if (place < 0 || !endsBefore(places, place, last)) slots[slot] = answerSlot(place);
  });
}

/** An address as look-ups take it: its top bit flipped. A small integer, which calls pass on without a box. */
export const ipv4Key = (address: number): number => address ^ topBit;

/** The most specific place over the address with this key, or −1. */
export function placeOfIpv4(places: Ipv4Places, key: number): number {
  return placeFrom(places, lastStartingAt(places, key), key);
}

/** The most specific place of more than one address over that with this key, or −1: a unary range's parent is wider. */
export function nonUnaryPlaceOfIpv4(places: Ipv4Places, key: number): number {
  const last = lastStartingAt(places, key);
  // The usual case by itself: it is what every URL pays for.
  if (last >= 0 && answersFor(places, last, key)) return last;
  const place = placeFrom(places, last, key);
  if (place < 0 || extentIn(places.links[place] as number) !== 0) return place;
  return ipv4ParentOf(places, place);
}

/** The last place that starts at the key or before; below 0: the slot's answer. */
function lastStartingAt(places: Ipv4Places, key: number): number {
  const { keys, slots } = places;
  const slot = ipv4Slot(places, key);
  let low = slots[slot] as number;
  if (low < 0) return low;
  let high = slots[slot + 1] as number;
  if (high < 0) high = countThrough(keys, low, key);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as number) <= key) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? answerSlot(-1) : low - 1;
}

/** Whether a place that starts at the key or before is easy, has more than one address and reaches the key. */
function answersFor({ keys, links }: Ipv4Places, place: number, key: number): boolean {
  const link = links[place] as number;
  const extent = extentIn(link);
  if (isHard(link) || extent === 0 || extent >= oddExtent) return false;
  return (key - (keys[place] as number)) >>> 0 <= extent;
}

function placeFrom(places: Ipv4Places, last: number, key: number): number {
  return last < 0 ? slotAnswer(last) : ipv4Reaching(places, last, key);
}

/** A number of places that all start at the key or before are below, found in strides from `low` on. */
function countThrough(keys: Int32Array, low: number, key: number): number {
  const count = keys.length;
  let step = 4;
  while (low + step < count && (keys[low + step] as number) <= key) step *= 2;
  return Math.min(count, low + step);
}

/** The most specific place over the key, given the last that starts there or before: of it and its parents the nearest that reaches so far; or −1. */
export function ipv4Reaching(places: Ipv4Places, last: number, key: number): number {
  const { links, lists, segments } = places;
  let place = last;
  let link = links[place] as number;
  if (isHard(link)) return segments.owners[findIpv4(segments, (key ^ topBit) >>> 0)] ?? -1;
  while (endsBefore(places, place, key)) {
    place = parentAt(lists, place, link);
    if (place < 0) return -1;
    link = links[place] as number;
  }
  return place;
}

/** Behind the last place that starts within the range of this one. */
export function ipv4EndOf(places: Ipv4Places, place: number): number {
  const { keys } = places;
  const last = lastKey(places, place);
  let low = place + 1;
  for (let high = keys.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as number) <= last) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function ipv4RangeAt(places: Ipv4Places, place: number): Ipv4Range {
  const first = ((places.keys[place] as number) ^ topBit) >>> 0;
  return { family: 4, first, last: (lastKey(places, place) ^ topBit) >>> 0 };
}

export function ipv4LastAt(places: Ipv4Places, place: number): number {
  return (lastKey(places, place) ^ topBit) >>> 0;
}

export function ipv4ParentOf({ links, lists }: Ipv4Places, place: number): number {
  return parentAt(lists, place, links[place] as number);
}

export function ipv4Bytes({ keys, links, lists, slots, blocks, segments }: Ipv4Places): number {
  return (
    keys.byteLength +
    links.byteLength +
    listBytes(lists) +
    slots.byteLength +
    blocks.byteLength +
    segmentBytes(segments)
  );
}

/** Whether the range at the place, which starts at the key or before, ends short of it. */
function endsBefore({ keys, links, lists }: Ipv4Places, place: number, key: number): boolean {
  const extent = extentIn(links[place] as number);
  if (extent < oddExtent) return (key - (keys[place] as number)) >>> 0 > extent;
  return (lists.odd[oddEntry(lists, place, extent)] as number) < key;
}

function lastKey({ keys, links, lists }: Ipv4Places, place: number): number {
  const extent = extentIn(links[place] as number);
  if (extent < oddExtent) return ((keys[place] as number) + extent) | 0;
  return lists.odd[oddEntry(lists, place, extent)] as number;
}

// The ranges of one family on their way into the tree: sorted into places, nested, and with the stretches
// found that look-ups answer from a table.

export interface NestedRanges {
  /** By first address, the widest first of those that start together: the order of places. */
  readonly columns: RangeColumns;
  /** For each place the index of its range as it arrived. */
  readonly arrivedAt: Int32Array;
  /** For each place that of its parent, or −1. */
  readonly parents: Int32Array;
  readonly hard: Uint8Array;
  readonly segments: Segments;
}

/** Throws a RangeError that names a range which appears twice. */
export function nestRanges(arrived: RangeColumns): NestedRanges {
  const arrivedAt = sortedOrder(arrived);
  const columns = reordered(arrived, arrivedAt);
  const { parents, duplicates, crossings } = nest(columns);
  const [twice] = duplicates;
  if (twice) throw new RangeError(`the range ${formatRange(rangeAt(columns, twice.index))} appears twice`);
  const hard = findHardStretches({ columns, parents, crossings });
  return { columns, arrivedAt, parents, hard, segments: cutHardSegments(columns, hard) };
}

function reordered({ family, words, count, first, last }: RangeColumns, order: Int32Array): RangeColumns {
  const sorted = emptyColumns(family, count);
  for (let place = 0; place < count; place += 1) {
    const from = words * (order[place] as number);
    for (let word = 0; word < words; word += 1) {
      sorted.first[place * words + word] = first[from + word] as number;
      sorted.last[place * words + word] = last[from + word] as number;
    }
  }
  return sorted;
}

/**
 * IPv6 subnets by place, as in `ipv4-places.ts`. Registries hold IPv6 in blocks of 64 bits or wider, so a key
 * is the first 64 bits of the first address, in two words, and an extent is a prefix length up to 64: 12 bytes
 * a place, and the index. Ranges that start or end within such a block or are no CIDR block are odd: their remaining words
 * stand aside, 24 bytes more.
 */
import type { Ipv6Range } from "#core/ip/range";
import type { NestedRanges } from "./ipv4-places.ts";
import {
  answerSlot,
  type ExtentCoding,
  extentIn,
  type FirstIndex,
  forEachSlot,
  indexKeys,
  ipv6Slot,
  isHard,
  type LinkLists,
  listBytes,
  type OddColumn,
  oddEntry,
  oddExtent,
  packLinks,
  parentAt,
  slotAnswer,
  topBit,
} from "./place-index.ts";
import type { RangeColumns } from "./range-columns.ts";
import { findIpv6, type Segments, segmentBytes } from "./segments.ts";

export interface Ipv6Places extends Ipv6Parts, FirstIndex {}

/** What a snapshot holds: the index is made from it. */
export interface Ipv6Parts {
  /** The first two words of each first address, their top bits flipped (`topBit`). */
  readonly keys: Int32Array;
  readonly links: Int32Array;
  /** An odd range has six words: the last two of its first address, the four of its last one; top bits flipped. */
  readonly lists: LinkLists;
  /** Its owners are places. */
  readonly segments: Segments;
}

/** Of ranges in the order of places. */
export function placeIpv6({ columns, parents, hard, segments }: NestedRanges): Ipv6Places {
  const keys = new Int32Array(2 * columns.count);
  for (let place = 0; place < columns.count; place += 1) {
    keys[2 * place] = (columns.first[4 * place] as number) ^ topBit;
    keys[2 * place + 1] = (columns.first[4 * place + 1] as number) ^ topBit;
  }
  return indexedIpv6({ keys, ...packLinks({ parents, hard, coding: ipv6Extents(columns) }), segments });
}

export function indexedIpv6(parts: Ipv6Parts): Ipv6Places {
  const places = { ...parts, ...indexKeys(parts.keys, 6) };
  fillAnswers(places);
  return places;
}

/** From the first slot to the last: an answer never hides a count that is still needed. */
function fillAnswers(places: Ipv6Places): void {
  const { slots } = places;
  forEachSlot(places, (slot, block, first, last) => {
    writeKey(block, first, 0);
    const before = (slots[slot + 1] as number) - 1;
    if (before >= (slots[slot] as number) && !startsAtKey(places, before)) return;
    const place = nearestReachingKey(places, before);
    writeKey(block, last, 0xffffffff);
    if (place < 0 || !endsBeforeKey(places, place)) slots[slot] = answerSlot(place);
  });
}

/** The key of an address by its first 16 bits, the 32 that follow, and what all others are. */
function writeKey(block: number, following: number, rest: number): void {
  key[0] = ((block << 16) | (following >>> 16)) ^ topBit;
  key[1] = ((following << 16) | (rest >>> 16)) ^ topBit;
  key[2] = rest ^ topBit;
  key[3] = rest ^ topBit;
}

function startsAtKey({ keys, links, lists }: Ipv6Places, place: number): boolean {
  if (keys[2 * place] !== key[0] || keys[2 * place + 1] !== key[1]) return false;
  const extent = extentIn(links[place] as number);
  if (extent < oddExtent) return true;
  const at = oddWords * oddEntry(lists, place, extent);
  return lists.odd[at] === topBit && lists.odd[at + 1] === topBit;
}

/** Takes an address apart with one intermediate bigint; used within one call only. */
const scratch = new DataView(new ArrayBuffer(16));

/** The words of the address that is looked up, top bits flipped. */
const key = new Int32Array(4);

const plainKey = new Uint32Array(4);

/** The most specific place over the address, or −1. */
export function placeOfIpv6(places: Ipv6Places, address: bigint): number {
  const last = lastStartingInBlock(places, address);
  return last >= 0 && answersFor(places, last) ? last : placeFrom(places, last, address);
}

/** The most specific place of more than one address over the address, or −1: a unary range's parent is wider. */
export function nonUnaryPlaceOfIpv6(places: Ipv6Places, address: bigint): number {
  const last = lastStartingInBlock(places, address);
  // The usual case by itself: it is what every URL pays for.
  if (last >= 0 && answersFor(places, last)) return last;
  const place = placeFrom(places, last, address);
  return place >= 0 && isUnary(places, place) ? ipv6ParentOf(places, place) : place;
}

/** The last place that starts in the address's block of 64 bits or before; below 0: the slot's answer. Writes half the key. */
function lastStartingInBlock(places: Ipv6Places, address: bigint): number {
  const { keys, slots } = places;
  scratch.setBigUint64(0, address >> 64n);
  const high = scratch.getInt32(0) ^ topBit;
  const low = scratch.getInt32(4) ^ topBit;
  key[0] = high;
  key[1] = low;
  const slot = ipv6Slot(places, high, low);
  let from = slots[slot] as number;
  if (from < 0) return from;
  let to = slots[slot + 1] as number;
  if (to < 0) to = countThroughKey(keys, from);
  while (from < to) {
    const middle = (from + to) >>> 1;
    const middleHigh = keys[2 * middle] as number;
    if (middleHigh < high || (middleHigh === high && (keys[2 * middle + 1] as number) <= low))
      from = middle + 1;
    else to = middle;
  }
  return from === 0 ? answerSlot(-1) : from - 1;
}

/** Whether a place that starts in the key's block of 64 bits or before is easy, even, and reaches the key. */
function answersFor({ keys, links }: Ipv6Places, place: number): boolean {
  const link = links[place] as number;
  const extent = extentIn(link);
  if (isHard(link) || extent >= oddExtent) return false;
  const differingHigh = (key[0] as number) ^ (keys[2 * place] as number);
  return !liesOutside(extent, differingHigh, (key[1] as number) ^ (keys[2 * place + 1] as number));
}

/** Writes the other half of the key. */
function placeFrom(places: Ipv6Places, last: number, address: bigint): number {
  if (last < 0) return slotAnswer(last);
  scratch.setBigUint64(8, address);
  key[2] = scratch.getInt32(8) ^ topBit;
  key[3] = scratch.getInt32(12) ^ topBit;
  return nearestReachingKey(places, lastWithinBlock(places, last));
}

/** A number of places that all start in the key's block of 64 bits or before are below, found in strides from `from` on. */
function countThroughKey(keys: Int32Array, from: number): number {
  const count = keys.length / 2;
  let step = 4;
  while (from + step < count && !startsBehindBlock(keys, from + step)) step *= 2;
  return Math.min(count, from + step);
}

function startsBehindBlock(keys: Int32Array, place: number): boolean {
  const high = keys[2 * place] as number;
  if (high !== key[0]) return high > (key[0] as number);
  return (keys[2 * place + 1] as number) > (key[1] as number);
}

/** The nearest of the place, which is the last that starts at the key or before, and its parents that reaches the key; or −1. */
function nearestReachingKey(places: Ipv6Places, last: number): number {
  const { links, lists, segments } = places;
  if (last < 0) return -1;
  let place = last;
  let link = links[place] as number;
  if (isHard(link)) return ownerOfKey(segments);
  while (endsBeforeKey(places, place)) {
    place = parentAt(lists, place, link);
    if (place < 0) return -1;
    link = links[place] as number;
  }
  return place;
}

function ownerOfKey(segments: Segments): number {
  for (let word = 0; word < 4; word += 1) plainKey[word] = (key[word] as number) ^ topBit;
  return segments.owners[findIpv6(segments, plainKey)] ?? -1;
}

/**
 * Of the places up to `last`, which start in the key's block of 64 bits or before, the last that starts at the
 * key or before. Those that are not odd start with their block.
 */
function lastWithinBlock(places: Ipv6Places, last: number): number {
  if (last < 0 || !startsBehindKey(places, last)) return last;
  let from = -1;
  let to = last - 1;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    if (startsBehindKey(places, middle)) to = middle - 1;
    else from = middle;
  }
  return from;
}

/** Of a place that starts in the key's block of 64 bits or before: whether it starts behind the key. */
function startsBehindKey({ keys, links, lists }: Ipv6Places, place: number): boolean {
  const extent = extentIn(links[place] as number);
  if (extent < oddExtent) return false;
  if (keys[2 * place] !== key[0] || keys[2 * place + 1] !== key[1]) return false;
  const at = oddWords * oddEntry(lists, place, extent);
  const third = lists.odd[at] as number;
  return (
    third > (key[2] as number) || (third === key[2] && (lists.odd[at + 1] as number) > (key[3] as number))
  );
}

/** Whether the range at the place, which starts at the key or before, ends short of it. */
function endsBeforeKey({ keys, links, lists }: Ipv6Places, place: number): boolean {
  const extent = extentIn(links[place] as number);
  if (extent >= oddExtent) return oddEndsBeforeKey(lists, oddEntry(lists, place, extent));
  const differingHigh = (key[0] as number) ^ (keys[2 * place] as number);
  return liesOutside(extent, differingHigh, (key[1] as number) ^ (keys[2 * place + 1] as number));
}

function oddEndsBeforeKey({ odd }: LinkLists, entry: number): boolean {
  for (let word = 0; word < 4; word += 1) {
    const last = odd[oddWords * entry + 2 + word] as number;
    if (last !== key[word]) return last < (key[word] as number);
  }
  return false;
}

/** Behind the last place that starts within the range of this one. */
export function ipv6EndOf(places: Ipv6Places, place: number): number {
  writeLast(places, place);
  let from = place + 1;
  for (let to = places.keys.length / 2; from < to; ) {
    const middle = (from + to) >>> 1;
    if (startsBehindBlock(places.keys, middle)) to = middle;
    else from = middle + 1;
  }
  return lastWithinBlock(places, from - 1) + 1;
}

export function ipv6ParentOf({ links, lists }: Ipv6Places, place: number): number {
  return parentAt(lists, place, links[place] as number);
}

export function ipv6RangeAt(places: Ipv6Places, place: number): Ipv6Range {
  const { keys, links, lists } = places;
  const extent = extentIn(links[place] as number);
  const odd = extent < oddExtent ? -1 : oddWords * oddEntry(lists, place, extent);
  key[0] = keys[2 * place] as number;
  key[1] = keys[2 * place + 1] as number;
  key[2] = odd < 0 ? topBit : (lists.odd[odd] as number);
  key[3] = odd < 0 ? topBit : (lists.odd[odd + 1] as number);
  const first = keyAsBigint();
  writeLast(places, place);
  return { family: 6, first, last: keyAsBigint() };
}

function isUnary({ keys, links, lists }: Ipv6Places, place: number): boolean {
  const extent = extentIn(links[place] as number);
  if (extent < oddExtent) return false;
  const { odd } = lists;
  const at = oddWords * oddEntry(lists, place, extent);
  if (odd[at] !== odd[at + 4] || odd[at + 1] !== odd[at + 5]) return false;
  return keys[2 * place] === odd[at + 2] && keys[2 * place + 1] === odd[at + 3];
}

export function ipv6Bytes({ keys, links, lists, slots, blocks, segments }: Ipv6Places): number {
  const indexBytes = slots.byteLength + blocks.byteLength;
  return keys.byteLength + links.byteLength + listBytes(lists) + indexBytes + segmentBytes(segments);
}

/** The last address of the place's range becomes the key. */
function writeLast({ keys, links, lists }: Ipv6Places, place: number): void {
  const extent = extentIn(links[place] as number);
  if (extent >= oddExtent) {
    const at = oddWords * oddEntry(lists, place, extent) + 2;
    for (let word = 0; word < 4; word += 1) key[word] = lists.odd[at + word] as number;
    return;
  }
  const highHost = extent >= 32 ? 0 : 0xffffffff >>> extent;
  const lowHost = extent >= 64 ? 0 : extent <= 32 ? 0xffffffff : 0xffffffff >>> (extent - 32);
  key[0] = (((keys[2 * place] as number) ^ topBit) | highHost) ^ topBit;
  key[1] = (((keys[2 * place + 1] as number) ^ topBit) | lowHost) ^ topBit;
  key[2] = ~topBit;
  key[3] = ~topBit;
}

function keyAsBigint(): bigint {
  for (let word = 0; word < 4; word += 1) scratch.setInt32(4 * word, (key[word] as number) ^ topBit);
  return (scratch.getBigUint64(0) << 64n) | scratch.getBigUint64(8);
}

// How far an IPv6 range reaches, in 15 bits: its prefix length, where it is a CIDR block of 64 bits or wider, as
// nearly all are. Any other is odd, and its remaining words are written aside.

/** Of an odd range: the last two words of its first address, the four of its last one; top bits flipped. */
export const oddWords = 6;

function ipv6Extents(columns: RangeColumns): ExtentCoding {
  return {
    oddWords,
    extentOf: (place) => prefixLengthAt(columns, place),
    writeOdd: (place, into) => writeOdd(columns, place, into),
  };
}

/** Whether an address that differs so from the first of a block with this prefix length lies outside. */
function liesOutside(prefixLength: number, differingHigh: number, differingLow: number): boolean {
  if (prefixLength <= 32) return prefixLength > 0 && differingHigh >>> (32 - prefixLength) !== 0;
  return differingHigh !== 0 || differingLow >>> (64 - prefixLength) !== 0;
}

/** −1 for a range that is no CIDR block of 64 bits or wider. */
function prefixLengthAt({ first, last }: RangeColumns, place: number): number {
  const at = 4 * place;
  if (first[at + 2] !== 0 || first[at + 3] !== 0) return -1;
  if (last[at + 2] !== 0xffffffff || last[at + 3] !== 0xffffffff) return -1;
  const high = hostBits(first[at] as number, last[at] as number);
  const low = hostBits(first[at + 1] as number, last[at + 1] as number);
  if (high < 0 || low < 0 || (high > 0 && low < 32)) return -1;
  return 64 - high - low;
}

/** How many low bits go from all zeros in `first` to all ones in `last`, the others being the same; −1 where it is not so. */
function hostBits(first: number, last: number): number {
  const differing = (first ^ last) >>> 0;
  if ((first & differing) !== 0 || (differing & (differing + 1)) !== 0) return -1;
  return 32 - Math.clz32(differing);
}

function writeOdd({ first, last }: RangeColumns, place: number, into: OddColumn): void {
  for (const word of [2, 3]) into.push((first[4 * place + word] as number) ^ topBit);
  for (const word of [0, 1, 2, 3]) into.push((last[4 * place + word] as number) ^ topBit);
}

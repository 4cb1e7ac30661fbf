/**
 * IPv6 subnets by place, as in `ipv4-places.ts`. Registries hold IPv6 in blocks of 64 bits or wider, so a key
 * is the first 64 bits of the first address, in two words, and an extent is a prefix length up to 64: 12 bytes
 * a place. Ranges that start or end within such a block or are no CIDR block are odd: their remaining words
 * stand aside, 24 bytes more.
 */
import type { Ipv6Range } from "../ip/range.ts";
import { type Ipv6Index, indexIpv6, ipv6Slot, topBit } from "./first-index.ts";
import type { GrowingColumn } from "./growing-column.ts";
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
import type { RangeColumns } from "./range-columns.ts";
import { findIpv6, type Segments, segmentBytes } from "./segments.ts";

export interface Ipv6Places {
  /** The first two words of each first address, their top bits flipped (`topBit`). */
  readonly keys: Int32Array;
  /** An odd range has six words: the last two of its first address, the four of its last one; top bits flipped. */
  readonly links: PlaceLinks;
  readonly index: Ipv6Index;
  /** Its owners are places. */
  readonly segments: Segments;
}

const oddWords = 6;

/** Of ranges in the order of places. */
export function placeIpv6({ columns, parents, hard, segments }: NestedRanges): Ipv6Places {
  const coding: ExtentCoding = {
    oddWords,
    extentOf: (place) => prefixLengthAt(columns, place),
    writeOdd: (place, into) => writeOdd(columns, place, into),
  };
  return ipv6PlacesOf({ keys: keysOf(columns), links: packLinks({ parents, hard, coding }), segments });
}

/** With the index, which is made from the keys. */
export function ipv6PlacesOf(parts: Omit<Ipv6Places, "index">): Ipv6Places {
  return { ...parts, index: indexIpv6(parts.keys) };
}

function keysOf({ first, count }: RangeColumns): Int32Array {
  const keys = new Int32Array(2 * count);
  for (let place = 0; place < count; place += 1) {
    keys[2 * place] = (first[4 * place] as number) ^ topBit;
    keys[2 * place + 1] = (first[4 * place + 1] as number) ^ topBit;
  }
  return keys;
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

function writeOdd(
  { first, last }: RangeColumns,
  place: number,
  into: GrowingColumn<Int32Array<ArrayBuffer>>,
): void {
  for (const word of [2, 3]) into.push((first[4 * place + word] as number) ^ topBit);
  for (const word of [0, 1, 2, 3]) into.push((last[4 * place + word] as number) ^ topBit);
}

/** Takes an address apart with one intermediate bigint; used within one call only. */
const scratch = new DataView(new ArrayBuffer(16));
/** The words of the address that is looked up, top bits flipped. */
const key = new Int32Array(4);
const plainKey = new Uint32Array(4);

/** The most specific place over the address, or −1. */
export function placeOfIpv6(places: Ipv6Places, address: bigint): number {
  scratch.setBigUint64(0, address >> 64n);
  scratch.setBigUint64(8, address);
  for (let word = 0; word < 4; word += 1) key[word] = scratch.getInt32(4 * word) ^ topBit;
  return placeOfKey(places);
}

function placeOfKey(places: Ipv6Places): number {
  const { links, segments } = places;
  let place = lastStartingAtKey(places);
  if (place < 0) return -1;
  let link = links.words[place] as number;
  if (isHard(link)) return ownerOfKey(segments);
  while (endsBeforeKey(places, place)) {
    place = parentAt(links, place, link);
    if (place < 0) return -1;
    link = links.words[place] as number;
  }
  return place;
}

function ownerOfKey(segments: Segments): number {
  for (let word = 0; word < 4; word += 1) plainKey[word] = (key[word] as number) ^ topBit;
  return segments.owners[findIpv6(segments, plainKey)] ?? -1;
}

/** The last place that starts at the key or before; −1 when none does. */
function lastStartingAtKey(places: Ipv6Places): number {
  const { keys, links, index } = places;
  const high = key[0] as number;
  const low = key[1] as number;
  const slot = ipv6Slot(index, high, low);
  let from = index.slots[slot] as number;
  let to = index.slots[slot + 1] as number;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const middleHigh = keys[2 * middle] as number;
    if (middleHigh < high || (middleHigh === high && (keys[2 * middle + 1] as number) <= low))
      from = middle + 1;
    else to = middle;
  }
  const place = from - 1;
  if (place < 0 || extentIn(links.words[place] as number) < oddExtent) return place;
  return keys[2 * place] === high && keys[2 * place + 1] === low ? lastWithinBlock(places, place) : place;
}

/**
 * The address lies in the block of 64 bits where the place starts, perhaps before it: of the places that start
 * in that block the last that starts at the key or before. Those that are not odd start with the block.
 */
function lastWithinBlock({ keys, links }: Ipv6Places, last: number): number {
  let from = -1;
  let to = last;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    if (startsBehindKey({ keys, links }, middle)) to = middle - 1;
    else from = middle;
  }
  return from;
}

/** Of a place that starts in the key's block of 64 bits or before: whether it starts behind the key. */
function startsBehindKey({ keys, links }: Pick<Ipv6Places, "keys" | "links">, place: number): boolean {
  if (keys[2 * place] !== key[0] || keys[2 * place + 1] !== key[1]) return false;
  const extent = extentIn(links.words[place] as number);
  if (extent < oddExtent) return false;
  const at = oddWords * oddEntry(links, place, extent);
  const third = links.odd[at] as number;
  return (
    third > (key[2] as number) || (third === key[2] && (links.odd[at + 1] as number) > (key[3] as number))
  );
}

/** Whether the range at the place, which starts at the key or before, ends short of it. */
function endsBeforeKey({ keys, links }: Ipv6Places, place: number): boolean {
  const extent = extentIn(links.words[place] as number);
  if (extent >= oddExtent) return oddEndsBeforeKey(links, oddEntry(links, place, extent));
  const high = (key[0] as number) ^ (keys[2 * place] as number);
  if (extent <= 32) return extent > 0 && high >>> (32 - extent) !== 0;
  return high !== 0 || ((key[1] as number) ^ (keys[2 * place + 1] as number)) >>> (64 - extent) !== 0;
}

function oddEndsBeforeKey({ odd }: PlaceLinks, entry: number): boolean {
  for (let word = 0; word < 4; word += 1) {
    const last = odd[oddWords * entry + 2 + word] as number;
    if (last !== key[word]) return last < (key[word] as number);
  }
  return false;
}

/** Behind the last place that starts within the range of this one. */
export function ipv6EndOf(places: Ipv6Places, place: number): number {
  writeLast(places, place);
  return lastStartingAtKey(places) + 1;
}

export function ipv6RangeAt(places: Ipv6Places, place: number): Ipv6Range {
  const { keys, links } = places;
  const extent = extentIn(links.words[place] as number);
  const odd = extent < oddExtent ? -1 : oddWords * oddEntry(links, place, extent);
  key[0] = keys[2 * place] as number;
  key[1] = keys[2 * place + 1] as number;
  key[2] = odd < 0 ? topBit : (links.odd[odd] as number);
  key[3] = odd < 0 ? topBit : (links.odd[odd + 1] as number);
  const first = keyAsBigint();
  writeLast(places, place);
  return { family: 6, first, last: keyAsBigint() };
}

export function isUnaryIpv6({ keys, links }: Ipv6Places, place: number): boolean {
  const extent = extentIn(links.words[place] as number);
  if (extent < oddExtent) return false;
  const { odd } = links;
  const at = oddWords * oddEntry(links, place, extent);
  if (odd[at] !== odd[at + 4] || odd[at + 1] !== odd[at + 5]) return false;
  return keys[2 * place] === odd[at + 2] && keys[2 * place + 1] === odd[at + 3];
}

export function ipv6Bytes({ keys, links, index, segments }: Ipv6Places): number {
  const indexBytes = index.slots.byteLength + index.blocks.byteLength;
  return keys.byteLength + linkBytes(links) + indexBytes + segmentBytes(segments);
}

/** The last address of the place's range becomes the key. */
function writeLast({ keys, links }: Ipv6Places, place: number): void {
  const extent = extentIn(links.words[place] as number);
  if (extent >= oddExtent) {
    const at = oddWords * oddEntry(links, place, extent) + 2;
    for (let word = 0; word < 4; word += 1) key[word] = links.odd[at + word] as number;
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

/**
 * The ranges of one family in flat columns, sorted by first address, widest first, so that parents come before children. They
 * take 12 bytes per IPv4 range and 36 per IPv6 range, plus the index.
 *
 * A look-up finds the last range that starts at or before the address. If it ends before the address, the answer is its
 * nearest parent that reaches the address: every range that covers the address starts before it and, unless ranges cross,
 * contains that range. Stretches where ranges cross have a table of their own (`nest.ts`).
 */
import type { IpRange } from "#core/ip/range";
import { type Nesting, untangled } from "./nest.ts";
import { compareWords, type RangeColumns } from "./range-columns.ts";

/** The part stored in a snapshot. The index is rebuilt from it. */
interface RangeTableParts {
  /** One word per address (IPv4) or four, most significant first, each with its top bit flipped. */
  readonly firsts: Int32Array;
  readonly lasts: Int32Array;
  /** The place of each range's parent, or −1. */
  readonly parents: Int32Array;
  /** Starts of stretches where ranges cross or their most specific range changes. The top bits are flipped. */
  readonly tangledStarts: Int32Array;
  /** Most specific place of each stretch. −1 for none, `untangled` from the point where no ranges cross. */
  readonly tangledOwners: Int32Array;
}

export interface RangeTable extends RangeTableParts, FirstIndex {
  readonly words: 1 | 4;
}

/** Addresses are stored with this bit flipped, so that signed comparison, which engines do fastest, orders them. */
export const topBit = 0x80000000 | 0;

/** Expects sorted, nested ranges and takes over the columns' memory. */
export function rangeTable({ words, first, last }: RangeColumns, nesting: Nesting): RangeTable {
  return indexed(words, {
    firsts: flipped(first),
    lasts: flipped(last),
    parents: nesting.parents,
    tangledStarts: flipped(nesting.tangledStarts),
    tangledOwners: nesting.tangledOwners,
  });
}

function flipped({ buffer, byteOffset, length }: Uint32Array): Int32Array {
  const words = new Int32Array(buffer, byteOffset, length);
  for (let at = 0; at < length; at += 1) words[at] = (words[at] as number) ^ topBit;
  return words;
}

export function indexed(words: 1 | 4, parts: RangeTableParts): RangeTable {
  const table = { words, ...parts, ...indexFirsts(parts.firsts, words) };
  fillAnswers(table);
  return table;
}

/** Most specific place of the IPv4 address (top bit flipped), or −1. A small integer, which engines pass without allocating. */
export function placeOfIpv4(table: RangeTable, key: number): number {
  const slot = ipv4Slot(table, key);
  const answer = table.slots[slot + 1] as number;
  return answer === searched ? searchIpv4(table, key, slot) : answer;
}

/** Unlike `placeOfIpv4`, replaces single-address ranges by their parents. Index slots never answer with one. */
export function nonUnaryPlaceOfIpv4(table: RangeTable, key: number): number {
  const slot = ipv4Slot(table, key);
  const answer = table.slots[slot + 1] as number;
  return answer === searched ? nonUnary(table, searchIpv4(table, key, slot)) : answer;
}

function nonUnary(table: RangeTable, place: number): number {
  return place >= 0 && isUnary(table, place) ? (table.parents[place] as number) : place;
}

function searchIpv4(table: RangeTable, key: number, slot: number): number {
  const { slots, firsts, lasts, parents, tangledStarts } = table;
  if (tangledStarts.length > 0) {
    const owner = ownerAt(table, lastStartOfIpv4(tangledStarts, key, 0, tangledStarts.length));
    if (owner !== untangled) return owner;
  }
  let place = lastStartOfIpv4(firsts, key, slots[slot] as number, slots[slot + 2] as number);
  while (place >= 0 && (lasts[place] as number) < key) place = parents[place] as number;
  return place;
}

/** The last start not above the key, where all before `from` are known not to be above it, and all from `to` on are. */
function lastStartOfIpv4(starts: Int32Array, key: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= key) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Splits an address into words with one intermediate bigint. Its content is never used across calls. */
const scratch = new DataView(new ArrayBuffer(16));
const ipv6Key = new Int32Array(4);

/** Most specific place of the IPv6 address, or −1. */
export function placeOfIpv6(table: RangeTable, address: bigint): number {
  const slot = slotOfIpv6(table, address);
  const answer = table.slots[slot + 1] as number;
  return answer === searched ? searchIpv6(table, slot) : answer;
}

/** Does for IPv6 what `nonUnaryPlaceOfIpv4` does. */
export function nonUnaryPlaceOfIpv6(table: RangeTable, address: bigint): number {
  const slot = slotOfIpv6(table, address);
  const answer = table.slots[slot + 1] as number;
  return answer === searched ? nonUnary(table, searchIpv6(table, slot)) : answer;
}

function slotOfIpv6(table: RangeTable, address: bigint): number {
  scratch.setBigUint64(0, address >> 64n);
  scratch.setBigUint64(8, address);
  for (let word = 0; word < 4; word += 1) ipv6Key[word] = scratch.getInt32(4 * word) ^ topBit;
  return ipv6Slot(table, ipv6Key[0] as number, ipv6Key[1] as number);
}

function searchIpv6(table: RangeTable, slot: number): number {
  const { slots, firsts, tangledStarts } = table;
  if (tangledStarts.length > 0) {
    const owner = ownerAt(table, lastStart(tangledStarts, ipv6Key, 4, 0, tangledStarts.length / 4));
    if (owner !== untangled) return owner;
  }
  const last = lastStart(firsts, ipv6Key, 4, slots[slot] as number, slots[slot + 2] as number);
  return reaching(table, last, ipv6Key);
}

/** Does what `lastStartOfIpv4` does, for either family. */
function lastStart(starts: Int32Array, key: Int32Array, words: 1 | 4, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareWords(starts, middle, key, 0, words) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The place or its nearest parent whose range reaches the key. */
function reaching({ lasts, parents, words }: RangeTable, from: number, key: Int32Array): number {
  let place = from;
  while (place >= 0 && compareWords(lasts, place, key, 0, words) < 0) place = parents[place] as number;
  return place;
}

const ownerAt = ({ tangledOwners }: RangeTable, stretch: number): number =>
  stretch < 0 ? untangled : (tangledOwners[stretch] as number);

/** The position after the last place that starts within this range. */
export function endOf({ firsts, lasts, words }: RangeTable, place: number): number {
  const last = lasts.subarray(place * words, (place + 1) * words);
  return lastStart(firsts, last, words, place + 1, firsts.length / words) + 1;
}

function isUnary({ firsts, lasts, words }: RangeTable, place: number): boolean {
  return compareWords(firsts, place, lasts, place, words) === 0;
}

export function rangeOfPlace({ firsts, lasts, words }: RangeTable, place: number): IpRange {
  if (words === 1) return { family: 4, first: ipv4At(firsts, place), last: ipv4At(lasts, place) };
  return { family: 6, first: ipv6At(firsts, place), last: ipv6At(lasts, place) };
}

export const ipv4At = (addresses: Int32Array, place: number): number =>
  ((addresses[place] as number) ^ topBit) >>> 0;

function ipv6At(addresses: Int32Array, place: number): bigint {
  for (let word = 0; word < 4; word += 1)
    scratch.setInt32(4 * word, (addresses[4 * place + word] as number) ^ topBit);
  return (scratch.getBigUint64(0) << 64n) | scratch.getBigUint64(8);
}

/**
 * An index into the places of one family. Each 16-bit block of the address space (two octets of IPv4, one group of
 * IPv6) has as many slots over its following bits as its places require: registries hold millions of ranges in some
 * blocks and few in most.
 */
interface FirstIndex {
  /**
   * Two numbers per slot: how many places start before it, and the most specific place if all its addresses share one (−1 for
   * none; single-address ranges are skipped), otherwise `searched`. A final count ends the list.
   */
  readonly slots: Int32Array;
  /** For each block, its first slot, and one less than the shift that turns the following 32 bits into a slot number. */
  readonly blocks: Int32Array;
}

const searched = -2;

/** Maximum average places per slot, and the number of bits that a block's slots may cover, by words per address. */
const placesPerSlot = 6;
const mostBits = { 1: 16, 4: 24 };
const blockCount = 0x10000;

/** The answers are filled in afterwards. */
function indexFirsts(firsts: Int32Array, words: 1 | 4): FirstIndex {
  const blocks = shareSlots(firsts, words);
  const slots = new Int32Array((blocks[2 * blockCount] as number) + 1).fill(searched);
  for (let at = 0; at < slots.length; at += 2) slots[at] = 0;
  const index = { slots, blocks };
  for (let at = 0; at < firsts.length; at += words) {
    const high = firsts[at] as number;
    const slot = words === 1 ? ipv4Slot(index, high) : ipv6Slot(index, high, firsts[at + 1] as number);
    slots[slot + 2] = (slots[slot + 2] as number) + 1;
  }
  for (let at = 2; at < slots.length; at += 2) slots[at] = (slots[at] as number) + (slots[at - 2] as number);
  return index;
}

function shareSlots(firsts: Int32Array, words: 1 | 4): Int32Array {
  const perBlock = new Int32Array(blockCount);
  for (let at = 0; at < firsts.length; at += words) {
    const block = blockOf(firsts[at] as number);
    perBlock[block] = (perBlock[block] as number) + 1;
  }
  const blocks = new Int32Array(2 * (blockCount + 1));
  let next = 0;
  for (let block = 0; block < blockCount; block += 1) {
    const slots = Math.max(1, (perBlock[block] as number) / placesPerSlot);
    const bits = Math.min(mostBits[words], Math.ceil(Math.log2(slots)));
    blocks[2 * block] = next;
    blocks[2 * block + 1] = 31 - bits;
    next += 2 * 2 ** bits;
  }
  blocks[2 * blockCount] = next;
  return blocks;
}

const blockOf = (high: number) => (high ^ topBit) >>> 16;

/** The position of an IPv4 address's slot. The top bit is flipped. */
function ipv4Slot({ blocks }: FirstIndex, key: number): number {
  const block = 2 * blockOf(key);
  // Shifts in two steps, because a shift by 32 (a block with one slot) would be a shift by 0.
  return (blocks[block] as number) + 2 * (((key << 16) >>> 1) >>> (blocks[block + 1] as number));
}

/** The position of an IPv6 address's slot, by its first two words. */
function ipv6Slot({ blocks }: FirstIndex, high: number, low: number): number {
  const block = 2 * blockOf(high);
  const following = (high << 16) | ((low ^ topBit) >>> 16);
  return (blocks[block] as number) + 2 * ((following >>> 1) >>> (blocks[block + 1] as number));
}

function fillAnswers(table: RangeTable): void {
  const { slots, blocks, firsts, lasts, words, tangledStarts } = table;
  const [first, last] = [new Int32Array(words), new Int32Array(words)];
  const stretches = tangledStarts.length / words;
  for (let block = 0; block < blockCount; block += 1) {
    const from = blocks[2 * block] as number;
    const to = blocks[2 * block + 2] as number;
    // Most blocks have one slot, and computing its power of two would dominate the time.
    const size = to - from === 2 ? wholeBlock : 2 ** ((blocks[2 * block + 1] as number) + 1);
    for (let slot = from; slot < to; slot += 2) {
      const following = ((slot - from) / 2) * size;
      writeKey(first, block, following, 0);
      const before = (slots[slot + 2] as number) - 1;
      if (before >= (slots[slot] as number) && compareWords(firsts, before, first, 0, words) !== 0) continue;
      writeKey(last, block, following + size - 1, 0xffffffff);
      if (stretches > 0) {
        const stretch = lastStart(tangledStarts, last, words, 0, stretches);
        if (ownerAt(table, stretch) !== untangled) continue;
        if (stretch >= 0 && compareWords(tangledStarts, stretch, first, 0, words) > 0) continue;
      }
      const place = reaching(table, before, first);
      if (place >= 0 && (compareWords(lasts, place, last, 0, words) < 0 || isUnary(table, place))) continue;
      slots[slot + 1] = place;
    }
  }
}

const wholeBlock = 2 ** 32;

/** Writes an address as its first 16 bits, the 32 following, and a value for all other bits. */
function writeKey(key: Int32Array, block: number, following: number, rest: number): void {
  key[0] = ((block << 16) | (following >>> 16)) ^ topBit;
  if (key.length === 1) return;
  key[1] = ((following << 16) | (rest >>> 16)) ^ topBit;
  key[2] = rest ^ topBit;
  key[3] = rest ^ topBit;
}

/**
 * One 32-bit word per place says where the place's parent is and how far its range reaches, so that a look-up has
 * both for one cache miss:
 *
 *   bit 31       the stretch from the place on is answered by the table of segments (`hard-stretches.ts`)
 *   bits 16–30   the parent: bit 30 clear, its place within this block of 2^14 places; bit 30 set, an index
 *                into the block's list of parents further ahead (and −1, for none)
 *   bits 0–15    the extent: below 2^15 what the family makes of it, else 2^15 plus an index into the
 *                block's list of ranges that do not fit
 *
 * A block has 2^14 places, so that either list has at most as many entries, and 14 bits always reach.
 */
import { GrowingColumn } from "#core/text-pool";

export interface LinkLists {
  /** Parents in earlier blocks, all blocks' lists one after the other, and where each block's list starts. */
  readonly farParents: Int32Array;
  readonly farStarts: Int32Array;
  /** Ranges that do not fit: `oddWords` words each, and at which entry each block's list starts. */
  readonly odd: Int32Array;
  readonly oddStarts: Int32Array;
}

const blockBits = 14;
const farParentFlag = 1 << blockBits;
const inBlock = farParentFlag - 1;

/** Extents from here on are indexes into the list of ranges that do not fit. */
export const oddExtent = 0x8000;

const hardFlag = 1 << 31;

export type OddColumn = GrowingColumn<Int32Array<ArrayBuffer>>;

/** What one family knows of its ranges' extents. */
export interface ExtentCoding {
  /** The extent of the range at the place, below `oddExtent`; −1 when it does not fit. */
  extentOf(place: number): number;
  /** Appends what is known of a range that does not fit: always the same number of words. */
  writeOdd(place: number, into: OddColumn): void;
  /** How many words those are. */
  readonly oddWords: number;
}

export interface UnpackedLinks {
  /** The place of each place's parent, which stands before it, or −1. */
  readonly parents: Int32Array;
  /** 1 for places whose stretch is hard. */
  readonly hard: Uint8Array;
  readonly coding: ExtentCoding;
}

export interface PlaceLinks {
  /** One word per place. */
  readonly links: Int32Array;
  readonly lists: LinkLists;
}

export function packLinks(unpacked: UnpackedLinks): PlaceLinks {
  const { parents, coding } = unpacked;
  const links = new Int32Array(parents.length);
  const [farParents, farStarts] = [int32Column(), int32Column()];
  const [odd, oddStarts] = [int32Column(), int32Column()];
  for (let start = 0; start < parents.length; start += 1 << blockBits) {
    farStarts.push(farParents.length);
    oddStarts.push(odd.length / coding.oddWords);
    packBlock({ ...unpacked, links, start, farParents, odd });
  }
  const lists = {
    farParents: farParents.values().slice(),
    farStarts: farStarts.values().slice(),
    odd: odd.values().slice(),
    oddStarts: oddStarts.values().slice(),
  };
  return { links, lists };
}

interface BlockWork extends UnpackedLinks {
  readonly links: Int32Array;
  readonly start: number;
  readonly farParents: GrowingColumn<Int32Array<ArrayBuffer>>;
  readonly odd: OddColumn;
}

function packBlock({ links, parents, hard, coding, start, farParents, odd }: BlockWork): void {
  const farIndexes = new Map<number, number>();
  const end = Math.min(parents.length, start + (1 << blockBits));
  let oddCount = 0;
  for (let place = start; place < end; place += 1) {
    const parent = parents[place] as number;
    let link = parent & inBlock;
    if (parent < start) {
      if (!farIndexes.has(parent)) {
        farIndexes.set(parent, farIndexes.size);
        farParents.push(parent);
      }
      link = farParentFlag | (farIndexes.get(parent) as number);
    }
    const fitting = coding.extentOf(place);
    const extent = fitting >= 0 ? fitting : oddExtent | oddCount++;
    if (fitting < 0) coding.writeOdd(place, odd);
    links[place] = (hard[place] === 1 ? hardFlag : 0) | (link << 16) | extent;
  }
}

/** The parent's place, or −1; `link` is that of the place. */
export function parentAt(lists: LinkLists, place: number, link: number): number {
  const parent = (link >>> 16) & (farParentFlag | inBlock);
  if (parent < farParentFlag) return (place & ~inBlock) | parent;
  return lists.farParents[(lists.farStarts[place >>> blockBits] as number) + (parent & inBlock)] as number;
}

/** Which entry of `odd` tells of the place; its extent is `oddExtent` or above. */
export function oddEntry(lists: LinkLists, place: number, extent: number): number {
  return (lists.oddStarts[place >>> blockBits] as number) + (extent & inBlock);
}

export const extentIn = (link: number): number => link & 0xffff;

/** True when the table of segments has the answer. */
export const isHard = (link: number): boolean => link < 0;

export function listBytes({ farParents, farStarts, odd, oddStarts }: LinkLists): number {
  return [farParents, farStarts, odd, oddStarts].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

const int32Column = () => new GrowingColumn((length: number) => new Int32Array(length));

/**
 * A jump into the places of one family. Each 16-bit block of the address space (the first two octets of IPv4, the
 * first group of IPv6) has slots of its own over the bits that follow, as many as it has places to tell apart:
 * registries hold some blocks in millions of ranges, and most of them in few. A slot says how many places start
 * below it; a short binary search is left. A slot whose addresses all have the same most specific place holds
 * that place itself: addresses taken at random mostly fall there.
 */

export interface FirstIndex {
  /** From 0 up: how many places start below the slot. Below 0: an answer. One more slot closes the list. */
  readonly slots: Int32Array;
  /** Of each block its first slot, and one less than how far the 32 bits that follow are shifted to number its slots. */
  readonly blocks: Int32Array;
}

/** Places per slot, on average at most, and how many bits of a block its slots may tell apart. */
const placesPerSlot = 4;

const mostBits = { 4: 16, 6: 24 };
const blockCount = 0x10000;

/** First addresses are kept with this bit flipped, so that signed comparison orders them: engines do that without a detour. */
export const topBit = 0x80000000 | 0;

/** Without answers yet. `keys` are first addresses, flipped: one word each (IPv4), or the first two (IPv6). */
export function indexKeys(keys: Int32Array, family: 4 | 6): FirstIndex {
  const words = family === 4 ? 1 : 2;
  const blocks = shareSlots(keys, words, mostBits[family]);
  const index = { slots: new Int32Array(slotsBefore(blocks, blockCount) + 1), blocks };
  for (let at = 0; at < keys.length; at += words) {
    const high = keys[at] as number;
    count(
      index.slots,
      (words === 1 ? ipv4Slot(index, high) : ipv6Slot(index, high, keys[at + 1] as number)) + 1,
    );
  }
  sumUp(index.slots);
  return index;
}

function shareSlots(keys: Int32Array, words: number, most: number): Int32Array {
  const perBlock = new Int32Array(blockCount);
  for (let at = 0; at < keys.length; at += words) count(perBlock, blockOf(keys[at] as number));
  const blocks = new Int32Array(2 * (blockCount + 1));
  let slotCount = 0;
  for (let block = 0; block < blockCount; block += 1) {
    const places = perBlock[block] as number;
    const bits = places <= placesPerSlot ? 0 : Math.min(most, Math.ceil(Math.log2(places / placesPerSlot)));
    blocks[2 * block] = slotCount;
    blocks[2 * block + 1] = 31 - bits;
    slotCount += 2 ** bits;
  }
  blocks[2 * blockCount] = slotCount;
  return blocks;
}

const slotsBefore = (blocks: Int32Array, block: number): number => blocks[2 * block] as number;

/** The slot of an address, its top bit flipped. */
export function ipv4Slot({ blocks }: FirstIndex, key: number): number {
  const block = 2 * blockOf(key);
  // In two steps, as a shift by 32, for a block with one slot, would be one by 0.
  return (blocks[block] as number) + (((key << 16) >>> 1) >>> (blocks[block + 1] as number));
}

/** The slot of an address by its first two words, top bits flipped. */
export function ipv6Slot({ blocks }: FirstIndex, high: number, low: number): number {
  const block = 2 * blockOf(high);
  const following = (high << 16) | ((low ^ topBit) >>> 16);
  return (blocks[block] as number) + ((following >>> 1) >>> (blocks[block + 1] as number));
}

/** A slot's content that gives the answer: a place, or −1 where nothing is registered. */
export const answerSlot = (place: number): number => ~(place + 1);

/** The place in a slot's content that is below 0. */
export const slotAnswer = (content: number): number => ~content - 1;

/**
 * Calls back with every slot, in order: its number, its block, and the first and the last of the 32 bits that
 * follow the block's.
 */
export function forEachSlot(
  { blocks }: FirstIndex,
  work: (slot: number, block: number, first: number, last: number) => void,
): void {
  for (let block = 0; block < blockCount; block += 1) {
    const from = slotsBefore(blocks, block);
    const to = slotsBefore(blocks, block + 1);
    // Of a block with one slot, as most are: no power is computed, which would take most of the time.
    const size = to - from === 1 ? wholeBlock : 2 ** ((blocks[2 * block + 1] as number) + 1);
    for (let slot = from; slot < to; slot += 1) {
      const first = (slot - from) * size;
      work(slot, block, first, first + size - 1);
    }
  }
}

const wholeBlock = 2 ** 32;

const blockOf = (high: number) => (high ^ topBit) >>> 16;

function count(counters: Int32Array, at: number): void {
  counters[at] = (counters[at] as number) + 1;
}

function sumUp(counters: Int32Array): void {
  for (let at = 1; at < counters.length; at += 1)
    counters[at] = (counters[at] as number) + (counters[at - 1] as number);
}

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
export const blockCount = 0x10000;

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
    const wanted = Math.ceil(Math.log2(Math.max(1, (perBlock[block] as number) / placesPerSlot)));
    const bits = Math.min(most, wanted);
    blocks[2 * block] = slotCount;
    blocks[2 * block + 1] = 31 - bits;
    slotCount += 2 ** bits;
  }
  blocks[2 * blockCount] = slotCount;
  return blocks;
}

export const slotsBefore = (blocks: Int32Array, block: number): number => blocks[2 * block] as number;

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
    const [from, to] = [slotsBefore(blocks, block), slotsBefore(blocks, block + 1)];
    const size = 2 ** ((blocks[2 * block + 1] as number) + 1);
    for (let slot = from; slot < to; slot += 1) {
      const first = (slot - from) * size;
      work(slot, block, first, first + size - 1);
    }
  }
}

const blockOf = (high: number) => (high ^ topBit) >>> 16;

function count(counters: Int32Array, at: number): void {
  counters[at] = (counters[at] as number) + 1;
}

function sumUp(counters: Int32Array): void {
  for (let at = 1; at < counters.length; at += 1)
    counters[at] = (counters[at] as number) + (counters[at - 1] as number);
}

/**
 * A jump into an ascending array: for each value of a key's leading bits, how many keys lie below it. What is
 * left to a binary search are the few keys between two neighbouring slots.
 *
 * IPv4 takes the leading bits as they are. IPv6 is held in clumps: nearly all of it lies in a few hundred of
 * the 65,536 blocks of 16 bits, and there in some of their parts. So each of these blocks has slots of its own,
 * as many as it has keys, over the 32 bits that follow.
 */

/** Keys per slot, on average, and bounds of the number of leading bits. */
const keysPerSlot = 2;
const fewestBits = 8;
const mostBits = 22;

export interface Ipv4Index {
  /** For each value of the top bits how many keys lie below; one more slot closes the list. */
  readonly slots: Int32Array;
  /** Bits of a key that are not top bits. */
  readonly shift: number;
}

export function indexIpv4(keys: Int32Array): Ipv4Index {
  const bits = Math.min(mostBits, Math.max(fewestBits, bitsFor(keys.length)));
  const shift = 32 - bits;
  const slots = new Int32Array(2 ** bits + 1);
  for (const key of keys) count(slots, ((key ^ topBit) >>> shift) + 1);
  sumUp(slots);
  return { slots, shift };
}

export interface Ipv6Index {
  readonly slots: Int32Array;
  /** Of each 16-bit block: its first slot, and how far the 32 bits that follow are shifted to number its slots. */
  readonly blocks: Int32Array;
}

/** `keys` holds two words each; see `ipv6-places.ts`. */
export function indexIpv6(keys: Int32Array): Ipv6Index {
  const perBlock = new Int32Array(0x10000);
  for (let at = 0; at < keys.length; at += 2) count(perBlock, blockOf(keys[at] as number));
  const blocks = new Int32Array(2 * 0x10000);
  let slotCount = 0;
  perBlock.forEach((keyCount, block) => {
    const bits = Math.min(mostBits, bitsFor(keyCount));
    blocks[2 * block] = slotCount;
    blocks[2 * block + 1] = 32 - bits;
    slotCount += 2 ** bits;
  });
  const slots = new Int32Array(slotCount + 1);
  const index = { slots, blocks };
  for (let at = 0; at < keys.length; at += 2)
    count(slots, ipv6Slot(index, keys[at] as number, keys[at + 1] as number) + 1);
  sumUp(slots);
  return index;
}

/** The slot of a key of two words, their top bits flipped as in the keys. */
export function ipv6Slot({ blocks }: Ipv6Index, high: number, low: number): number {
  const block = 2 * blockOf(high);
  const following = (high << 16) | ((low ^ topBit) >>> 16);
  const shift = blocks[block + 1] as number;
  // A shift of 32 would be one of 0: a block with a single slot.
  return (blocks[block] as number) + (shift === 32 ? 0 : following >>> shift);
}

/** Keys are kept with this bit flipped, so that signed comparison orders them: engines do that without a detour. */
export const topBit = 0x80000000 | 0;

const blockOf = (high: number) => (high ^ topBit) >>> 16;
const bitsFor = (keys: number) => Math.ceil(Math.log2(Math.max(1, keys / keysPerSlot)));

function count(counters: Int32Array, at: number): void {
  counters[at] = (counters[at] as number) + 1;
}

function sumUp(counters: Int32Array): void {
  for (let at = 1; at < counters.length; at += 1)
    counters[at] = (counters[at] as number) + (counters[at - 1] as number);
}

/**
 * A jump into the places of one family: for each value of an address's leading bits, a slot, how many places
 * start below. What is left to a binary search are the few places between two neighbouring slots. A slot whose
 * addresses all have the same most specific place holds that place itself: addresses taken at random mostly
 * fall there.
 *
 * IPv4 takes the leading bits as they are. IPv6 is held in clumps: nearly all of it lies in a few hundred of
 * the 65,536 blocks of 16 bits, and there in some of their parts. So each of these blocks has slots of its own,
 * as many as it has places, over the 32 bits that follow.
 */

/** Places per slot, on average, and bounds of the number of leading bits. */
const placesPerSlot = 2;
const fewestBits = 8;
const mostBits = 22;

/** First addresses are kept with this bit flipped, so that signed comparison orders them: engines do that without a detour. */
export const topBit = 0x80000000 | 0;

export interface Ipv4Index {
  /** From 0 up: how many places start below the slot. Below 0: an answer. One more slot closes the list. */
  readonly slots: Int32Array;
  /** Bits of an address that are not leading bits. */
  readonly shift: number;
}

/** Without answers yet. `keys` are first addresses, flipped. */
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

/** Without answers yet. `keys` are the first two words of first addresses, flipped. */
export function indexIpv6(keys: Int32Array): Ipv6Index {
  const perBlock = new Int32Array(0x10000);
  for (let at = 0; at < keys.length; at += 2) count(perBlock, blockOf(keys[at] as number));
  const blocks = new Int32Array(2 * 0x10000);
  let slotCount = 0;
  perBlock.forEach((places, block) => {
    const bits = Math.min(mostBits, bitsFor(places));
    blocks[2 * block] = slotCount;
    blocks[2 * block + 1] = 32 - bits;
    slotCount += 2 ** bits;
  });
  const index = { slots: new Int32Array(slotCount + 1), blocks };
  for (let at = 0; at < keys.length; at += 2)
    count(index.slots, ipv6Slot(index, keys[at] as number, keys[at + 1] as number) + 1);
  sumUp(index.slots);
  return index;
}

/** The slot of an address by its first two words, top bits flipped. */
export function ipv6Slot({ blocks }: Ipv6Index, high: number, low: number): number {
  const block = 2 * blockOf(high);
  const following = (high << 16) | ((low ^ topBit) >>> 16);
  const shift = blocks[block + 1] as number;
  // A shift of 32 would be one of 0: a block with a single slot.
  return (blocks[block] as number) + (shift === 32 ? 0 : following >>> shift);
}

/** A slot's content that gives the answer: a place, or −1 where nothing is registered. */
export const answerSlot = (place: number): number => ~(place + 1);
/** The place in a slot's content that is below 0. */
export const slotAnswer = (content: number): number => ~content - 1;

const blockOf = (high: number) => (high ^ topBit) >>> 16;
const bitsFor = (places: number) => Math.ceil(Math.log2(Math.max(1, places / placesPerSlot)));

function count(counters: Int32Array, at: number): void {
  counters[at] = (counters[at] as number) + 1;
}

function sumUp(counters: Int32Array): void {
  for (let at = 1; at < counters.length; at += 1)
    counters[at] = (counters[at] as number) + (counters[at - 1] as number);
}

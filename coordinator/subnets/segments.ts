/**
 * The address space of one family cut into segments, each owned by the most specific range over it. The tree
 * has such a table over the stretches where the way from place to parent does not serve (`hard-stretches.ts`).
 *
 *   ranges      A [0 .......................... 99]
 *                   B [10 ........ 49]
 *                        C [20..29]
 *   segments    A     B    C      B      A            (none)
 *   starts      0     10   20     30     50           100
 *
 * A look-up finds the last segment that starts at the address or before: a first jump by the top bits of the
 * address, then a binary search of a few steps. Nothing is walked, however deep the ranges nest or cross.
 */
import { compareWords } from "./range-columns.ts";

export interface Segments {
  /** First address of each segment, ascending: one 32-bit word (IPv4) or four. */
  readonly starts: Uint32Array;
  /** The owner's index in the columns, or -1 where nobody registered anything. */
  readonly owners: Int32Array;
  /** For each value of an address's top bits: how many segments start below it. One more slot closes the list. */
  readonly slots: Int32Array;
  /** Bits of the first word that are not top bits. */
  readonly shift: number;
}

/** Segments per slot, on average, and the bounds of the number of top bits. */
const segmentsPerSlot = 4;
const fewestTopBits = 8;
const mostTopBits = 22;

/** The table over segments that are in order. */
export function indexSegments(starts: Uint32Array, owners: Int32Array): Segments {
  const wanted = Math.ceil(Math.log2(Math.max(1, owners.length / segmentsPerSlot)));
  const topBits = Math.min(mostTopBits, Math.max(fewestTopBits, wanted));
  const shift = 32 - topBits;
  const words = owners.length === 0 ? 1 : starts.length / owners.length;
  const slots = new Int32Array(2 ** topBits + 1);
  for (let segment = 0; segment < owners.length; segment += 1) {
    const slot = ((starts[segment * words] as number) >>> shift) + 1;
    slots[slot] = (slots[slot] as number) + 1;
  }
  for (let slot = 1; slot < slots.length; slot += 1)
    slots[slot] = (slots[slot] as number) + (slots[slot - 1] as number);
  return { starts, owners, slots, shift };
}

export function segmentBytes({ starts, owners, slots }: Segments): number {
  return starts.byteLength + owners.byteLength + slots.byteLength;
}

/** The segment of the address, or −1 before the first. */
export function findIpv4({ starts, slots, shift }: Segments, value: number): number {
  const slot = value >>> shift;
  let low = slots[slot] as number;
  let high = slots[slot + 1] as number;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The same for an IPv6 address of four words, the most significant first. */
export function findIpv6({ starts, slots, shift }: Segments, words: Uint32Array): number {
  const slot = (words[0] as number) >>> shift;
  let low = slots[slot] as number;
  let high = slots[slot + 1] as number;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareWords(starts, middle, words, 0, 4) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

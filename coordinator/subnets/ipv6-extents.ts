/**
 * How far an IPv6 range reaches, in 15 bits: its prefix length, where it is a CIDR block of 64 bits or wider, as
 * nearly all are. Any other is odd, and its remaining words are written aside.
 */

import { topBit } from "./first-index.ts";
import type { ExtentCoding, OddColumn } from "./place-index.ts";
import type { RangeColumns } from "./range-columns.ts";

/** Of an odd range: the last two words of its first address, the four of its last one; top bits flipped. */
export const oddWords = 6;

export function ipv6Extents(columns: RangeColumns): ExtentCoding {
  return {
    oddWords,
    extentOf: (place) => prefixLengthAt(columns, place),
    writeOdd: (place, into) => writeOdd(columns, place, into),
  };
}

/** Whether an address that differs so from the first of a block with this prefix length lies outside. */
export function liesOutside(prefixLength: number, differingHigh: number, differingLow: number): boolean {
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

/** Addresses to look up, in random order. */

import { type RangeColumns, rangeAt } from "#coordinator/place/subnets/range-columns";
import type { IpAddress } from "#core/ip/address";

/** Each within a range taken at random: most ranges are small and at the bottom. */
export function addressesWithin(columns: RangeColumns, count: number, random: () => number): IpAddress[] {
  return Array.from({ length: count }, (): IpAddress => {
    const range = rangeAt(columns, Math.floor(random() * columns.count));
    if (range.family === 4)
      return { family: 4, value: range.first + Math.floor(random() * (range.last - range.first + 1)) };
    const offset = ((range.last - range.first + 1n) * BigInt(Math.floor(random() * 2 ** 32))) >> 32n;
    return { family: 6, value: range.first + offset };
  });
}

/** Each with the same chance over the unicast space (IPv6: where the registries hold blocks, 2000::/4). */
export function addressesAnywhere(family: 4 | 6, count: number, random: () => number): IpAddress[] {
  return Array.from({ length: count }, (): IpAddress => {
    if (family === 4) return { family, value: Math.floor(random() * 224 * 2 ** 24) };
    const high = BigInt(0x20000000 + Math.floor(random() * 0x10000000));
    const low = BigInt(Math.floor(random() * 2 ** 32));
    return { family, value: (high << 96n) | (low << 64n) };
  });
}

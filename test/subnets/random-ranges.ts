/**
 * Seeded random ranges in a small space, so that they nest deeply, touch, repeat and optionally cross. Both families
 * use the same numbers; the IPv6 space spreads over all four words.
 */
import type { IpRange } from "#core/ip/range";
import { seededRandom } from "#core/random";

export interface RandomRanges {
  readonly seed: number;
  readonly family: 4 | 6;
  readonly count: number;
  readonly crossing: boolean;
}

export const spaceSize = 1 << 12;

export function randomRanges({ seed, family, count, crossing }: RandomRanges): IpRange[] {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  return Array.from({ length: count }, () => {
    if (!crossing) {
      const size = 2 ** below(11);
      const first = Math.floor(below(spaceSize) / size) * size;
      return placed(family, first, first + size - 1);
    }
    const first = below(spaceSize);
    return placed(family, first, Math.min(spaceSize - 1, first + below(2 ** below(11))));
  });
}

/** The range in its family: IPv4 from the very end of the space down, IPv6 with every number spread over four words. */
export function placed(family: 4 | 6, first: number, last: number): IpRange {
  if (family === 4) return { family, first: 2 ** 32 - spaceSize + first, last: 2 ** 32 - spaceSize + last };
  return { family, first: spread(first), last: spread(last + 1) - 1n };
}

/** Three bits of the number in each 32-bit word, in order; the number after the last is the end of the space. */
export function spread(value: number): bigint {
  if (value >= spaceSize) return 1n << 128n;
  let address = 0n;
  for (const shift of [9n, 6n, 3n, 0n]) address = (address << 32n) | (((BigInt(value) >> shift) & 7n) << 29n);
  return address;
}

export const sizeOf = (range: IpRange): bigint => BigInt(range.last) - BigInt(range.first) + 1n;

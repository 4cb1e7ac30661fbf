/**
 * Parts of a leaf that measure apart. The registry knows a leaf as one range, but about one /24 in six spans
 * several places (Gharaibeh et al., "A look at router geolocation in public and commercial databases", 2015,
 * section 5). Where another crawler is nearer to some of its addresses, the range is halved at aligned
 * borders until each block holds addresses of one kind only; halving stops there, since an address that
 * nobody measured is likeliest to be like its neighbours.
 *
 *     10.1.2.0/24, owner a          .7 a   .9 a        .130 b        .200 a
 *     /25 + /25                    [.0 – .127: a]     [.128 – .255: b and a]
 *     the second halved            [.0 – .127: a]     [.128 – .191: b] [.192 – .255: a]
 *     parts                                            10.1.2.128/26 → b
 *
 * What stays with the owner is no part: it goes on under the leaf's own delegation.
 */
import type { CrawlerId } from "#core/ids";
import type { IpAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress, rangeBetween, rangeHolds } from "#core/ip/range";

/** A leaf that would need more keeps the parts with the most addresses. */
export const maxPartsPerLeaf = 16;

/** An address, and the crawler that is nearest to it as far as is known. */
export interface JudgedAddress {
  readonly address: IpAddress;
  readonly crawlerId: CrawlerId;
}

export interface LeafPart<Judged extends JudgedAddress = JudgedAddress> {
  /** Within the leaf; an aligned block, but for the ends of a leaf that is none. */
  readonly range: IpRange;
  readonly crawlerId: CrawlerId;
  /** Those that made it a part, in the order of the addresses. */
  readonly addresses: readonly Judged[];
}

/** The parts to be crawled by others than the owner, in the order of their addresses; none: it stays whole. */
export function leafParts<Judged extends JudgedAddress>(
  leaf: IpRange,
  owner: CrawlerId,
  judged: readonly Judged[],
): LeafPart<Judged>[] {
  const inside = judged
    .filter(({ address }) => rangeHolds(leaf, address))
    .toSorted((a, b) => (a.address.value < b.address.value ? -1 : 1));
  // All of them elsewhere: the delegation is wrong as a whole, which is no reason to cut the range.
  if (!inside.some(({ crawlerId }) => crawlerId === owner)) return [];
  const parts = partsOf(coveringBlock(leaf), leaf, { owner, judged: inside });
  return mostFilled(parts, maxPartsPerLeaf);
}

interface Block {
  readonly first: bigint;
  /** A power of two. */
  readonly size: bigint;
}

interface Contents<Judged> {
  readonly owner: CrawlerId;
  readonly judged: readonly Judged[];
}

function partsOf<Judged extends JudgedAddress>(
  block: Block,
  leaf: IpRange,
  { owner, judged }: Contents<Judged>,
): LeafPart<Judged>[] {
  const [first] = judged;
  if (first === undefined) return [];
  if (judged.every(({ crawlerId }) => crawlerId === first.crawlerId)) {
    const range = first.crawlerId === owner ? null : clipped(block, leaf);
    return range === null ? [] : [{ range, crawlerId: first.crawlerId, addresses: judged }];
  }
  // One address that was judged twice, differently: nothing to separate.
  if (block.size === 1n) return [];
  const size = block.size / 2n;
  const middle = block.first + size;
  const isLow = (one: Judged) => BigInt(one.address.value) < middle;
  return [
    ...partsOf({ first: block.first, size }, leaf, { owner, judged: judged.filter(isLow) }),
    ...partsOf({ first: middle, size }, leaf, { owner, judged: judged.filter((one) => !isLow(one)) }),
  ];
}

/** The smallest aligned block that covers the range. */
function coveringBlock(range: IpRange): Block {
  const first = BigInt(range.first);
  const differing = first ^ BigInt(range.last);
  const size = differing === 0n ? 1n : 1n << BigInt(differing.toString(2).length);
  return { first: first - (first % size), size };
}

/** The block as far as it lies in the leaf. */
function clipped({ first, size }: Block, leaf: IpRange): IpRange | null {
  const last = first + size - 1n;
  const leafFirst = BigInt(leaf.first);
  const leafLast = BigInt(leaf.last);
  const low = first > leafFirst ? addressOf(leaf, first) : firstAddress(leaf);
  const high = last < leafLast ? addressOf(leaf, last) : lastAddress(leaf);
  return rangeBetween(low, high);
}

function addressOf(leaf: IpRange, value: bigint): IpAddress {
  return leaf.family === 4 ? { family: 4, value: Number(value) } : { family: 6, value };
}

function mostFilled<Judged extends JudgedAddress>(
  parts: readonly LeafPart<Judged>[],
  most: number,
): LeafPart<Judged>[] {
  if (parts.length <= most) return [...parts];
  const kept = new Set(parts.toSorted((a, b) => b.addresses.length - a.addresses.length).slice(0, most));
  return parts.filter((part) => kept.has(part));
}

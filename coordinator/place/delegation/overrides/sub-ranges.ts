/**
 * Divides a leaf into parts that measure apart. The registry has one range, but about one /24 in six spans several places
 * (Gharaibeh et al., "A look at router geolocation in public and commercial databases", 2015, section 5). The range is halved
 * at aligned borders until each block holds addresses with the same nearest crawler, and no further, because an unmeasured
 * address most likely resembles its neighbours.
 *     10.1.2.0/24, owner a          .7 a   .9 a        .130 b        .200 a
 *     /25 + /25                    [.0 – .127: a]     [.128 – .255: b and a]
 *     the second halved            [.0 – .127: a]     [.128 – .191: b] [.192 – .255: a]
 *     parts                                            10.1.2.128/26 → b
 *
 * Blocks of the owner are no parts. They stay under the leaf's own delegation.
 */
import type { CrawlerId } from "#core/ids";
import type { IpAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress, rangeBetween, rangeHolds } from "#core/ip/range";

/** Maximum parts. A leaf with more keeps those with the most addresses. */
export const maxPartsPerLeaf = 16;

/** An address and its nearest known crawler. */
export interface JudgedAddress {
  readonly address: IpAddress;
  readonly crawlerId: CrawlerId;
}

export interface LeafPart<Judged extends JudgedAddress = JudgedAddress> {
  /** An aligned block of the leaf, except at the ends of an unaligned leaf. */
  readonly range: IpRange;
  readonly crawlerId: CrawlerId;
  readonly addresses: readonly Judged[];
}

/** The parts for crawlers other than the owner, in order. Empty if the leaf stays whole. */
export function leafParts<Judged extends JudgedAddress>(
  leaf: IpRange,
  owner: CrawlerId,
  judged: readonly Judged[],
): LeafPart<Judged>[] {
  const inside = judged
    .filter(({ address }) => rangeHolds(leaf, address))
    .toSorted((a, b) => (a.address.value < b.address.value ? -1 : 1));
  // If all addresses belong elsewhere, the whole delegation is wrong, which is no reason to split.
  if (!inside.some(({ crawlerId }) => crawlerId === owner)) return [];
  const parts = partsOf(coveringBlock(leaf), leaf, owner, inside);
  const fullest = parts.toSorted((a, b) => b.addresses.length - a.addresses.length);
  const kept = new Set(fullest.slice(0, maxPartsPerLeaf));
  return parts.filter((part) => kept.has(part));
}

interface Block {
  readonly first: bigint;
  /** A power of two. */
  readonly size: bigint;
}

function partsOf<Judged extends JudgedAddress>(
  { first, size }: Block,
  leaf: IpRange,
  owner: CrawlerId,
  judged: readonly Judged[],
): LeafPart<Judged>[] {
  const [one] = judged;
  if (one === undefined) return [];
  const { crawlerId } = one;
  if (judged.every((other) => other.crawlerId === crawlerId)) {
    const range = crawlerId === owner ? null : clipped({ first, size }, leaf);
    return range === null ? [] : [{ range, crawlerId, addresses: judged }];
  }
  // Contradicting judgements of one address cannot be separated.
  if (size === 1n) return [];
  const middle = first + size / 2n;
  const [low, high]: Judged[][] = [[], []];
  for (const other of judged) (BigInt(other.address.value) < middle ? low : high)!.push(other);
  return [
    ...partsOf({ first, size: size / 2n }, leaf, owner, low!),
    ...partsOf({ first: middle, size: size / 2n }, leaf, owner, high!),
  ];
}

function coveringBlock(range: IpRange): Block {
  const first = BigInt(range.first);
  const differing = first ^ BigInt(range.last);
  const size = differing === 0n ? 1n : 1n << BigInt(differing.toString(2).length);
  return { first: first - (first % size), size };
}

function clipped({ first, size }: Block, leaf: IpRange): IpRange | null {
  const last = first + size - 1n;
  const low = first > BigInt(leaf.first) ? addressOf(leaf, first) : firstAddress(leaf);
  const high = last < BigInt(leaf.last) ? addressOf(leaf, last) : lastAddress(leaf);
  return rangeBetween(low, high);
}

const addressOf = ({ family }: IpRange, value: bigint): IpAddress =>
  family === 4 ? { family, value: Number(value) } : { family, value };

// Finds addresses of a leaf that measure apart, by connect times of ordinary fetches: a free suspicion to be confirmed by
// probes. Noise and a busy crawler only add to a connect time, so an address's level is the lower quartile of its latest
// times. With exponential noise of 4 ms, the level of three times is on average 1.3 ms too high, and more than 15 ms for one
// address in 77,000 (e^-11.25). Only connect times of one crawler are comparable, since a first byte includes the server's
// time.

interface AddressTimes {
  readonly address: string;
  /** Connect times in ms of the latest fetches, in any order. */
  readonly timesMs: readonly number[];
}

/** Minimum number of times. Fewer are no evidence about an address. */
const leastTimes = 3;

/** Apart means by more than this many ms and this share of the level, since long paths vary more within one place. */
const margin = { ms: 15, share: 0.2 };

export interface ApartVerdict {
  /** RTT of the rest of the leaf, in ms. Null if unknown. */
  readonly usualMs: number | null;
  readonly alike: readonly JudgedLevel[];
  readonly apart: readonly JudgedLevel[];
}

interface JudgedLevel {
  readonly address: string;
  readonly levelMs: number;
}

/**
 * `expectedMs` is this crawler's connect RTT at delegation. If null, the median address counts as usual. If no address is as
 * expected, the path to the whole leaf has changed, which recalibration handles, so nothing is apart.
 */
export function apartAddresses(addresses: readonly AddressTimes[], expectedMs: number | null): ApartVerdict {
  const levels = addresses.flatMap(levelOf).toSorted((a, b) => a.levelMs - b.levelMs);
  const usualMs = expectedMs ?? levels[(levels.length - 1) >> 1]?.levelMs ?? null;
  const alike = levels.filter(({ levelMs }) => usualMs !== null && isAlike(levelMs, usualMs));
  return { usualMs, alike, apart: alike.length === 0 ? [] : levels.filter((one) => !alike.includes(one)) };
}

/** True if two levels can be of one place. */
export function isAlike(aMs: number, bMs: number): boolean {
  return Math.abs(aMs - bMs) <= Math.max(margin.ms, margin.share * Math.max(aMs, bMs));
}

/** The lower quartile. Empty if there are too few times. */
function levelOf({ address, timesMs }: AddressTimes): JudgedLevel[] {
  const valid = timesMs.filter((timeMs) => timeMs >= 0 && Number.isFinite(timeMs)).toSorted((a, b) => a - b);
  return valid.length < leastTimes ? [] : [{ address, levelMs: valid[(valid.length - 1) >> 2]! }];
}

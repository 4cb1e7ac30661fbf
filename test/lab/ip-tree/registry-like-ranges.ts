/**
 * Any number of ranges like those of registries, by a seed: nested up to eleven deep, 15 % of IPv4 not CIDR blocks, sorted, none
 * overlapping partially. A block distributes its number of ranges to its children; a third of them are leaves, and what a child
 * has no room for goes to the next.
 */

import { emptyColumns, type RangeColumns } from "#coordinator/place/subnets/range-columns";
import { seededRandom } from "#core/random";

const deepest = 11;
/** Share of tries; about 15 % of the ranges result. */
const notCidr = 0.22;
/** Smaller IPv4 blocks are leaves. */
const smallestParent = 16;

/** `count` ranges, or a little fewer. */
export function registryLikeIpv4(count: number, seed: number): RangeColumns {
  const columns = emptyColumns(4, count);
  const random = seededRandom(seed);
  let made = 0;
  const put = (first: number, size: number) => {
    columns.first[made] = first;
    columns.last[made++] = first + size - 1;
  };
  for (let block = 1; block <= 223; block += 1) {
    const share = Math.round((count * block) / 223) - made;
    if (share > 0) fillIpv4({ first: block * 2 ** 24, size: 2 ** 24, share, depth: 1 }, put, random);
  }
  return firstOf(columns, made);
}

interface Ipv4Block {
  readonly first: number;
  readonly size: number;
  /** Number of ranges to make: this one and those within. */
  readonly share: number;
  readonly depth: number;
}

/** Returns the number made. */
function fillIpv4(
  block: Ipv4Block,
  put: (first: number, size: number) => void,
  random: () => number,
): number {
  put(block.first, block.size);
  if (block.share <= 1 || block.size < smallestParent || block.depth === deepest) return 1;
  const children = childCount(block, random);
  const room = Math.floor(block.size / children);
  let left = block.share - 1;
  for (let child = 0; child < children && left > 0; child += 1) {
    const [first, size] = childIpv4(block.first + child * room, room, random);
    const share = shareOf(left, children - child, random);
    left -= fillIpv4({ first, size, share, depth: block.depth + 1 }, put, random);
  }
  return block.share - left;
}

function childCount({ size, share }: Ipv4Block, random: () => number): number {
  const most = Math.min(share - 1, size >> 2);
  return Math.max(2, Math.min(most, 2 + Math.floor(62 * random() ** 3)));
}

/** A leaf in one of three cases; the others take a random share of the rest. */
function shareOf(left: number, children: number, random: () => number): number {
  if (children > 1 && random() < 0.35) return 1;
  return Math.max(1, Math.min(left, Math.floor((left / children) * 3.5 * random())));
}

/** The largest aligned CIDR block in the room, or a part of the room; never all of it. */
function childIpv4(start: number, room: number, random: () => number): [first: number, size: number] {
  if (random() < notCidr) return [start, Math.max(2, Math.floor(room * (0.4 + 0.6 * random())))];
  let size = 2 ** Math.floor(Math.log2(room));
  while (Math.ceil(start / size) * size + size > start + room) size /= 2;
  return [Math.ceil(start / size) * size, size];
}

function firstOf(columns: RangeColumns, count: number): RangeColumns {
  const words = count * columns.words;
  return {
    ...columns,
    count,
    first: columns.first.subarray(0, words),
    last: columns.last.subarray(0, words),
  };
}

/** IANA's blocks for the registries, by their first 32 bits. */
const ipv6Blocks = [0x20010000, 0x24000000, 0x26000000, 0x28000000, 0x2a000000, 0x2c000000];
/** Free bits among the first 64 in a registry's block and in a member's. */
const blockBits = 48;
const memberBits = 32;

/**
 * `count` ranges, or a little fewer: members' blocks of 32 bits within the registries', a long tail of customers
 * in each, all of them CIDR blocks as RFC 4012 has it. Three in a hundred lie within one block of 64 bits, as link
 * networks do.
 */
export function registryLikeIpv6(count: number, seed: number): RangeColumns {
  const columns = emptyColumns(6, count);
  const random = seededRandom(seed);
  let made = 0;
  const put = (first: bigint, size: bigint, isLeaf = false) => {
    const isNarrow = isLeaf && random() < 0.03;
    const start = (first << 64n) + (isNarrow ? 16n : 0n);
    writeWords(columns.first, made, start);
    writeWords(columns.last, made++, isNarrow ? start + 3n : start + (size << 64n) - 1n);
  };
  ipv6Blocks.forEach((word, index) => {
    const share = Math.round((count * (index + 1)) / ipv6Blocks.length) - made;
    const first = BigInt(word) << 32n;
    put(first, 1n << BigInt(blockBits));
    const members = Math.min(2 ** (blockBits - memberBits) / 4, Math.ceil(share / 20));
    let left = share - 1;
    for (let member = 0; member < members && left > 0; member += 1) {
      const at = first + (BigInt(4 * member) << BigInt(memberBits));
      const some = Math.max(1, Math.min(left, Math.floor((left / (members - member)) * 4 * random() ** 3)));
      left -= fillIpv6({ first: at, bits: memberBits, share: some, depth: 2 }, put, random);
    }
  });
  return firstOf(columns, made);
}

/** `bits` of the first 64 are free. */
interface Ipv6Block {
  readonly first: bigint;
  readonly bits: number;
  readonly share: number;
  readonly depth: number;
}

function fillIpv6(
  block: Ipv6Block,
  put: (first: bigint, size: bigint, isLeaf?: boolean) => void,
  random: () => number,
): number {
  const isLeaf = block.share <= 1 || block.bits < 2 || block.depth === deepest;
  const size = 1n << BigInt(block.bits);
  put(block.first, size, isLeaf);
  if (isLeaf) return 1;
  const bits = Math.max(0, block.bits - 1 - Math.floor(8 * random()));
  const children = Math.min(2 ** (block.bits - bits), block.share - 1);
  let left = block.share - 1;
  for (let child = 0; child < children && left > 0; child += 1) {
    const first = block.first + (BigInt(child) << BigInt(bits));
    left -= fillIpv6(
      { first, bits, share: shareOf(left, children - child, random), depth: block.depth + 1 },
      put,
      random,
    );
  }
  return block.share - left;
}

function writeWords(column: Uint32Array, index: number, address: bigint): void {
  for (let word = 0; word < 4; word += 1)
    column[4 * index + word] = Number((address >> BigInt(96 - 32 * word)) & 0xffffffffn);
}

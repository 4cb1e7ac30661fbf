/**
 * Who announces which addresses: a routing table reduced to prefixes with their origin AS (RFC 4271: the last AS of the
 * path, where the route comes from), and the look-up of the AS that a range of addresses belongs to.
 *
 * Counted in blocks, the smallest prefixes that networks generally let pass (RFC 7454, section 6.1.3): /24 for IPv4, /48
 * for IPv6. A block's number is the leading 24 or 48 bits of its addresses; both are exact in a double.
 *
 *   prefixes    AS1 10.0.0.0/8,  AS2 10.1.0.0/16,  AS1 10.1.2.0/24
 *   segments    10.0.0.0 AS1 · 10.1.0.0 AS2 · 10.1.2.0 AS1 · 10.1.3.0 AS2 · 10.2.0.0 AS1 · 11.0.0.0 nobody
 *
 * A million prefixes make about as many segments: 12 bytes each.
 */
import { formatAddress, type IpAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress } from "#core/ip/range";

export type Family = 4 | 6;

/** Leading bits that number a block. */
export const blockBits = { 4: 24, 6: 48 } as const;

/** Every prefix once: by first block, and of equal ones the widest first. */
export interface OriginatedPrefixes {
  readonly firstBlocks: Float64Array;
  readonly lengths: Uint8Array;
  readonly asNumbers: Uint32Array;
}

export interface RoutingTable {
  readonly ipv4: OriginatedPrefixes;
  readonly ipv6: OriginatedPrefixes;
}

export const emptyPrefixes: OriginatedPrefixes = {
  firstBlocks: new Float64Array(0),
  lengths: new Uint8Array(0),
  asNumbers: new Uint32Array(0),
};

/** The stretch from one start to the next belongs to one AS; 0: nobody announces it. */
interface OriginSegments {
  readonly starts: Float64Array;
  readonly asNumbers: Uint32Array;
}

export const asText = (asNumber: number): string => `AS${asNumber}`;

/** "AS3333", "as 3333"; null: not of that form, or no number that an AS may have. */
export function parseAsNumber(text: string): number | null {
  const digits = /^as ?(\d{1,10})$/i.exec(text)?.[1];
  const asNumber = Number(digits ?? 0);
  return asNumber >= 1 && asNumber <= 0xffff_ffff ? asNumber : null;
}

export const prefixBlocks = (family: Family, length: number): number => 2 ** (blockBits[family] - length);

export function blockOf(address: IpAddress): number {
  return address.family === 4 ? Math.floor(address.value / 256) : Number(address.value >> 80n);
}

export function firstAddressOf(family: Family, block: number): IpAddress {
  return family === 4 ? { family, value: block * 256 } : { family, value: BigInt(block) << 80n };
}

export function prefixText(family: Family, firstBlock: number, length: number): string {
  return `${formatAddress(firstAddressOf(family, firstBlock))}/${length}`;
}

/** Cut so that each address is in the most specific prefix over it. Prefixes never cross, so a stack is enough. */
export function segmentsOf(family: Family, prefixes: OriginatedPrefixes): OriginSegments {
  const { firstBlocks, lengths, asNumbers } = prefixes;
  const cut = new Cutting(2 * firstBlocks.length);
  const ends: number[] = [];
  const owners: number[] = [];
  const closeUpTo = (block: number) => {
    while (ends.length > 0 && (ends.at(-1) as number) <= block) {
      owners.pop();
      cut.begin(ends.pop() as number, owners.at(-1) ?? 0);
    }
  };
  for (let at = 0; at < firstBlocks.length; at += 1) {
    const first = firstBlocks[at] as number;
    closeUpTo(first);
    const asNumber = asNumbers[at] as number;
    cut.begin(first, asNumber);
    ends.push(first + prefixBlocks(family, lengths[at] as number));
    owners.push(asNumber);
  }
  closeUpTo(Number.POSITIVE_INFINITY);
  return cut.segments();
}

class Cutting {
  readonly #starts: Float64Array;
  readonly #asNumbers: Uint32Array;
  #count = 0;

  constructor(most: number) {
    this.#starts = new Float64Array(most);
    this.#asNumbers = new Uint32Array(most);
  }

  /** From here on. What began at the same place was empty; what goes on as before is no new segment. */
  begin(start: number, asNumber: number): void {
    if (this.#count > 0 && this.#starts[this.#count - 1] === start) this.#count -= 1;
    if ((this.#count === 0 ? 0 : this.#asNumbers[this.#count - 1]) === asNumber) return;
    this.#starts[this.#count] = start;
    this.#asNumbers[this.#count] = asNumber;
    this.#count += 1;
  }

  segments(): OriginSegments {
    return {
      starts: this.#starts.slice(0, this.#count),
      asNumbers: this.#asNumbers.slice(0, this.#count),
    };
  }
}

/** A range so wide belongs to no single network, and would be a walk over much of the table. */
const widestLength = { 4: 8, 6: 16 } as const;

/** Which AS a range of addresses belongs to. */
export class OriginTable {
  static readonly empty = new OriginTable({
    4: { starts: new Float64Array(0), asNumbers: new Uint32Array(0) },
    6: { starts: new Float64Array(0), asNumbers: new Uint32Array(0) },
  });

  readonly #segments: Readonly<Record<Family, OriginSegments>>;

  constructor(segments: Readonly<Record<Family, OriginSegments>>) {
    this.#segments = segments;
  }

  /** How many segments there are. */
  get size(): number {
    return this.#segments[4].starts.length + this.#segments[6].starts.length;
  }

  get bytes(): number {
    return 12 * this.size;
  }

  /**
   * The AS that originates the most specific prefix over the range; of a range with several such prefixes in it, the AS
   * that has at least half of its blocks, of two such the lower one. Null: nobody has as much.
   */
  asNumberOf(range: IpRange): number | null {
    const { family } = range;
    const firstBlock = blockOf(firstAddress(range));
    const lastBlock = blockOf(lastAddress(range));
    const { starts, asNumbers } = this.#segments[family];
    const at = lastAtOrBefore(starts, firstBlock);
    const isOne = at + 1 >= starts.length || (starts[at + 1] as number) > lastBlock;
    if (isOne) return at < 0 ? null : (asNumbers[at] as number) || null;
    const blocks = lastBlock - firstBlock + 1;
    if (blocks > prefixBlocks(family, widestLength[family])) return null;
    return this.#largestShare(family, at, { firstBlock, lastBlock });
  }

  #largestShare(
    family: Family,
    from: number,
    { firstBlock, lastBlock }: { readonly firstBlock: number; readonly lastBlock: number },
  ): number | null {
    const { starts, asNumbers } = this.#segments[family];
    const blocksOf = new Map<number, number>();
    for (let at = Math.max(from, 0); at < starts.length && (starts[at] as number) <= lastBlock; at += 1) {
      const asNumber = asNumbers[at] as number;
      const start = Math.max(starts[at] as number, firstBlock);
      const end = Math.min((starts[at + 1] ?? Number.POSITIVE_INFINITY) - 1, lastBlock);
      if (asNumber !== 0) blocksOf.set(asNumber, (blocksOf.get(asNumber) ?? 0) + end - start + 1);
    }
    const [most] = [...blocksOf].sort(([a, some], [b, others]) => others - some || a - b);
    return most && 2 * most[1] >= lastBlock - firstBlock + 1 ? most[0] : null;
  }
}

/** Index of the last of ascending numbers that is not above; −1 before the first. */
export function lastAtOrBefore(starts: Float64Array, value: number): number {
  let low = 0;
  for (let high = starts.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// As bytes, for the database: see db/migrations/0085-routing-tables.sql.

const prefixBytes = { 4: 4, 6: 7 } as const;
const segmentBytes = { 4: 8, 6: 12 } as const;

/** Prefixes of one AS: its rows of the table, by their indexes. */
export function packPrefixes(family: Family, prefixes: OriginatedPrefixes, rows: ArrayLike<number>): Buffer {
  const each = prefixBytes[family];
  const bytes = Buffer.alloc(each * rows.length);
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at] as number;
    bytes.writeUIntBE(prefixes.firstBlocks[row] as number, at * each, each - 1);
    bytes[at * each + each - 1] = prefixes.lengths[row] as number;
  }
  return bytes;
}

interface Prefix {
  readonly firstBlock: number;
  readonly length: number;
}

export function* unpackPrefixes(family: Family, bytes: Buffer): Generator<Prefix> {
  const each = prefixBytes[family];
  for (let at = 0; at + each <= bytes.length; at += each) {
    yield { firstBlock: bytes.readUIntBE(at, each - 1), length: bytes[at + each - 1] as number };
  }
}

export function packSegments(
  family: Family,
  { starts, asNumbers }: OriginSegments,
  from: number,
  to: number,
): Buffer {
  const each = segmentBytes[family];
  const bytes = Buffer.alloc(each * (to - from));
  for (let at = from; at < to; at += 1) {
    // The first address, or the first half of it: the block's bits lead.
    bytes.writeUIntBE(starts[at] as number, (at - from) * each, blockBits[family] / 8);
    bytes.writeUInt32BE(asNumbers[at] as number, (at - from + 1) * each - 4);
  }
  return bytes;
}

/** Rows in the order of addresses. */
export function unpackSegments(family: Family, rows: readonly Buffer[]): OriginSegments {
  const each = segmentBytes[family];
  const count = rows.reduce((sum, { length }) => sum + Math.floor(length / each), 0);
  const starts = new Float64Array(count);
  const asNumbers = new Uint32Array(count);
  let next = 0;
  for (const bytes of rows) {
    for (let at = 0; at + each <= bytes.length; at += each) {
      starts[next] = bytes.readUIntBE(at, blockBits[family] / 8);
      asNumbers[next++] = bytes.readUInt32BE(at + each - 4);
    }
  }
  return { starts, asNumbers };
}

/** The addresses of prefixes, joined where they touch or hold each other: as few ranges as there can be. */
export function joinedRanges(family: Family, prefixes: Iterable<Prefix>): IpRange[] {
  const joined: { first: number; end: number }[] = [];
  for (const { firstBlock, length } of prefixes) {
    const end = firstBlock + prefixBlocks(family, length);
    const last = joined.at(-1);
    if (last !== undefined && firstBlock <= last.end) last.end = Math.max(last.end, end);
    else joined.push({ first: firstBlock, end });
  }
  return joined.map(({ first, end }) => rangeOfBlocks(family, first, end));
}

function rangeOfBlocks(family: Family, first: number, end: number): IpRange {
  if (family === 4) return { family, first: first * 256, last: end * 256 - 1 };
  return { family, first: BigInt(first) << 80n, last: (BigInt(end) << 80n) - 1n };
}

/** Of those that hold the block, the most specific. */
export function mostSpecific(family: Family, prefixes: Iterable<Prefix>, block: number): Prefix | null {
  let found: Prefix | null = null;
  for (const prefix of prefixes) {
    const { firstBlock, length } = prefix;
    if (firstBlock > block) break;
    if (block < firstBlock + prefixBlocks(family, length) && (found === null || length > found.length))
      found = prefix;
  }
  return found;
}

/**
 * The links of a page in few bytes, as table page_links keeps them. Targets are hashes and so as good as random: what
 * can be saved is the host's hash, which stands once for all links to it, and the leading bits that sorted neighbours
 * share. Hosts in the order of their hashes, the URLs of each in the order of theirs, as differences, each list as wide
 * as its widest difference: about 8 bytes a link on a page with 100 links to 5 hosts, where two hashes take 16. An
 * earlier visit is kept as what it had and the next visit has not, and the other way round: as Boldi and Vigna's reference
 * lists (The WebGraph Framework I, 2004), with the later visit as the reference.
 *
 *   byte 0        1: whole; 2: a difference to the visit after it
 *   then bits     one list of links (whole), or two (only in this visit, only in the one after it)
 *   list          count of hosts · host hashes · for each host its count of URLs · for each host its URL hashes
 *   hashes        6 bits: width - 1; then the differences, the first to 0, in so many bits
 */
import type { HostHash, UrlHash } from "./ids.ts";

export interface LinkTarget {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
}

const wholeMark = 1;
const differenceMark = 2;

/** Packs a set of links: order and repetitions are lost. */
export function packLinks(links: readonly LinkTarget[]): Uint8Array {
  return packLists(wholeMark, [links]);
}

/** Packs the links of a visit as what differs from those of the visit after it. */
export function packDifference(links: readonly LinkTarget[], after: readonly LinkTarget[]): Uint8Array {
  return packLists(differenceMark, [without(links, after), without(after, links)]);
}

/**
 * The links of a visit; `after`: those of the visit after it, null for the latest one. Throws RangeError for bytes that
 * are none of ours.
 */
export function unpackLinks(bytes: Uint8Array, after: readonly LinkTarget[] | null): readonly LinkTarget[] {
  const mark = bytes[0];
  const reader = new BitReader(bytes, 1);
  if (mark === wholeMark) return readList(reader);
  if (mark !== differenceMark) throw new RangeError(`packed links begin with byte ${mark}, not with 1 or 2`);
  if (after === null) throw new RangeError("packed links are a difference, and to nothing");
  const [only, gone] = [readList(reader), readList(reader)];
  return [...without(after, gone), ...only];
}

/** Those of `links` that are not among `others`. */
function without(links: readonly LinkTarget[], others: readonly LinkTarget[]): LinkTarget[] {
  const names = new Set(others.map(nameOf));
  return links.filter((link) => !names.has(nameOf(link)));
}

/** One name for each target. */
export function nameOf({ hostHash, urlHash }: LinkTarget): string {
  return `${hostHash}/${urlHash}`;
}

function packLists(mark: number, lists: readonly (readonly LinkTarget[])[]): Uint8Array {
  const writer = new BitWriter();
  writer.write(mark, 8);
  for (const list of lists) writeList(writer, list);
  return writer.bytes();
}

function writeList(writer: BitWriter, links: readonly LinkTarget[]): void {
  const byHost = new Map<HostHash, Set<UrlHash>>();
  for (const { hostHash, urlHash } of links) {
    const urls = byHost.get(hostHash);
    if (urls === undefined) byHost.set(hostHash, new Set([urlHash]));
    else urls.add(urlHash);
  }
  const hosts = sorted(byHost.keys());
  const urlsOf = [...hosts].map((host) => sorted(byHost.get(asText(host) as HostHash)!));
  writer.writeCount(hosts.length);
  writeHashes(writer, hosts);
  for (const urls of urlsOf) writer.writeCount(urls.length);
  for (const urls of urlsOf) writeHashes(writer, urls);
}

function readList(reader: BitReader): LinkTarget[] {
  const hosts = readHashes(reader, reader.readCount());
  const counts = hosts.map(() => reader.readCount());
  return hosts.flatMap((hostHash, index) => {
    const urls = readHashes(reader, counts[index]!);
    return urls.map((urlHash) => ({ hostHash: hostHash as HostHash, urlHash: urlHash as UrlHash }));
  });
}

function writeHashes(writer: BitWriter, hashes: BigUint64Array): void {
  if (hashes.length === 0) return;
  const differences = hashes.map((hash, index) => (index === 0 ? hash : hash - hashes[index - 1]!));
  const width = differences.toSorted().at(-1)!.toString(2).length;
  writer.write(width - 1, 6);
  for (const difference of differences) writer.writeWide(difference, width);
}

function readHashes(reader: BitReader, count: number): string[] {
  if (count === 0) return [];
  const width = reader.read(6) + 1;
  let hash = 0n;
  return Array.from({ length: count }, () => {
    hash += reader.readWide(width);
    return asText(hash);
  });
}

/** Hashes are signed in the database; here they are sorted as what they are without a sign. */
function sorted(hashes: Iterable<string>): BigUint64Array {
  return BigUint64Array.from([...hashes], (hash) => BigInt.asUintN(64, BigInt(hash))).sort();
}

function asText(hash: bigint): string {
  return BigInt.asIntN(64, hash).toString();
}

/** A row of bits: numbers of any width one after the other, the most significant bit first. */

class BitWriter {
  #bytes = new Uint8Array(256);
  #bits = 0;

  /** `width` from 0 to 32 of the lowest bits of `value`. */
  write(value: number, width: number): void {
    this.#makeRoom(width);
    let left = width;
    while (left > 0) {
      const free = 8 - (this.#bits & 7);
      const taken = Math.min(free, left);
      const piece = (value >>> (left - taken)) & ((1 << taken) - 1);
      const at = this.#bits >>> 3;
      this.#bytes[at] = this.#bytes[at]! | (piece << (free - taken));
      this.#bits += taken;
      left -= taken;
    }
  }

  /** `width` from 1 to 64. */
  writeWide(value: bigint, width: number): void {
    if (width > 32) this.write(Number(value >> 32n), width - 32);
    this.write(Number(value & 0xffff_ffffn), Math.min(32, width));
  }

  /** A whole number from 0 to 2^32 - 1, in groups of seven bits: small ones are short. */
  writeCount(value: number): void {
    let left = value;
    while (left > 127) {
      this.write((left & 127) | 128, 8);
      left >>>= 7;
    }
    this.write(left, 8);
  }

  /** What was written, filled up with zeros to whole bytes. */
  bytes(): Uint8Array {
    return this.#bytes.slice(0, (this.#bits + 7) >>> 3);
  }

  #makeRoom(width: number): void {
    if (this.#bits + width <= 8 * this.#bytes.length) return;
    const larger = new Uint8Array(2 * this.#bytes.length);
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

/** Throws RangeError where the bits end too early or a count is more than they can hold. */
class BitReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, startByte = 0) {
    this.#bytes = bytes;
    this.#at = 8 * startByte;
  }

  read(width: number): number {
    if (this.#at + width > 8 * this.#bytes.length) throw new RangeError("packed links end too early");
    let value = 0;
    let left = width;
    while (left > 0) {
      const free = 8 - (this.#at & 7);
      const taken = Math.min(free, left);
      const piece = (this.#bytes[this.#at >>> 3]! >>> (free - taken)) & ((1 << taken) - 1);
      value = value * 2 ** taken + piece;
      this.#at += taken;
      left -= taken;
    }
    return value;
  }

  readWide(width: number): bigint {
    const high = width > 32 ? BigInt(this.read(width - 32)) << 32n : 0n;
    return high | BigInt(this.read(Math.min(32, width)));
  }

  /** Of things that take a bit at least. */
  readCount(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const group = this.read(8);
      value += (group & 127) * 2 ** shift;
      if (group < 128) return this.#possible(value);
    }
    throw new RangeError("packed links have a count that does not end");
  }

  #possible(count: number): number {
    const left = 8 * this.#bytes.length - this.#at;
    if (count > left) throw new RangeError(`packed links say that there are ${count} in ${left} bits`);
    return count;
  }
}

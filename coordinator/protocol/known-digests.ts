/**
 * The pages that are known of a channel, by the digests of their bodies, in compact form (SARSS section 2.1: an array of
 * 32 bits of each page's SHA-1, 400 kB at most): a Golomb-coded set. Each digest becomes a number below 65,536 times
 * their count, and the sorted numbers' gaps are Rice-coded with 16 bits: some 17.5 bits a page in place of 32. A digest
 * that is not in the set is taken to be with a probability of 1 in 65,536; whoever relies on it checks the whole digest.
 *
 *   3 bytes count · 1 byte place in the digest where its 48 bits begin · gaps: unary quotient, 0, 16 bits
 *
 * Sets of the same pages with other places err on other digests: what one of them mistook, the next does not.
 */
import { ProtocolError } from "#core/errors";

/** Pages of one set, and so about 4.4 kB. */
export const mostKnownDigests = 2000;
/** As it is sent: the longest that the gaps of so many can be (each at most 16 + 1 bits and all quotients together). */
export const mostKnownBytes = 4 + Math.ceil((mostKnownDigests * (16 + 2)) / 8) + 1;

const gapBits = 16;
/** SHA-256 has 64 hex digits; 12 of them are read. */
export const knownPlaces = 53;

/** `digests`: SHA-256, hex; at most `mostKnownDigests` of them count. `place`: any whole number. */
export function packKnownDigests(digests: Iterable<string>, place: number): Buffer {
  const at = Math.abs(Math.trunc(place)) % knownPlaces;
  const distinct = [...new Set(digests)].slice(0, mostKnownDigests);
  const count = distinct.length;
  const numbers = [...new Set(distinct.map((digest) => numberOf(digest, { at, count })))].sort(
    (a, b) => a - b,
  );
  const bits = new BitWriter();
  let before = -1;
  for (const number of numbers) {
    bits.gap(number - before - 1);
    before = number;
  }
  const head = Buffer.alloc(4);
  head.writeUIntBE(count, 0, 3);
  head.writeUInt8(at, 3);
  return Buffer.concat([head, bits.finish()]);
}

export class KnownDigests {
  readonly #count: number;
  readonly #at: number;
  readonly #numbers: ReadonlySet<number>;

  /** Throws a ProtocolError when this is no such set: cut off, with something behind it, or with numbers too large. */
  constructor(packed: Uint8Array) {
    const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
    if (bytes.length < 4 || bytes.length > mostKnownBytes) throw fault(`${bytes.length} bytes`);
    this.#count = bytes.readUIntBE(0, 3);
    this.#at = bytes.readUInt8(3);
    if (this.#count > mostKnownDigests) throw fault(`${this.#count} digests`);
    if (this.#at >= knownPlaces) throw fault(`place ${this.#at}`);
    this.#numbers = numbersIn(bytes.subarray(4), this.#count);
  }

  /** SHA-256, hex. False: certainly not; true: but for 1 in 65,536. */
  has(digest: string): boolean {
    return this.#count > 0 && this.#numbers.has(numberOf(digest, { at: this.#at, count: this.#count }));
  }
}

/** 48 bits of the digest, brought into the range: exact in a double, and so the same on both sides. */
function numberOf(digest: string, { at, count }: { readonly at: number; readonly count: number }): number {
  const bits = Number.parseInt(digest.slice(at, at + 12), 16);
  return Math.floor((bits / 2 ** 48) * (count * 2 ** gapBits));
}

/** Two digests may have one number: there are at most `count`. */
function numbersIn(bytes: Buffer, count: number): Set<number> {
  const reader = new BitReader(bytes);
  const numbers = new Set<number>();
  const end = count * 2 ** gapBits;
  let before = -1;
  while (reader.hasMore()) {
    before += reader.gap() + 1;
    if (before >= end || numbers.size === count) throw fault("a number beyond its range");
    numbers.add(before);
  }
  return numbers;
}

const fault = (words: string) => new ProtocolError(`a set of known digests is damaged: ${words}`);

/** Whole bytes: what is left of the last one is ones, which begin a gap that never ends. */
class BitWriter {
  readonly #bytes: number[] = [];
  #byte = 0;
  #used = 0;

  gap(gap: number): void {
    for (let quotient = gap >>> gapBits; quotient > 0; quotient -= 1) this.#bit(1);
    this.#bit(0);
    for (let bit = gapBits - 1; bit >= 0; bit -= 1) this.#bit((gap >>> bit) & 1);
  }

  finish(): Buffer {
    while (this.#used !== 0) this.#bit(1);
    return Buffer.from(this.#bytes);
  }

  #bit(bit: number): void {
    this.#byte = (this.#byte << 1) | bit;
    this.#used += 1;
    if (this.#used < 8) return;
    this.#bytes.push(this.#byte);
    this.#byte = 0;
    this.#used = 0;
  }
}

class BitReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Fewer than eight ones at the end are what the last byte is filled with. */
  hasMore(): boolean {
    const left = 8 * this.#bytes.length - this.#at;
    if (left === 0) return false;
    const ones = 2 ** Math.min(left, 8) - 1;
    const isFilling = left < 8 && (this.#bytes.at(-1)! & ones) === ones;
    return !isFilling;
  }

  gap(): number {
    let quotient = 0;
    while (this.#bit() === 1) quotient += 1;
    let rest = 0;
    for (let bit = 0; bit < gapBits; bit += 1) rest = (rest << 1) | this.#bit();
    return quotient * 2 ** gapBits + rest;
  }

  #bit(): number {
    if (this.#at >= 8 * this.#bytes.length) throw fault("it is cut off");
    const bit = (this.#bytes[this.#at >>> 3]! >>> (7 - (this.#at & 7))) & 1;
    this.#at += 1;
    return bit;
  }
}

/**
 * Reads ranges straight from bytes, in the spellings that nearly all records have, some ten times as fast as
 * from text; what it does not know it leaves to registry-range.ts, which knows every spelling and says what is
 * wrong. Both give the same range wherever this one gives one.
 */
import type { Ipv4Range, Ipv6Range } from "#core/ip/range";
import { skipBlanks, skipBlanksBack } from "./text-decoding.ts";

const dot = 0x2e;
const colon = 0x3a;
const slash = 0x2f;
const dash = 0x2d;

/** The value of a digit, decimal or hexadecimal; 16 for any other byte. */
const digits = Uint8Array.from({ length: 256 }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(digit) ? 16 : digit;
});

/** Holds the range that was read last. */
export class RangeReader {
  /** IPv4, as unsigned numbers. */
  first = 0;
  last = 0;
  /** IPv6: four 32-bit words of the first address, most significant first, then four of the last. */
  readonly words = new Uint32Array(8);
  readonly #ipv4 = { family: 4 as const, first: 0xffffffff, last: 0xffffffff };
  readonly #groups = new Uint16Array(8);
  /** The position behind what was read last. */
  #at = 0;

  /**
   * `a - b`, `a/n` or one address, blanks around them; octets may have leading zeros, and a prefix may leave out
   * octets at its end (`200.3.12/22`). False for anything else, and for ranges that are none.
   */
  readIpv4(bytes: Buffer, start: number, end: number): boolean {
    const from = skipBlanks(bytes, start, end);
    const to = skipBlanksBack(bytes, from, end);
    const octets = this.#octets(bytes, from, to);
    const first = this.first;
    const next = skipBlanks(bytes, this.#at, to);
    if (bytes[next] === dash && next < to && octets === 4) {
      if (this.#octets(bytes, skipBlanks(bytes, next + 1, to), to) !== 4 || this.#at !== to) return false;
      this.last = this.first;
      this.first = first;
      return this.first <= this.last;
    }
    if (bytes[next] === slash && next < to && next === this.#at && octets > 0) {
      const length = this.#decimal(bytes, next + 1, to);
      return length >= 0 && length <= 32 && this.#setIpv4Block(first, length);
    }
    this.last = first;
    return octets === 4 && next === to;
  }

  /** `a/n` or one address, blanks around it. False for anything else. */
  readIpv6(bytes: Buffer, start: number, end: number): boolean {
    const from = skipBlanks(bytes, start, end);
    const to = skipBlanksBack(bytes, from, end);
    if (!this.#address(bytes, from, to)) return false;
    if (this.#at === to) return this.#setIpv6Block(128);
    if (bytes[this.#at] !== slash) return false;
    const length = this.#decimal(bytes, this.#at + 1, to);
    return length >= 0 && length <= 128 && this.#setIpv6Block(length);
  }

  /** One IPv4 address into `first`, blanks around it. */
  readIpv4Address(bytes: Buffer, start: number, end: number): boolean {
    const to = skipBlanksBack(bytes, start, end);
    return this.#octets(bytes, skipBlanks(bytes, start, to), to) === 4 && this.#at === to;
  }

  /** The block of that length around an IPv6 address, blanks around it; the length is from 0 to 128. */
  readIpv6Block(bytes: Buffer, start: number, end: number, length: number): boolean {
    const to = skipBlanksBack(bytes, start, end);
    if (!this.#address(bytes, skipBlanks(bytes, start, to), to) || this.#at !== to) return false;
    return this.#setIpv6Block(length);
  }

  /** What was read last; the same object with other addresses the next time. */
  get ipv4(): Ipv4Range {
    this.#ipv4.first = this.first;
    this.#ipv4.last = this.last;
    return this.#ipv4;
  }

  get ipv6(): Ipv6Range {
    return { family: 6, first: ipv6Value(this.words, 0), last: ipv6Value(this.words, 4) };
  }

  /** The number of octets from a position on; missing ones are zero in `first`. 0 when there are none. */
  #octets(bytes: Buffer, start: number, end: number): number {
    let address = 0;
    let octets = 0;
    let at = start;
    for (;;) {
      let octet = 0;
      const firstDigit = at;
      for (; at < end; at++) {
        const digit = digits[bytes[at] as number] as number;
        if (digit > 9) break;
        octet = octet * 10 + digit;
        if (at - firstDigit === 3) return 0;
      }
      if (at === firstDigit || octet > 255) return 0;
      address = (address << 8) | octet;
      octets++;
      if (at === end || bytes[at] !== dot) break;
      if (octets === 4) return 0;
      at++;
    }
    this.#at = at;
    this.first = (octets === 4 ? address : address << (8 * (4 - octets))) >>> 0;
    return octets;
  }

  /** A number of one to three digits that ends at `end`, or −1. */
  #decimal(bytes: Buffer, start: number, end: number): number {
    if (start >= end || end - start > 3) return -1;
    let value = 0;
    for (let at = start; at < end; at++) {
      const digit = digits[bytes[at] as number] as number;
      if (digit > 9) return -1;
      value = value * 10 + digit;
    }
    return value;
  }

  #setIpv4Block(address: number, length: number): true {
    const hostBits = length === 0 ? 0xffffffff : 0xffffffff >>> length;
    const hosts = length === 32 ? 0 : hostBits;
    this.first = (address & ~hosts) >>> 0;
    this.last = (address | hosts) >>> 0;
    return true;
  }

  #setIpv6Block(length: number): true {
    for (let word = 0; word < 4; word++) {
      const address = ((this.#groups[2 * word] as number) << 16) | (this.#groups[2 * word + 1] as number);
      const bits = length - 32 * word;
      const hosts = bits >= 32 ? 0 : bits <= 0 ? -1 : 0xffffffff >>> bits;
      this.words[word] = address & ~hosts;
      this.words[word + 4] = address | hosts;
    }
    return true;
  }

  /** RFC 4291 section 2.2, forms 1 and 2, into `#groups`. */
  #address(bytes: Buffer, start: number, end: number): boolean {
    const groups = this.#groups;
    let count = 0;
    /** Where `::` stood: the number of groups before it. */
    let gap = -1;
    let at = start;
    if (at + 1 < end && bytes[at] === colon && bytes[at + 1] === colon) {
      gap = 0;
      at += 2;
    }
    while (at < end && count < 8) {
      let group = 0;
      const firstDigit = at;
      for (; at < end; at++) {
        const digit = digits[bytes[at] as number] as number;
        if (digit > 15) break;
        group = group * 16 + digit;
        if (at - firstDigit === 4) return false;
      }
      if (at === firstDigit) {
        if (gap !== count) return false;
        break;
      }
      groups[count++] = group;
      if (at === end || bytes[at] !== colon) break;
      if (at + 1 < end && bytes[at + 1] === colon) {
        if (gap >= 0) return false;
        gap = count;
        at += 2;
      } else if (count === 8) return false;
      else if (at + 1 === end || (digits[bytes[at + 1] as number] as number) > 15) return false;
      else at++;
    }
    this.#at = at;
    return gap < 0 ? count === 8 : this.#closeGap(count, gap);
  }

  /** Moves the groups behind `::` to the end; the gap stands for one group or more. */
  #closeGap(count: number, gap: number): boolean {
    if (count > 7) return false;
    const groups = this.#groups;
    const behind = count - gap;
    for (let index = 1; index <= behind; index++) groups[8 - index] = groups[count - index] as number;
    for (let index = gap; index < 8 - behind; index++) groups[index] = 0;
    return true;
  }
}

/** One address of four words as a number. */
export function ipv6Value(words: Uint32Array, at: number): bigint {
  const high = (BigInt(words[at] as number) << 32n) | BigInt(words[at + 1] as number);
  const low = (BigInt(words[at + 2] as number) << 32n) | BigInt(words[at + 3] as number);
  return (high << 64n) | low;
}

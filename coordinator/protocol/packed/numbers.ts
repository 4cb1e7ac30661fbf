/** Whole numbers as bytes, seven bits each with the lowest first (LEB128), and short runs of bytes between them. */
import { ProtocolError } from "#core/errors";

export class NumberWriter {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  number(value: number): void {
    let left = value;
    while (left >= 0x80) {
      this.#put((left % 0x80) + 0x80);
      left = Math.floor(left / 0x80);
    }
    this.#put(left);
  }

  bytes(bytes: Buffer): void {
    this.#reserve(bytes.length);
    bytes.copy(this.#bytes, this.#length);
    this.#length += bytes.length;
  }

  cutTo(length: number): void {
    this.#length = Math.min(length, this.#length);
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #put(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = byte;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    this.#bytes = Buffer.concat([this.#bytes], 2 * (this.#bytes.length + count));
  }
}

export class NumberReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 53; scale *= 0x80) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new ProtocolError("packed numbers end too early");
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return checked(value);
    }
    throw new ProtocolError("a packed number is too large");
  }

  bytes(count: number): Buffer {
    if (count > this.#bytes.length - this.#at) throw new ProtocolError("packed numbers end too early");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  rest(): Buffer {
    return this.bytes(this.#bytes.length - this.#at);
  }
}

function checked(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw new ProtocolError("a packed number is too large");
}

// Entropy-codes numbers with a binary range coder as in LZMA (I. Pavlov, LZMA specification, 2015), mixed with symbols of
// known frequency. A chance is the probability of a 0 in units of 1/2048. Each coded bit adapts it in encoder and decoder
// alike. Departures from LZMA: all numbers stay below 2^31, so that the engine keeps them in registers; a carry is added to
// the bytes already written; and trailing zeros are not sent.

const chanceBits = 11;
const evenChance = 1 << (chanceBits - 1);

/** A chance adapts by 1/16 of the difference. Records are short, so this is faster than LZMA's 1/32. */
const moveBits = 4;

/** `low` and `range` have 31 bits. A byte is written once the range has at most 23. */
const whole = 2 ** 31;

const wholeMask = 0x7fffffff;
const top = 2 ** 23;

/** How many bytes a decoder reads before the first symbol. */
const lastBytes = 4;

/** Maximum number of trailing zeros that are not sent. A decoder reads one byte more than an encoder writes. */
const unsentZeros = lastBytes - 1;

/** Results packed by earlier releases omit one zero more, and some may still be on a crawler's disk. */
const missingBytes = lastBytes + 1;

export function freshChances(count: number): Uint16Array {
  return new Uint16Array(count).fill(evenChance);
}

export class RangeEncoder {
  #low = 0;
  #range = wholeMask;
  #bytes = Buffer.allocUnsafe(1024);
  #length = 0;

  /** Codes one bit under the chance at index `at`. */
  bit(chances: Uint16Array, at: number, bit: number): void {
    const chance = chances[at]!;
    const bound = (this.#range >> chanceBits) * chance;
    if (bit === 0) {
      chances[at] = chance + (((1 << chanceBits) - chance) >> moveBits);
      this.#narrow(0, bound);
    } else {
      chances[at] = chance - (chance >> moveBits);
      this.#narrow(bound, this.#range - bound);
    }
  }

  /** Codes `count` bits (at most 16) with equal probability. */
  bits(value: number, count: number): void {
    this.symbol(value, 1, 1 << count);
  }

  /** Codes the symbol whose frequency is `size` of `total` (at most 2^20), after a cumulative `start`. */
  symbol(start: number, size: number, total: number): void {
    const unit = (this.#range / total) | 0;
    this.#narrow(start * unit, size * unit);
  }

  /** Returns all bytes; nothing can be added afterwards. */
  finish(): Buffer {
    // Of the numbers that decode alike, this chooses one whose last three bytes are zero.
    this.#narrow((top - (this.#low % top)) % top, 1);
    const shortest = Math.max(0, this.#length - unsentZeros);
    while (this.#length > shortest && this.#bytes[this.#length - 1] === 0) this.#length--;
    return this.#bytes.subarray(0, this.#length);
  }

  #narrow(start: number, size: number): void {
    let low = this.#low + start;
    let range = size;
    if (low >= whole) {
      low -= whole;
      this.#carry();
    }
    while (range < top) {
      this.#put(low >> 23);
      low = (low << 8) & wholeMask;
      range <<= 8;
    }
    this.#low = low;
    this.#range = range;
  }

  #carry(): void {
    let at = this.#length - 1;
    while (this.#bytes[at] === 0xff) this.#bytes[at--] = 0;
    this.#bytes[at]!++;
  }

  #put(byte: number): void {
    if (this.#length === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], 2 * this.#length);
    this.#bytes[this.#length++] = byte;
  }
}

export class RangeDecoder {
  readonly #bytes: Uint8Array;
  #at = 0;
  #code = 0;
  #oddBit = 0;
  #range = wholeMask;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    for (let count = 0; count < lastBytes; count++)
      this.#code = ((this.#code << 8) | this.#next()) & wholeMask;
  }

  bit(chances: Uint16Array, at: number): number {
    const chance = chances[at]!;
    const bound = (this.#range >> chanceBits) * chance;
    if (this.#code < bound) {
      chances[at] = chance + (((1 << chanceBits) - chance) >> moveBits);
      this.#narrow(0, bound);
      return 0;
    }
    chances[at] = chance - (chance >> moveBits);
    this.#narrow(bound, this.#range - bound);
    return 1;
  }

  bits(count: number): number {
    const value = this.place(1 << count);
    this.take(value, 1, 1 << count);
    return value;
  }

  /** Returns the cumulative frequency of the next symbol. The caller must then call `take` with that symbol. */
  place(total: number): number {
    const unit = (this.#range / total) | 0;
    return Math.min(total - 1, (this.#code / unit) | 0);
  }

  take(start: number, size: number, total: number): void {
    const unit = (this.#range / total) | 0;
    this.#narrow(start * unit, size * unit);
  }

  #narrow(start: number, size: number): void {
    let code = this.#code - start;
    let range = size;
    while (range < top) {
      code = ((code << 8) | this.#next()) & wholeMask;
      range <<= 8;
    }
    this.#code = code;
    this.#range = range;
  }

  /** Reads eight bits across two bytes, because the code has 31 bits and starts at a byte boundary. */
  #next(): number {
    const at = this.#at++;
    if (at >= this.#bytes.length + missingBytes) throw new ProtocolError("packed numbers end too early");
    const byte = at < this.#bytes.length ? this.#bytes[at]! : 0;
    const bits = (this.#oddBit << 7) | (byte >> 1);
    this.#oddBit = byte & 1;
    return bits;
  }
}

// Texts that are numbers or bytes; each form restores them exactly. Deflate cannot shorten a digest, and a time takes more as
// compressed text than as its number.

/** Whether the text is lower-case hex of 8 to 64 whole bytes (digests, hashes). */
export function isHex(text: string): boolean {
  return text.length >= 16 && text.length <= 128 && text.length % 2 === 0 && /^[0-9a-f]+$/.test(text);
}

/** Whether the text is a decimal number without sign and leading zeros (ids). */
export function isDecimal(text: string): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(text);
}

/** Returns the milliseconds of `2026-11-22T08:30:00.000Z` since 1970, or null for any other text. */
export function instantOf(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)) return null;
  const ms = Date.parse(text);
  return ms >= 0 && instantText(ms) === text ? ms : null;
}

export function instantText(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** Returns the seconds of an HTTP date (RFC 9110 section 5.6.7, preferred form) since 1970, or null for any other text. */
export function httpDateOf(text: string): number | null {
  if (text.length !== 29 || !text.endsWith(" GMT")) return null;
  const ms = Date.parse(text);
  return ms >= 0 && httpDateText(ms / 1000) === text ? ms / 1000 : null;
}

export function httpDateText(seconds: number): string | null {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? null : date.toUTCString();
}

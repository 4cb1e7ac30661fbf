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

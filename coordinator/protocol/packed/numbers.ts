/** Whole numbers as bytes, seven bits each with the lowest first (LEB128), and short runs of bytes between them. */
import { ProtocolError } from "#core/errors";

export class NumberWriter {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** 0 to 2^53 - 1. */
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

  /** Forgets what was written after this length. */
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

/** Throws ProtocolError when what is asked for is not there. */
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

/** A row of bits: numbers of any width one after the other, the most significant bit first. */

export class BitWriter {
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
export class BitReader {
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

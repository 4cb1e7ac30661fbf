/**
 * The texts of records that wait to be interned, hundreds at once: looking one up in a large pool is mostly waiting for
 * memory, and the waits of many overlap (TextPool.internMany). They are copied out of the reader's memory.
 */
import type { TextPool } from "#core/text-pool";
import type { TextBytes } from "../formats/text-decoding.ts";

const firstBytes = 64 * 1024;

export class PendingTexts {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #length = 0;
  readonly #ends: Int32Array;
  readonly #ids: Int32Array;
  #count = 0;

  /** Room for so many texts. */
  constructor(mostTexts: number) {
    this.#ends = new Int32Array(mostTexts);
    this.#ids = new Int32Array(mostTexts);
  }

  /** The text's number among those that wait. */
  add({ bytes, start, end }: TextBytes): number {
    this.#makeRoom(end - start);
    const here = this.#bytes;
    let to = this.#length;
    for (let at = start; at < end; at += 1) here[to++] = bytes[at] as number;
    return this.#end(to);
  }

  addText(text: string): number {
    this.#makeRoom(3 * text.length);
    return this.#end(this.#length + this.#bytes.write(text, this.#length));
  }

  /** The ids of those that waited, by their numbers, until the next time; none waits any more. */
  intern(texts: TextPool): Int32Array {
    texts.internMany(this.#bytes, this.#ends, this.#ids, this.#count);
    this.#count = 0;
    this.#length = 0;
    return this.#ids;
  }

  #end(length: number): number {
    this.#length = length;
    this.#ends[this.#count] = length;
    return this.#count++;
  }

  #makeRoom(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + bytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/**
 * Numbers for words: each lexeme, as bytes, gets the next one and keeps it. All of them lie in one buffer, so that ten
 * million cost neither a string nor an entry of a Map each: 12 bytes and their letters.
 */

const firstSlots = 1 << 12;

export class TermTable {
  #bytes = new Uint8Array(1 << 16);
  #used = 0;
  /** Where each word begins; it ends where the next begins. */
  #starts = new Uint32Array(1 << 11);
  #count = 0;
  end = 0;
  /** Open addressing: number + 1, or 0. */
  #slots = new Uint32Array(firstSlots);

  get count(): number {
    return this.#count;
  }

  get byteLength(): number {
    return this.#bytes.byteLength + this.#starts.byteLength + this.#slots.byteLength;
  }

  /**
   * The number of the word that begins at `from` and ends before a 0, given to it now where it has none. Where it ended is in
   * `end` then: words are read once, for their end and their hash.
   */
  add(buffer: Uint8Array, from: number): number {
    let hash = firstHash;
    let to = from;
    for (; to < buffer.length && buffer[to] !== 0; to++) hash = Math.imul(hash ^ buffer[to]!, hashFactor);
    hash = mixed(hash);
    this.end = to;
    const slot = this.#slotOf(buffer, from, to, hash);
    const known = this.#slots[slot]!;
    if (known !== 0) return known - 1;
    this.#append(buffer, from, to);
    this.#slots[slot] = this.#count;
    if (2 * this.#count > this.#slots.length) this.#widen();
    return this.#count - 1;
  }

  /** -1: no such word. */
  find(word: string): number {
    const bytes = encoder.encode(word);
    return this.#slots[this.#slotOf(bytes, 0, bytes.length, hashOf(bytes, 0, bytes.length))]! - 1;
  }

  #slotOf(buffer: Uint8Array, from: number, to: number, hash: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const known = this.#slots[slot]!;
      if (known === 0 || this.#isSame(known - 1, buffer, from, to)) return slot;
    }
  }

  #isSame(number: number, buffer: Uint8Array, from: number, to: number): boolean {
    const start = this.#starts[number]!;
    const end = number + 1 === this.#count ? this.#used : this.#starts[number + 1]!;
    if (end - start !== to - from) return false;
    const bytes = this.#bytes;
    for (let at = start, other = from; at < end; at++, other++) if (bytes[at] !== buffer[other]) return false;
    return true;
  }

  #append(buffer: Uint8Array, from: number, to: number): void {
    if (this.#count === this.#starts.length) this.#starts = grown(this.#starts, 2 * this.#count);
    const needed = this.#used + to - from;
    if (needed > this.#bytes.length)
      this.#bytes = grown(this.#bytes, Math.max(needed, 2 * this.#bytes.length));
    this.#starts[this.#count] = this.#used;
    for (let at = from; at < to; at++) this.#bytes[this.#used++] = buffer[at]!;
    this.#count += 1;
  }

  #widen(): void {
    const slots = new Uint32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#count; number++) {
      const end = number + 1 === this.#count ? this.#used : this.#starts[number + 1]!;
      let slot = hashOf(this.#bytes, this.#starts[number]!, end) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }
}

const encoder = new TextEncoder();

/** FNV-1a, its high bits mixed into the low ones, which choose the slot. */
const firstHash = 0x811c9dc5;
const hashFactor = 0x01000193;

const mixed = (hash: number): number => (hash ^ (hash >>> 15)) >>> 0;

function hashOf(buffer: Uint8Array, from: number, to: number): number {
  let hash = firstHash;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ buffer[at]!, hashFactor);
  return mixed(hash);
}

type Numbers =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

export function grown<T extends Numbers>(numbers: T, length: number): T {
  const larger = new (numbers.constructor as new (length: number) => T)(length);
  larger.set(numbers);
  return larger;
}

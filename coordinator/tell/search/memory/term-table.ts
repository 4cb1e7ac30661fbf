/**
 * Numbers for words: each lexeme gets the next number and keeps it. A word is identified by 64 bits of hash, like
 * URLs, seeded at random so that nobody can construct two words that share them. A look-up takes one memory access;
 * comparing letters would take two more.
 */

/** The parts of a slot: both halves of the hash, and the number + 1 (0: free). */
const slotNumbers = 3;

const firstSlots = 1 << 12;

export class TermTable {
  readonly #seed: number;
  #count = 0;
  #slots = new Uint32Array(slotNumbers * firstSlots);
  #mask = firstSlots - 1;
  /** The other half of the last hash. */
  #second = 0;
  /** Where the word that was added last ends. */
  end = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  get count(): number {
    return this.#count;
  }

  get byteLength(): number {
    return this.#slots.byteLength;
  }

  /** Returns the number of the word that begins at `from` and ends before a 0, assigning one if it is new. */
  add(buffer: Uint8Array, from: number): number {
    const first = this.#hash(buffer, from);
    const at = this.#slotOf(first, this.#second);
    const known = this.#slots[at + 2]!;
    if (known !== 0) return known - 1;
    this.#slots[at] = first;
    this.#slots[at + 1] = this.#second;
    this.#count += 1;
    this.#slots[at + 2] = this.#count;
    if (2 * this.#count > this.#mask) this.#widen();
    return this.#count - 1;
  }

  /** -1: no such word. */
  find(word: string): number {
    const first = this.#hash(encoder.encode(word), 0);
    return this.#slots[this.#slotOf(first, this.#second) + 2]! - 1;
  }

  #slotOf(first: number, second: number): number {
    const slots = this.#slots;
    for (let slot = first & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = slotNumbers * slot;
      if (slots[at + 2] === 0 || (slots[at] === first && slots[at + 1] === second)) return at;
    }
  }

  /** FNV-1a and a sum of another kind, both mixed at the end so that each bit depends on all. */
  #hash(buffer: Uint8Array, from: number): number {
    let first = 0x811c9dc5 ^ this.#seed;
    let second = Math.imul(this.#seed, 0x9e3779b1);
    let at = from;
    for (; at < buffer.length; at++) {
      const byte = buffer[at]!;
      if (byte === 0) break;
      first = Math.imul(first ^ byte, 0x01000193);
      second = Math.imul((second << 5) ^ (second >>> 27) ^ byte, 0x85ebca6b);
    }
    this.end = at;
    this.#second = mixed(second);
    return mixed(first);
  }

  #widen(): void {
    const former = this.#slots;
    this.#mask = 2 * this.#mask + 1;
    this.#slots = new Uint32Array(slotNumbers * (this.#mask + 1));
    for (let from = 0; from < former.length; from += slotNumbers) {
      if (former[from + 2] === 0) continue;
      const at = this.#slotOf(former[from]!, former[from + 1]!);
      this.#slots.set(former.subarray(from, from + slotNumbers), at);
    }
  }
}

const encoder = new TextEncoder();

function mixed(hash: number): number {
  const some = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  const more = Math.imul(some ^ (some >>> 15), 0x846ca68b);
  return (more ^ (more >>> 16)) >>> 0;
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

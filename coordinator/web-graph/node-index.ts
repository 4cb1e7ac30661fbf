/**
 * Numbers for the nodes of the web graph: a URL's two hashes → 0, 1, 2, … in the order of their arrival. A table of
 * slots with linear probing at most half full; 24 bytes a node and no object for any of them.
 */
import { mix32 } from "#core/random";

const firstCapacity = 1024;
/** Slots are numbers of 32 bits, and arrays double. */
export const mostNodes = 2 ** 28;

export class NodeIndex {
  /** Of each node: the host's hash, the URL's hash, each with the higher half first. */
  #keys = new Int32Array(4 * firstCapacity);
  /** Node + 1; 0: free. */
  #slots = new Int32Array(2 * firstCapacity);
  #size = 0;
  readonly #seed: number;

  /** `seed` keeps those who choose their URLs from choosing the slots. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  get size(): number {
    return this.#size;
  }

  /** Of all nodes, four numbers each: halves of the host's hash and of the URL's. */
  get keys(): Int32Array {
    return this.#keys.subarray(0, 4 * this.#size);
  }

  /** The node's number; a new one for hashes that are not known. Throws RangeError beyond `mostNodes`. */
  add(hostHigh: number, hostLow: number, urlHigh: number, urlLow: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const keys = this.#keys;
    let slot = mix32(urlLow ^ this.#seed) & mask;
    for (let entry = slots[slot]!; entry !== 0; entry = slots[slot]!) {
      const at = 4 * (entry - 1);
      if (
        keys[at + 3] === urlLow &&
        keys[at + 2] === urlHigh &&
        keys[at + 1] === hostLow &&
        keys[at] === hostHigh
      )
        return entry - 1;
      slot = (slot + 1) & mask;
    }
    if (2 * (this.#size + 1) > slots.length) {
      this.#grow();
      return this.add(hostHigh, hostLow, urlHigh, urlLow);
    }
    const node = this.#size++;
    keys[4 * node] = hostHigh;
    keys[4 * node + 1] = hostLow;
    keys[4 * node + 2] = urlHigh;
    keys[4 * node + 3] = urlLow;
    slots[slot] = node + 1;
    return node;
  }

  #grow(): void {
    if (this.#size >= mostNodes) throw new RangeError(`the graph has more than ${mostNodes} nodes`);
    const keys = new Int32Array(2 * this.#keys.length);
    keys.set(this.#keys);
    this.#keys = keys;
    this.#slots = new Int32Array(2 * this.#slots.length);
    const mask = this.#slots.length - 1;
    for (let node = 0; node < this.#size; node++) {
      let slot = mix32(keys[4 * node + 3]! ^ this.#seed) & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = node + 1;
    }
  }
}

import { mix32 } from "#core/random";

/**
 * A directed graph in typed arrays by target (compressed sparse columns). It has the sources of each node's incoming
 * links, which ranking reads. Links of a node to itself are excluded.
 */

export interface LinkGraph {
  readonly nodes: number;
  /** Number of links, without links of nodes to themselves. */
  readonly links: number;
  readonly selfLinks: number;
  /** Where each node's sources start in `sources`, and at last where they end. */
  readonly starts: Uint32Array;
  readonly sources: Uint32Array;
  /** Weights of the links in `sources`; null if each counts 1. */
  readonly weights: Float64Array | null;
  /** Number of links from each node; with weights, their sum. */
  readonly outWeights: Float64Array | Uint32Array;
}

interface GivenLinks {
  readonly nodes: number;
  readonly from: Uint32Array;
  readonly to: Uint32Array;
  /** Weights are positive. Those of repeated links are added up. Default: 1. */
  readonly weights?: Float64Array;
}

/** Sorts links by target in linear time and memory. Throws a RangeError for an unknown node. */
export function linkGraph({ nodes, from, to, weights }: GivenLinks): LinkGraph {
  const starts = new Uint32Array(nodes + 1);
  const outWeights = weights ? new Float64Array(nodes) : new Uint32Array(nodes);
  let selfLinks = 0;
  for (let link = 0; link < from.length; link++) {
    const [source, target] = [from[link]!, to[link]!];
    if (source >= nodes || target >= nodes) {
      throw new RangeError(`link ${link} is from node ${source} to ${target}, and there are ${nodes}`);
    }
    if (source === target) selfLinks += 1;
    else {
      starts[target + 1]! += 1;
      outWeights[source]! += weights ? weights[link]! : 1;
    }
  }
  for (let node = 0; node < nodes; node++) starts[node + 1]! += starts[node]!;
  const links = from.length - selfLinks;
  const sources = new Uint32Array(links);
  const sorted = weights ? new Float64Array(links) : null;
  const next = starts.slice(0, nodes);
  for (let link = 0; link < from.length; link++) {
    const target = to[link]!;
    if (from[link] === target) continue;
    const at = next[target]!++;
    sources[at] = from[link]!;
    if (sorted) sorted[at] = weights![link]!;
  }
  return { nodes, links, selfLinks, starts, sources, weights: sorted, outWeights };
}

/** Number of links to each node, except its own. */
export function inDegrees({ nodes, starts }: LinkGraph): Uint32Array {
  const degrees = new Uint32Array(nodes);
  for (let node = 0; node < nodes; node++) degrees[node] = starts[node + 1]! - starts[node]!;
  return degrees;
}

/** A list of links between node numbers, at 8 bytes each. It grows as needed. */

const firstCapacity = 4096;

export class LinkList {
  #from = new Uint32Array(firstCapacity);
  #to = new Uint32Array(firstCapacity);
  #count = 0;

  add(from: number, to: number): void {
    if (this.#count === this.#from.length) this.#grow();
    this.#from[this.#count] = from;
    this.#to[this.#count] = to;
    this.#count += 1;
  }

  get count(): number {
    return this.#count;
  }

  get from(): Uint32Array {
    return this.#from.subarray(0, this.#count);
  }

  get to(): Uint32Array {
    return this.#to.subarray(0, this.#count);
  }

  /** Grows by half, so that less than twice the memory is allocated. */
  #grow(): void {
    const capacity = Math.ceil(1.5 * this.#from.length);
    const [from, to] = [new Uint32Array(capacity), new Uint32Array(capacity)];
    from.set(this.#from);
    to.set(this.#to);
    this.#from = from;
    this.#to = to;
  }
}

// Numbers nodes (a URL's two hashes) in order of arrival. A table with open addressing and linear probing, at most
// half full, which takes 24 bytes per node and no objects.

const firstIndexCapacity = 1024;

/** Maximum number of nodes, since slots are 32-bit numbers and arrays double. */
const mostNodes = 2 ** 28;

export class NodeIndex {
  /** The host's hash and the URL's hash of each node, with the higher half of each first. */
  #keys = new Int32Array(4 * firstIndexCapacity);
  /** The node's number + 1; 0 if the slot is free. */
  #slots = new Int32Array(2 * firstIndexCapacity);
  #size = 0;
  readonly #seed: number;

  /** `seed` keeps owners of URLs from choosing slots. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  get size(): number {
    return this.#size;
  }

  /** Four numbers per node: the halves of the host's hash and of the URL's hash. */
  get keys(): Int32Array {
    return this.#keys.subarray(0, 4 * this.#size);
  }

  /** Returns the node's number, which is a new one for unknown hashes. Throws a RangeError beyond `mostNodes`. */
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

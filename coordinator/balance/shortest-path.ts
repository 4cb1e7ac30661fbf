/**
 * The cheapest way for load from one node to another with too little: Dijkstra's, which stops at the first it reaches. It
 * costs what lies nearer than that one, whatever the size of the fleet: a crawler hands on to those that anything of its
 * own can go to, and what was touched is all that is cleared for the next search.
 */
import { KeyedHeap } from "#core/small-collections";
import type { ExchangeRates } from "./candidate-arcs.ts";

export interface Way {
  /** Crawlers by index; the number of crawlers stands for room. */
  readonly nodes: readonly number[];
  /** What is handed from each node to the next; -1 from or to room. */
  readonly subnets: readonly number[];
}

/** What the search reads, and `prices`, which it adjusts. All arrays belong to the flow. */
interface FlowState {
  /** Per crawler, and of room. */
  readonly prices: Float64Array;
  readonly excess: Float64Array;
  readonly carried: Float64Array;
  readonly capacities: Float64Array;
  readonly rates: Pick<ExchangeRates, "makeFor" | "neighboursOf" | "leastMs" | "subnetFor">;
  readonly dust: number;
}

export class WayFinder {
  readonly #state: FlowState;
  /** The index of room: the number of crawlers. */
  readonly #room: number;
  readonly #distance: Float64Array;
  readonly #previous: Int32Array;
  readonly #isDone: Uint8Array;
  #done: number[] = [];
  /** Nodes with a distance, so that these are cleared alone. */
  #touched: number[] = [];
  /** By distance, of equal ones the smallest node; a node that came nearer since stands in it twice. */
  readonly #waiting = new KeyedHeap();

  constructor(state: FlowState) {
    const nodes = state.prices.length;
    this.#state = state;
    this.#room = nodes - 1;
    this.#distance = new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
    this.#previous = new Int32Array(nodes);
    this.#isDone = new Uint8Array(nodes);
  }

  /** Where the last search came through. */
  get reached(): readonly number[] {
    return this.#done;
  }

  /** Null when no node with too little can be reached. Prices stay such that no exchange saves anything. */
  find(from: number): Way | null {
    this.#clear();
    this.#come(from, 0, -1);
    for (let node = this.#nearest(); node >= 0; node = this.#nearest()) {
      if (this.#state.excess[node]! < -this.#state.dust) {
        this.#adjustPrices(this.#distance[node]!);
        return this.#wayTo(node);
      }
      this.#isDone[node] = 1;
      this.#done.push(node);
      if (node === this.#room) this.#relaxFromRoom();
      else this.#relaxFrom(node);
    }
    return null;
  }

  #clear(): void {
    for (const node of this.#touched) {
      this.#distance[node] = Number.POSITIVE_INFINITY;
      this.#isDone[node] = 0;
    }
    this.#touched = [];
    this.#done = [];
    this.#waiting.clear();
  }

  #nearest(): number {
    for (;;) {
      const node = this.#waiting.top;
      if (node < 0) return -1;
      this.#waiting.removeTop();
      if (this.#isDone[node] === 0) return node;
    }
  }

  #relaxFrom(node: number): void {
    const { prices, rates, carried, capacities, dust } = this.#state;
    rates.makeFor(node);
    const row = node * this.#room;
    const start = this.#distance[node]! - prices[node]!;
    for (const to of rates.neighboursOf(node)) this.#relax(node, to, start + rates.leastMs[row + to]!);
    if (capacities[node]! - carried[node]! > dust) this.#relax(node, this.#room, start);
  }

  #relaxFromRoom(): void {
    const { prices, carried, dust } = this.#state;
    const start = this.#distance[this.#room]! - prices[this.#room]!;
    for (let to = 0; to < this.#room; to++) {
      if (carried[to]! > dust) this.#relax(this.#room, to, start);
    }
  }

  /** `length` is without the price of the end. */
  #relax(from: number, to: number, length: number): void {
    const distance = Math.max(this.#distance[from]!, length + this.#state.prices[to]!);
    if (!(distance < this.#distance[to]!) || this.#isDone[to] === 1) return;
    this.#come(to, distance, from);
  }

  #come(to: number, distance: number, from: number): void {
    if (this.#distance[to] === Number.POSITIVE_INFINITY) this.#touched.push(to);
    this.#distance[to] = distance;
    this.#previous[to] = from;
    this.#waiting.add(to, distance);
  }

  /** Whoever is nearer than the end gets dearer by the difference: exchanges along the way then cost nothing more. */
  #adjustPrices(end: number): void {
    const { prices } = this.#state;
    for (const node of this.#done) prices[node]! += end - this.#distance[node]!;
  }

  /**
   * A subnet that would go through a crawler goes straight on: the same cost but for rounding, and otherwise what the
   * crawler happens to hold of it is all that can be handed on at a time, over and over.
   */
  #wayTo(end: number): Way {
    const nodes = [end];
    const subnets: number[] = [];
    for (let to = end; this.#previous[to]! >= 0; to = this.#previous[to]!) {
      const from = this.#previous[to]!;
      const subnet = from === this.#room || to === this.#room ? -1 : this.#state.rates.subnetFor(from, to);
      if (subnet >= 0 && subnet === subnets.at(-1)) nodes[nodes.length - 1] = from;
      else {
        nodes.push(from);
        subnets.push(subnet);
      }
    }
    return { nodes: nodes.reverse(), subnets: subnets.reverse() };
  }
}

/** The cheapest way for load from one node to another with too little: Dijkstra's, which stops at the first it reaches. */
import type { ExchangeRates } from "./candidate-arcs.ts";

export interface Way {
  /** Crawlers by index; the number of crawlers stands for room. */
  readonly nodes: readonly number[];
  /** What is handed from each node to the next; -1 from or to room. */
  readonly subnets: readonly number[];
}

/** What the search reads, and `prices`, which it adjusts. All arrays belong to the flow. */
export interface FlowState {
  /** Per crawler, and of room. */
  readonly prices: Float64Array;
  readonly excess: Float64Array;
  readonly carried: Float64Array;
  readonly capacities: Float64Array;
  readonly rates: ExchangeRates;
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

  constructor(state: FlowState) {
    const nodes = state.prices.length;
    this.#state = state;
    this.#room = nodes - 1;
    this.#distance = new Float64Array(nodes);
    this.#previous = new Int32Array(nodes);
    this.#isDone = new Uint8Array(nodes);
  }

  /** Where the last search came through. */
  get reached(): readonly number[] {
    return this.#done;
  }

  /** Null when no node with too little can be reached. Prices stay such that no exchange saves anything. */
  find(from: number): Way | null {
    this.#distance.fill(Number.POSITIVE_INFINITY);
    this.#isDone.fill(0);
    this.#done = [];
    this.#distance[from] = 0;
    this.#previous[from] = -1;
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

  #nearest(): number {
    let nearest = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let node = 0; node <= this.#room; node++) {
      if (this.#isDone[node] === 1 || this.#distance[node]! >= least) continue;
      least = this.#distance[node]!;
      nearest = node;
    }
    return nearest;
  }

  #relaxFrom(node: number): void {
    const { prices, rates, carried, capacities, dust } = this.#state;
    rates.makeFor(node);
    const row = node * this.#room;
    const start = this.#distance[node]! - prices[node]!;
    const [isDone, distances, leastMs, soFar] = [
      this.#isDone,
      this.#distance,
      rates.leastMs,
      this.#distance[node]!,
    ];
    for (let to = 0; to < this.#room; to++) {
      const distance = Math.max(soFar, start + leastMs[row + to]! + prices[to]!);
      if (!(distance < distances[to]!) || isDone[to] === 1) continue;
      distances[to] = distance;
      this.#previous[to] = node;
    }
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
    this.#distance[to] = distance;
    this.#previous[to] = from;
  }

  /** Whoever is nearer than the end gets dearer by the difference: exchanges along the way then cost nothing more. */
  #adjustPrices(end: number): void {
    const { prices } = this.#state;
    for (const node of this.#done) prices[node]! += end - this.#distance[node]!;
  }

  #wayTo(end: number): Way {
    const nodes = [end];
    const subnets: number[] = [];
    for (let to = end; this.#previous[to]! >= 0; to = this.#previous[to]!) {
      const from = this.#previous[to]!;
      nodes.push(from);
      subnets.push(from === this.#room || to === this.#room ? -1 : this.#state.rates.subnetFor(from, to));
    }
    return { nodes: nodes.reverse(), subnets: subnets.reverse() };
  }
}

/**
 * An independent solver to check the product's against: successive shortest paths by Bellman and Ford's, without
 * prices, samples or candidates, over a matrix of all costs. Exact, slow, and 20 bytes for every pair.
 */
import { IndexHeap } from "./index-heap.ts";

/** Crawlers and subnets by index. The capacities together hold the loads. */
export interface DenseProblem {
  readonly capacities: Float64Array;
  readonly loads: Float64Array;
  /** Cost of a unit of subnet s at crawler c: `costs[s * crawlers + c]`. */
  readonly costs: Float64Array;
  /** Where each subnet is now, which it prefers among equals; -1 for nowhere. */
  readonly origins: Int32Array;
}

interface Path {
  /** From the crawler that is over to the one with room. */
  readonly crawlers: readonly number[];
  /** The subnet that each edge hands on. */
  readonly subnets: readonly number[];
}

export class DenseFlow {
  readonly #problem: DenseProblem;
  readonly #size: number;
  /** How much of subnet s crawler c holds: `held[s * crawlers + c]`. */
  readonly #held: Float64Array;
  /** What each crawler may still take; negative when it is over. */
  readonly #room: Float64Array;
  /** For each edge a * size + b the subnets of a, cheapest first; made when a path first reaches a. */
  readonly #edges: (IndexHeap | undefined)[];
  /** What `#edges` has on top, and its cost: the search reads these. A row is stale once its crawler gave or took. */
  readonly #cheapestSubnet: Int32Array;
  readonly #cheapestCost: Float64Array;
  readonly #isStale: Uint8Array;
  /** Less than this is nothing: rounding errors of sums of loads. */
  readonly #dust: number;

  constructor(problem: DenseProblem) {
    const { capacities, loads, origins } = problem;
    this.#problem = problem;
    this.#size = capacities.length;
    this.#held = new Float64Array(loads.length * capacities.length);
    this.#room = capacities.slice();
    this.#edges = new Array(capacities.length ** 2);
    this.#cheapestSubnet = new Int32Array(capacities.length ** 2).fill(-1);
    this.#cheapestCost = new Float64Array(capacities.length ** 2).fill(Number.POSITIVE_INFINITY);
    this.#isStale = new Uint8Array(capacities.length).fill(1);
    this.#dust =
      1e-9 *
      Math.max(
        1,
        loads.reduce((sum, load) => Math.max(sum, load), 0),
      );
    loads.forEach((load, subnet) => {
      const crawler = this.#cheapest(subnet, origins[subnet] as number);
      this.#held[subnet * this.#size + crawler] = load;
      this.#room[crawler] = (this.#room[crawler] as number) - load;
    });
  }

  /** Moves load until nobody is over, or nobody has room. */
  relieve(): void {
    for (let path = this.#shortestPath(); path !== null; path = this.#shortestPath()) this.#push(path);
  }

  /** Load × cost over everything as it lies. */
  get cost(): number {
    return this.#held.reduce((sum, held, at) => sum + held * (this.#problem.costs[at] as number), 0);
  }

  /** The crawlers that hold a part of the subnet; its cheapest when it has no load at all. */
  holdersOf(subnet: number): number[] {
    const holders: number[] = [];
    for (let crawler = 0; crawler < this.#size; crawler += 1) {
      if (this.#holds(crawler, subnet)) holders.push(crawler);
    }
    return holders.length > 0 ? holders : [this.#cheapest(subnet, this.#problem.origins[subnet] as number)];
  }

  #cheapest(subnet: number, origin: number): number {
    let best = Math.max(0, origin);
    for (let crawler = 0; crawler < this.#size; crawler += 1) {
      if (this.#cost(subnet, crawler) < this.#cost(subnet, best)) best = crawler;
    }
    return best;
  }

  #cost(subnet: number, crawler: number): number {
    return this.#problem.costs[subnet * this.#size + crawler] as number;
  }

  #holds(crawler: number, subnet: number): boolean {
    return (this.#held[subnet * this.#size + crawler] as number) > this.#dust;
  }

  /** Bellman and Ford's, from every crawler that is over at once: edges may be negative once load has flowed. */
  #shortestPath(): Path | null {
    const distance = new Float64Array(this.#size).fill(Number.POSITIVE_INFINITY);
    const previous = new Int32Array(this.#size).fill(-1);
    let reached: number[] = [];
    this.#room.forEach((room, crawler) => {
      if (room >= -this.#dust) return;
      distance[crawler] = 0;
      reached.push(crawler);
    });
    for (let round = 0; round < this.#size && reached.length > 0; round += 1) {
      const nearer = new Set<number>();
      for (const from of reached) this.#relax(from, distance, previous, nearer);
      reached = [...nearer].sort((a, b) => a - b);
    }
    return this.#pathTo(this.#nearestWithRoom(distance), previous);
  }

  #relax(from: number, distance: Float64Array, previous: Int32Array, nearer: Set<number>): void {
    if (this.#isStale[from] === 1) this.#refresh(from);
    const start = distance[from] as number;
    const row = from * this.#size;
    for (let to = 0; to < this.#size; to += 1) {
      const length = start + (this.#cheapestCost[row + to] as number);
      if (length >= (distance[to] as number) - 1e-9 || length === Number.POSITIVE_INFINITY) continue;
      distance[to] = length;
      previous[to] = from;
      nearer.add(to);
    }
  }

  #refresh(from: number): void {
    if (this.#edges[from * this.#size + ((from + 1) % this.#size)] === undefined) this.#makeEdges(from);
    for (let to = 0; to < this.#size; to += 1) {
      const edge = from * this.#size + to;
      const subnet = to === from ? -1 : this.#cheapestOnEdge(from, to);
      this.#cheapestSubnet[edge] = subnet;
      this.#cheapestCost[edge] =
        subnet < 0 ? Number.POSITIVE_INFINITY : this.#cost(subnet, to) - this.#cost(subnet, from);
    }
    this.#isStale[from] = 0;
  }

  #nearestWithRoom(distance: Float64Array): number {
    let nearest = -1;
    for (let crawler = 0; crawler < this.#size; crawler += 1) {
      if ((this.#room[crawler] as number) <= this.#dust || distance[crawler] === Number.POSITIVE_INFINITY)
        continue;
      if (nearest < 0 || (distance[crawler] as number) < (distance[nearest] as number)) nearest = crawler;
    }
    return nearest;
  }

  #pathTo(end: number, previous: Int32Array): Path | null {
    if (end < 0) return null;
    const crawlers = [end];
    const subnets: number[] = [];
    for (let to = end; (previous[to] as number) >= 0; to = previous[to] as number) {
      crawlers.unshift(previous[to] as number);
      subnets.unshift(this.#cheapestSubnet[(previous[to] as number) * this.#size + to] as number);
    }
    return { crawlers, subnets };
  }

  #push({ crawlers, subnets }: Path): void {
    const [start, end] = [crawlers[0] as number, crawlers.at(-1) as number];
    const parts = subnets.map(
      (subnet, step) => this.#held[subnet * this.#size + (crawlers[step] as number)] as number,
    );
    const amount = Math.min(-(this.#room[start] as number), this.#room[end] as number, ...parts);
    this.#room[start] = (this.#room[start] as number) + amount;
    this.#room[end] = (this.#room[end] as number) - amount;
    subnets.forEach((subnet, step) => {
      const to = crawlers[step + 1] as number;
      const isNew = !this.#holds(to, subnet);
      this.#add(subnet, crawlers[step] as number, -amount);
      this.#add(subnet, to, amount);
      if (isNew) this.#enter(subnet, to);
    });
  }

  #add(subnet: number, crawler: number, amount: number): void {
    const at = subnet * this.#size + crawler;
    this.#held[at] = (this.#held[at] as number) + amount;
    this.#isStale[crawler] = 1;
  }

  /** The subnet that a hands to b at the least cost, or -1 when a holds none. Those that a no longer holds drop out here. */
  #cheapestOnEdge(a: number, b: number): number {
    const edge = this.#edges[a * this.#size + b] as IndexHeap;
    while (edge.top >= 0 && !this.#holds(a, edge.top)) edge.removeTop();
    return edge.top;
  }

  #makeEdges(a: number): void {
    const subnets = [...this.#problem.loads.keys()].filter((subnet) => this.#holds(a, subnet));
    for (let b = 0; b < this.#size; b += 1) {
      const difference = (subnet: number) => this.#cost(subnet, b) - this.#cost(subnet, a);
      if (b !== a) this.#edges[a * this.#size + b] = new IndexHeap(subnets, difference);
    }
  }

  #enter(subnet: number, crawler: number): void {
    for (let to = 0; to < this.#size; to += 1) this.#edges[crawler * this.#size + to]?.add(subnet);
  }
}

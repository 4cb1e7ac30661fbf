/**
 * After the flow a few subnets lie in parts, fewer than there are crawlers. Each goes whole to one crawler, and
 * because that may take room from others in a dear place, single moves and exchanges that save something
 * follow, until none does. With equal loads nothing is in parts and nothing to save.
 */
import type { CrawlerGraph, FlowProblem } from "./crawler-graph.ts";

/** Most rounds of improvement; two or three are usual. */
const maxRounds = 10;
/** Most pairs that one round of exchanges tries, so that a large fleet stays within a second or so. */
const maxPairs = 4_000_000;
/** Savings below this are rounding errors. */
const leastSaving = 1e-9;

/** The crawler of each subnet. */
export function placeWhole(problem: FlowProblem, graph: CrawlerGraph): Int32Array {
  const placement = new Placement(problem);
  placement.settleAll(graph);
  for (let round = 0; round < maxRounds; round += 1) {
    const saved = placement.moveSingles() + placement.exchangePairs();
    if (saved === 0) break;
  }
  return placement.places;
}

class Placement {
  readonly places: Int32Array;
  readonly #problem: FlowProblem;
  readonly #room: Float64Array;
  readonly #crawlers: readonly number[];

  constructor(problem: FlowProblem) {
    this.#problem = problem;
    this.#room = problem.capacities.slice();
    this.#crawlers = [...problem.capacities.keys()];
    this.places = new Int32Array(problem.loads.length).fill(-1);
  }

  /** Whole subnets where the flow left them, then those in parts, the largest first. */
  settleAll(graph: CrawlerGraph): void {
    const inParts: number[] = [];
    for (const subnet of this.places.keys()) {
      const holders = graph.holdersOf(subnet);
      if (holders.length > 1) inParts.push(subnet);
      else this.#settle(subnet, holders[0] as number);
    }
    inParts.sort((a, b) => this.#load(b) - this.#load(a) || a - b);
    for (const subnet of inParts)
      this.#settle(subnet, this.#cheapestWithRoom(subnet) ?? this.#roomiest(graph.holdersOf(subnet)));
  }

  /** Every subnet to a cheaper crawler that has room; returns how many went. */
  moveSingles(): number {
    let moved = 0;
    for (const subnet of this.places.keys()) {
      const to = this.#cheapestWithRoom(subnet);
      if (to === null || this.#saving(subnet, to) <= leastSaving) continue;
      this.#leave(subnet);
      this.#settle(subnet, to);
      moved += 1;
    }
    return moved;
  }

  /** Each subnet that does not lie where it is cheapest, with any other: returns how many exchanges saved something. */
  exchangePairs(): number {
    const displaced = [...this.places.keys()].filter((subnet) =>
      this.#crawlers.some((crawler) => this.#saving(subnet, crawler) > leastSaving),
    );
    if (displaced.length * this.places.length > maxPairs) return 0;
    let exchanged = 0;
    for (const subnet of displaced) {
      const partner = this.#bestPartner(subnet);
      if (partner < 0) continue;
      const [here, there] = [this.places[subnet] as number, this.places[partner] as number];
      this.#leave(subnet);
      this.#leave(partner);
      this.#settle(subnet, there);
      this.#settle(partner, here);
      exchanged += 1;
    }
    return exchanged;
  }

  #bestPartner(subnet: number): number {
    const here = this.places[subnet] as number;
    let best = -1;
    let bestSaving = leastSaving;
    for (const partner of this.places.keys()) {
      const there = this.places[partner] as number;
      if (there === here || !this.#canExchange(subnet, partner)) continue;
      const saving = this.#saving(subnet, there) + this.#saving(partner, here);
      if (saving > bestSaving) [best, bestSaving] = [partner, saving];
    }
    return best;
  }

  /** Whether both fit after an exchange; a crawler that is over already may not get any more load. */
  #canExchange(a: number, b: number): boolean {
    const more = this.#load(b) - this.#load(a);
    const roomA = this.#room[this.places[a] as number] as number;
    const roomB = this.#room[this.places[b] as number] as number;
    return more <= Math.max(0, roomA) && -more <= Math.max(0, roomB);
  }

  #settle(subnet: number, crawler: number): void {
    this.places[subnet] = crawler;
    this.#room[crawler] = (this.#room[crawler] as number) - this.#load(subnet);
  }

  #leave(subnet: number): void {
    const crawler = this.places[subnet] as number;
    this.#room[crawler] = (this.#room[crawler] as number) + this.#load(subnet);
  }

  #cheapestWithRoom(subnet: number): number | null {
    let best: number | null = null;
    for (const crawler of this.#crawlers) {
      if ((this.#room[crawler] as number) < this.#load(subnet) || crawler === this.places[subnet]) continue;
      if (best === null || this.#cost(subnet, crawler) < this.#cost(subnet, best)) best = crawler;
    }
    return best;
  }

  #roomiest(crawlers: readonly number[]): number {
    return crawlers.reduce((best, crawler) =>
      (this.#room[crawler] as number) > (this.#room[best] as number) ? crawler : best,
    );
  }

  #saving(subnet: number, to: number): number {
    return (this.#cost(subnet, this.places[subnet] as number) - this.#cost(subnet, to)) * this.#load(subnet);
  }

  #cost(subnet: number, crawler: number): number {
    return this.#problem.costs[subnet * this.#crawlers.length + crawler] as number;
  }

  #load(subnet: number): number {
    return this.#problem.loads[subnet] as number;
  }
}

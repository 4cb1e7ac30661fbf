import { KeyedHeap } from "#core/small-collections";
import type { Holdings } from "./packed-subnets.ts";
import type { FlowProblem } from "./problem.ts";
import { LikelyCrawlers } from "./rtt-table.ts";

/**
 * The crawlers that come into question for each subnet: those whose cost and price together are within a reach of
 * the cheapest. A million subnets and 200 crawlers are 200 million pairs; at good prices hardly more than one of 200
 * is within reach, and only these are kept: 10 bytes each, and 18 per subnet.
 *
 * Of those left out one number is kept, the least cost and price of any. It says later, at other prices, whether they
 * still cannot matter; a subnet of which that cannot be said is chosen for again.
 *
 * Of a large fleet the problem names the likely crawlers of a subnet, and the choice is among these: what they are not
 * is never looked at, and nothing is proven about it.
 */
const noRoom = "too many pairs of subnet and crawler to plan with";

/** About 2 GB: a problem that needs more has no place in the coordinator. */
const maxArcs = 200_000_000;

/** Likely crawlers of a subnet beside those that measured it: with these, plans cost 0.0 to 0.2 % more (test/bench/results/balance.md). */
export const usualBreadth = 24;

/** Choices were made at so many different prices, at most. */
export const maxBases = 1_000;

export class CandidateArcs {
  /** How far from the cheapest the choice goes (ms). */
  reachMs: number;
  /** How many likely crawlers are asked for, where the problem names them. */
  breadth = usualBreadth;
  /** Arcs of subnet s stand at `starts[s]` up to `ends[s]`. */
  starts = new Uint32Array(16);
  ends = new Uint32Array(16);
  crawlers = new Uint16Array(64);
  costs = new Float64Array(64);
  /** The least cost + price that was left out, at the prices of the subnet's basis; infinite: nothing was. */
  #leftOutMs = new Float64Array(16);
  #basisOf = new Uint16Array(16);
  /** Prices (ms) that choices were made at; the last is that of choices to come. */
  readonly #bases: Float64Array[];
  #size = 0;
  #unused = 0;
  readonly #row: Float64Array;
  readonly #likely = new LikelyCrawlers();

  constructor(prices: Float64Array, reachMs: number) {
    this.#bases = [prices.slice()];
    this.reachMs = reachMs;
    this.#row = new Float64Array(prices.length);
  }

  /** Makes place for so many subnets, so that a long pass does not copy over and over. */
  expect(subnets: number): void {
    if (subnets <= this.starts.length) return;
    this.starts = copied(new Uint32Array(subnets), this.starts);
    this.ends = copied(new Uint32Array(subnets), this.ends);
    this.#leftOutMs = copied(new Float64Array(subnets), this.#leftOutMs);
    this.#basisOf = copied(new Uint16Array(subnets), this.#basisOf);
  }

  get bases(): number {
    return this.#bases.length;
  }

  /** From now on choices are made at these prices. */
  rebase(prices: Float64Array): void {
    this.#bases.push(prices.slice(0, this.#row.length));
  }

  /** Chooses the arcs of a subnet, from its costs at all crawlers or at the likely ones. */
  add(subnet: number, problem: Pick<FlowProblem, "costsInto" | "likelyInto">): void {
    if (subnet >= this.starts.length) this.expect(Math.max(subnet + 1, 2 * this.starts.length));
    this.free(subnet);
    if (problem.likelyInto === undefined) {
      problem.costsInto(subnet, this.#row);
      this.#choose(subnet, this.#row, { length: this.#row.length });
    } else {
      problem.likelyInto(subnet, this.breadth, this.#likely);
      this.#choose(subnet, this.#likely.costsMs, { length: this.#likely.count, of: this.#likely.crawlers });
    }
  }

  /** `of`: whose costs these are; without it, the crawlers' in their order. */
  #choose(
    subnet: number,
    costs: Float64Array,
    { length, of }: { readonly length: number; readonly of?: Uint16Array },
  ): void {
    const prices = this.#bases.at(-1)!;
    let least = Number.POSITIVE_INFINITY;
    for (let at = 0; at < length; at++) {
      const price = costs[at]! + prices[of === undefined ? at : of[at]!]!;
      if (price < least) least = price;
    }
    this.#reserve(length);
    const limit = least + this.reachMs;
    let leftOut = Number.POSITIVE_INFINITY;
    let end = this.#size;
    this.starts[subnet] = end;
    for (let at = 0; at < length; at++) {
      const crawler = of === undefined ? at : of[at]!;
      const price = costs[at]! + prices[crawler]!;
      if (price > limit) {
        if (price < leftOut) leftOut = price;
        continue;
      }
      this.crawlers[end] = crawler;
      this.costs[end++] = costs[at]!;
    }
    this.ends[subnet] = end;
    this.#size = end;
    this.#leftOutMs[subnet] = leftOut;
    this.#basisOf[subnet] = this.#bases.length - 1;
  }

  /** The subnet has no arcs any more. */
  free(subnet: number): void {
    this.#unused += this.ends[subnet]! - this.starts[subnet]!;
    this.ends[subnet] = this.starts[subnet]!;
  }

  /** The cost at a crawler, infinite where it is no candidate. */
  costAt(subnet: number, crawler: number): number {
    for (let at = this.starts[subnet]!; at < this.ends[subnet]!; at++) {
      if (this.crawlers[at] === crawler) return this.costs[at]!;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The candidate with the least cost and price together. */
  cheapest(subnet: number, prices: Float64Array): number {
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let at = this.starts[subnet]!; at < this.ends[subnet]!; at++) {
      const price = this.costs[at]! + prices[this.crawlers[at]!]!;
      if (price >= least) continue;
      least = price;
      best = this.crawlers[at]!;
    }
    return best;
  }

  /** Whether for a subnet, at these prices, nothing that was left out can be cheaper than its candidates. */
  proofAt(prices: Float64Array): (subnet: number) => boolean {
    const fallen = this.#bases.map((basis) => mostFallen(basis, prices));
    return (subnet) => {
      const leftOut = this.#leftOutMs[subnet]! - fallen[this.#basisOf[subnet]!]!;
      for (let at = this.starts[subnet]!; at < this.ends[subnet]!; at++) {
        if (this.costs[at]! + prices[this.crawlers[at]!]! <= leftOut) return true;
      }
      return false;
    };
  }

  #reserve(more: number): void {
    if (this.#size + more <= this.crawlers.length) return;
    const needed = this.#size - this.#unused + more;
    if (needed > maxArcs) throw new RangeError(noRoom);
    this.#copyTo(Math.min(maxArcs, Math.max(1_024, Math.ceil(1.5 * needed))));
  }

  /** Into new arrays, without what is no longer used. */
  #copyTo(length: number): void {
    const crawlers = new Uint16Array(length);
    const costs = new Float64Array(length);
    let size = 0;
    for (let subnet = 0; subnet < this.starts.length; subnet++) {
      const [start, end] = [this.starts[subnet]!, this.ends[subnet]!];
      this.starts[subnet] = size;
      for (let at = start; at < end; at++) {
        crawlers[size] = this.crawlers[at]!;
        costs[size++] = this.costs[at]!;
      }
      this.ends[subnet] = size;
    }
    this.crawlers = crawlers;
    this.costs = costs;
    this.#size = size;
    this.#unused = 0;
  }
}

/** By how much the price fell that fell the most; negative when all rose. */
function mostFallen(basis: Float64Array, prices: Float64Array): number {
  let most = Number.NEGATIVE_INFINITY;
  for (let crawler = 0; crawler < basis.length; crawler++) {
    const fallen = basis[crawler]! - prices[crawler]!;
    if (fallen > most) most = fallen;
  }
  return most;
}

function copied<Values extends { set(from: Values): void }>(longer: Values, values: Values): Values {
  longer.set(values);
  return longer;
}

// For every ordered pair of crawlers the subnet that the first hands to the second at the least cost. Per pair a
// heap of the differences `cost[b] − cost[a]` over the subnets of a that have b as a candidate; a crawler's heaps are
// made when it is first asked. Entries of subnets that have left drop out when they come to the top.

export class ExchangeRates {
  readonly #size: number;
  readonly #arcs: CandidateArcs;
  readonly #holdings: Holdings;
  readonly #members: number[][];
  /** One row of heaps per crawler that was asked. */
  readonly #heaps: (KeyedHeap | undefined)[];
  readonly #isMade: Uint8Array;
  /** Per crawler those that anything of its own could ever go to. */
  readonly #neighbours: number[][];
  /** At a * size + b the least difference (ms; infinite: none), and whose it is. */
  readonly leastMs: Float64Array;
  readonly #subnet: Int32Array;

  constructor(size: number, arcs: CandidateArcs, holdings: Holdings) {
    this.#size = size;
    this.#arcs = arcs;
    this.#holdings = holdings;
    this.#members = Array.from({ length: size }, () => []);
    this.#heaps = new Array(size * size);
    this.#neighbours = Array.from({ length: size }, () => []);
    this.#isMade = new Uint8Array(size);
    this.leastMs = new Float64Array(size * size).fill(Number.POSITIVE_INFINITY);
    this.#subnet = new Int32Array(size * size).fill(-1);
  }

  /** What hands load from a to b; -1 where nothing does. */
  subnetFor(a: number, b: number): number {
    return this.#subnet[a * this.#size + b]!;
  }

  /** Those to whom `leastMs` is finite, and perhaps more. */
  neighboursOf(a: number): readonly number[] {
    return this.#neighbours[a]!;
  }

  /** Has to come before `leastMs` and `subnetFor` are read for this crawler. */
  makeFor(a: number): void {
    if (this.#isMade[a] === 1) return;
    this.#isMade[a] = 1;
    const row = a * this.#size;
    const members = this.#members[a]!;
    this.#members[a] = [];
    for (const subnet of members) {
      if (this.#holds(a, subnet)) this.#eachArc(a, subnet, (b, ms) => this.#heap(a, b).append(subnet, ms));
    }
    for (const b of this.#neighbours[a]!) {
      this.#heaps[row + b]?.order();
      this.#readTop(a, b);
    }
  }

  /** The crawler got a subnet, or a part of it, that it had nothing of. */
  enter(a: number, subnet: number): void {
    if (this.#isMade[a] === 0) {
      this.#members[a]!.push(subnet);
      return;
    }
    this.#eachArc(a, subnet, (b, ms) => {
      this.#heap(a, b).add(subnet, ms);
      this.#readTop(a, b);
    });
  }

  /** The crawler holds nothing of the subnet any more. */
  leave(a: number, subnet: number): void {
    if (this.#isMade[a] === 0) return;
    const { starts, ends, crawlers } = this.#arcs;
    for (let at = starts[subnet]!; at < ends[subnet]!; at++) {
      if (this.subnetFor(a, crawlers[at]!) === subnet) this.#readTop(a, crawlers[at]!);
    }
  }

  #readTop(a: number, b: number): void {
    const at = a * this.#size + b;
    const heap = this.#heaps[at];
    while (heap !== undefined && heap.top >= 0 && !this.#holds(a, heap.top)) heap.removeTop();
    this.leastMs[at] = heap?.topKey ?? Number.POSITIVE_INFINITY;
    this.#subnet[at] = heap?.top ?? -1;
  }

  #heap(a: number, b: number): KeyedHeap {
    const at = a * this.#size + b;
    const known = this.#heaps[at];
    if (known !== undefined) return known;
    const heap = new KeyedHeap();
    this.#heaps[at] = heap;
    this.#neighbours[a]!.push(b);
    return heap;
  }

  #eachArc(a: number, subnet: number, visit: (b: number, ms: number) => void): void {
    const { starts, ends, crawlers, costs } = this.#arcs;
    const here = this.#arcs.costAt(subnet, a);
    for (let at = starts[subnet]!; at < ends[subnet]!; at++) {
      if (crawlers[at] !== a) visit(crawlers[at]!, costs[at]! - here);
    }
  }

  #holds(crawler: number, subnet: number): boolean {
    return this.#holdings.amountAt(subnet, crawler) > this.#holdings.dust;
  }
}

/**
 * For every ordered pair of crawlers the subnet that the first hands to the second at the least cost. Per pair a
 * heap of the differences `cost[b] − cost[a]` over the subnets of a that have b as a candidate; a crawler's heaps are
 * made when it is first asked. Entries of subnets that have left drop out when they come to the top.
 */

import { KeyedHeap } from "#core/small-collections";
import type { CandidateArcs } from "./candidate-arcs.ts";
import type { Holdings } from "./holdings.ts";

export class ExchangeRates {
  readonly #size: number;
  readonly #arcs: CandidateArcs;
  readonly #holdings: Holdings;
  readonly #members: number[][];
  /** One row of heaps per crawler that was asked. */
  readonly #heaps: (KeyedHeap | undefined)[];
  readonly #isMade: Uint8Array;
  /** At a * size + b the least difference (ms; infinite: none), and whose it is. */
  readonly leastMs: Float64Array;
  readonly #subnet: Int32Array;

  constructor(size: number, arcs: CandidateArcs, holdings: Holdings) {
    this.#size = size;
    this.#arcs = arcs;
    this.#holdings = holdings;
    this.#members = Array.from({ length: size }, () => []);
    this.#heaps = new Array(size * size);
    this.#isMade = new Uint8Array(size);
    this.leastMs = new Float64Array(size * size).fill(Number.POSITIVE_INFINITY);
    this.#subnet = new Int32Array(size * size).fill(-1);
  }

  /** What hands load from a to b; -1 where nothing does. */
  subnetFor(a: number, b: number): number {
    return this.#subnet[a * this.#size + b]!;
  }

  /** Has to come before `leastMs` and `subnetFor` are read for this crawler. */
  makeFor(a: number): void {
    if (this.#isMade[a] === 1) return;
    this.#isMade[a] = 1;
    const row = a * this.#size;
    const members = this.#members[a]!;
    this.#members[a] = [];
    for (const subnet of members) {
      if (this.#holds(a, subnet)) this.#eachArc(a, subnet, (b, ms) => this.#heap(row + b).append(subnet, ms));
    }
    for (let b = 0; b < this.#size; b++) {
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
      this.#heap(a * this.#size + b).add(subnet, ms);
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

  #heap(at: number): KeyedHeap {
    const heap = this.#heaps[at] ?? new KeyedHeap();
    this.#heaps[at] = heap;
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

/**
 * The crawlers that come into question for each subnet: those whose cost and price together are within a reach of
 * the cheapest. A million subnets and 200 crawlers are 200 million pairs; at good prices about five of 200 are
 * within reach, and only these are kept: 14 bytes each.
 *
 * What is left out stays irrelevant as long as no two prices have moved apart by more than the reach: a crawler
 * that was more than the reach dearer than the cheapest is then still no cheaper.
 */
const noRoom = "too many pairs of subnet and crawler to plan with";
/** About 3 GB: a problem that needs more has no place in the coordinator. */
const maxArcs = 200_000_000;

export class CandidateArcs {
  /** The prices (ms) that the choice was made at. */
  readonly prices: Float64Array;
  readonly reachMs: number;
  /** Arcs of subnet s stand at `starts[s]` up to `ends[s]`. */
  starts = new Float64Array(16);
  ends = new Float64Array(16);
  crawlers = new Uint16Array(64);
  costs = new Float64Array(64);
  #size = 0;
  readonly #row: Float64Array;

  constructor(prices: Float64Array, reachMs: number) {
    this.prices = prices.slice();
    this.reachMs = reachMs;
    this.#row = new Float64Array(prices.length);
  }

  /** Makes place for so many subnets, so that a long pass does not copy over and over. */
  expect(subnets: number): void {
    if (subnets <= this.starts.length) return;
    this.starts = grown(this.starts, subnets);
    this.ends = grown(this.ends, subnets);
  }

  /** Chooses the arcs of a subnet that has none yet, from its costs at all crawlers. */
  add(subnet: number, costsInto: (subnet: number, costs: Float64Array) => void): void {
    if (subnet >= this.starts.length) this.expect(Math.max(subnet + 1, 2 * this.starts.length));
    const { prices } = this;
    const row = this.#row;
    costsInto(subnet, row);
    let least = Number.POSITIVE_INFINITY;
    for (let crawler = 0; crawler < row.length; crawler++) {
      const price = row[crawler]! + prices[crawler]!;
      if (price < least) least = price;
    }
    this.#reserve(row.length);
    const limit = least + this.reachMs;
    let at = this.#size;
    this.starts[subnet] = at;
    for (let crawler = 0; crawler < row.length; crawler++) {
      if (row[crawler]! + prices[crawler]! > limit) continue;
      this.crawlers[at] = crawler;
      this.costs[at++] = row[crawler]!;
    }
    this.ends[subnet] = at;
    this.#size = at;
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

  /** Whether nothing that was left out can matter at these prices. */
  proves(prices: Float64Array): boolean {
    let [up, down] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let crawler = 0; crawler < this.prices.length; crawler++) {
      const moved = prices[crawler]! - this.prices[crawler]!;
      if (moved > up) up = moved;
      if (moved < down) down = moved;
    }
    return up - down <= this.reachMs;
  }

  #reserve(more: number): void {
    const needed = this.#size + more;
    if (needed <= this.crawlers.length) return;
    if (needed > maxArcs) throw new RangeError(noRoom);
    const length = Math.min(maxArcs, Math.max(needed, 2 * this.crawlers.length));
    const crawlers = new Uint16Array(length);
    crawlers.set(this.crawlers);
    this.crawlers = crawlers;
    this.costs = grown(this.costs, length);
  }
}

function grown(values: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const copy = new Float64Array(length);
  copy.set(values);
  return copy;
}

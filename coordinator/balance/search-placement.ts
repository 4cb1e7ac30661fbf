/**
 * Searches a small plan for a cheaper placement in whole subnets, or for any that keeps to both limits where there
 * is none yet: branch and bound, the largest subnets first, each at its cheapest crawlers first. The bound comes from
 * the flow's prices: a subnet at a crawler that is dearer, cost and price together, than its cheapest loses at least
 * the difference. Bounded in steps; what was found by then stands.
 */
import type { PlacedLoads } from "./placed-loads.ts";

/** More subnets than this cannot be searched within the steps. */
const maxSubnets = 200;
const maxSteps = 20_000;
/** Savings below this are rounding. */
const leastSaving = 1e-6;

/** Prices (ms): the crawlers' and, last, that of room. */
export function searchPlacement(placed: PlacedLoads, prices: Float64Array): void {
  const subnets: number[] = [];
  for (let subnet = 0; subnet < placed.places.length; subnet++) {
    if (placed.places[subnet]! >= 0 && sizeOf(placed, subnet) > 0) subnets.push(subnet);
    if (subnets.length > maxSubnets) return;
  }
  new PlacementSearch(placed, subnets, prices).run();
}

interface Branch {
  readonly subnet: number;
  /** Cheapest first, with what the subnet loses there against the first. */
  readonly ways: readonly { readonly crawler: number; readonly loss: number; readonly cost: number }[];
}

class PlacementSearch {
  readonly #placed: PlacedLoads;
  readonly #branches: readonly Branch[];
  #best: Int32Array;
  #bestCost: number;
  /** No placement that keeps to the limits costs less. */
  readonly #boundCost: number;
  #steps = 0;

  constructor(placed: PlacedLoads, subnets: readonly number[], prices: Float64Array) {
    this.#placed = placed;
    const bySize = [...subnets].sort((a, b) => sizeOf(placed, b) - sizeOf(placed, a) || a - b);
    const room = prices.at(-1)!;
    const priceOf = (crawler: number) => Math.max(0, prices[crawler]! - room);
    this.#branches = bySize.map((subnet) => branchOf(placed, subnet, priceOf));
    this.#best = placed.places.slice();
    this.#bestCost = placed.isAnyoneOver ? Number.POSITIVE_INFINITY : this.#costOf(this.#best);
    let bound = 0;
    for (const { subnet, ways } of this.#branches) {
      const [first] = ways;
      if (first) bound += first.cost + priceOf(first.crawler) * placed.problem.loadOf(subnet);
    }
    placed.problem.capacityPages.forEach((capacity, crawler) => {
      bound -= priceOf(crawler) * capacity;
    });
    this.#boundCost = bound;
  }

  run(): void {
    for (const { subnet } of this.#branches) this.#placed.leave(subnet);
    this.#placeFrom(0, this.#boundCost);
    for (const { subnet } of this.#branches) this.#placed.settle(subnet, this.#best[subnet]!);
  }

  #placeFrom(at: number, bound: number): void {
    const { subnet = -1, ways = [] } = this.#branches[at] ?? {};
    if (subnet < 0) this.#keep();
    for (const { crawler, loss } of ways) {
      if (bound + loss >= this.#bestCost - leastSaving || ++this.#steps > maxSteps) return;
      if (!this.#placed.hasRoom(crawler, subnet)) continue;
      this.#placed.settle(subnet, crawler);
      this.#placeFrom(at + 1, bound + loss);
      this.#placed.leave(subnet);
    }
  }

  #keep(): void {
    const cost = this.#costOf(this.#placed.places);
    if (cost >= this.#bestCost) return;
    this.#bestCost = cost;
    this.#best = this.#placed.places.slice();
  }

  #costOf(places: Int32Array): number {
    let cost = 0;
    for (const { subnet, ways } of this.#branches) {
      cost += ways.find(({ crawler }) => crawler === places[subnet])?.cost ?? 0;
    }
    return cost;
  }
}

function branchOf(placed: PlacedLoads, subnet: number, priceOf: (crawler: number) => number): Branch {
  const load = placed.problem.loadOf(subnet);
  const ways = Array.from(placed.costsOf(subnet), (costMs, crawler) => ({
    crawler,
    cost: costMs * load,
    loss: (costMs + priceOf(crawler)) * load,
  })).sort((a, b) => a.loss - b.loss || a.crawler - b.crawler);
  const least = ways[0]?.loss ?? 0;
  return { subnet, ways: ways.map((way) => ({ ...way, loss: way.loss - least })) };
}

/** A subnet's larger share of what all crawlers may carry of pages or of bytes. */
function sizeOf({ problem }: PlacedLoads, subnet: number): number {
  return Math.max(
    problem.loadOf(subnet) / total(problem.capacityPages),
    problem.bytesOf(subnet) / total(problem.capacityBytes),
  );
}

function total(capacities: Float64Array): number {
  let sum = 0;
  for (const capacity of capacities) sum += capacity;
  return Math.max(sum, Number.MIN_VALUE);
}

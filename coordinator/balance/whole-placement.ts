/**
 * From the flow to whole subnets that keep to both limits, pages and bytes a day. The flow leaves fewer subnets in
 * parts than there are crawlers (with equal loads none), and it counts pages only. So: those in parts go to the
 * cheapest crawler with room; then whoever is over in pages or bytes gives up what costs the least per relief; what
 * single moves cannot put right, exchanges may. A small plan is then improved by moves and exchanges, and searched.
 *
 * To decide whether everything fits is bin packing, NP-hard: in a large plan a crawler can stay over, by less than
 * one subnet, only where the subnets are large beside the room that is left.
 */
import type { CrawlerFlow } from "./crawler-flow.ts";
import { PlacedLoads, type PlacementProblem } from "./placed-loads.ts";

/** The crawler of each subnet; -1 for those that are gone. */
export function placeWhole(problem: PlacementProblem, flow: CrawlerFlow): Int32Array {
  const placed = new PlacedLoads(problem);
  settleAll(placed, problem, flow);
  relieveOverloads(placed);
  if (flow.holdings.split.length === 0 && !movedAny(placed, flow)) return placed.places;
  improvePlacement(placed);
  searchPlacement(placed, flow.prices);
  return placed.places;
}

function settleAll(placed: PlacedLoads, problem: PlacementProblem, flow: CrawlerFlow): void {
  for (let subnet = 0; subnet < problem.subnets; subnet++) {
    if (problem.isGone(subnet)) continue;
    if (problem.loadOf(subnet) === 0) placed.settle(subnet, placeWithoutLoad(placed, problem, subnet));
    else {
      const whole = flow.holdings.wholeAt(subnet);
      if (whole >= 0) placed.settle(subnet, whole);
    }
  }
  const split = [...flow.holdings.split];
  split.sort((a, b) => problem.loadOf(b) - problem.loadOf(a) || a - b);
  for (const subnet of split) {
    placed.settle(subnet, placed.cheapestWithRoom(subnet) ?? largestPart(flow.holdings.partsOf(subnet)));
  }
}

/** Whether relief had to depart from what the flow says, which is the cheapest. */
function movedAny(placed: PlacedLoads, flow: CrawlerFlow): boolean {
  return placed.places.some(
    (crawler, subnet) => placed.problem.loadOf(subnet) > 0 && crawler !== flow.holdings.wholeAt(subnet),
  );
}

function placeWithoutLoad(placed: PlacedLoads, problem: PlacementProblem, subnet: number): number {
  const owner = problem.ownerOf(subnet);
  return (problem.capacityPages[owner] ?? 0) > 0 ? owner : (placed.cheapestWithRoom(subnet) ?? owner);
}

function largestPart(parts: ReadonlyMap<number, number>): number {
  let [largest, most] = [-1, 0];
  for (const [crawler, amount] of parts) if (amount > most) [largest, most] = [crawler, amount];
  return largest;
}

// Single moves and exchanges that save something, until none does: where subnets are few and large, putting them
// together after the flow can cost more than it has to. With equal loads there is nothing to find, and in a large
// plan the few that lay in parts do not weigh.

/** Most pairs of subnet and crawler that a plan is improved with. */
const maxCosts = 200_000;

/** Most pairs of subnets that one round looks at. */
const maxPairs = 1_000_000;

/** Most rounds; two or three are usual. */
const maxRounds = 10;

/** Savings below this are rounding. */
const leastSaving = 1e-6;

function improvePlacement(placed: PlacedLoads): void {
  const { problem, crawlers } = placed;
  if (problem.subnets * crawlers > maxCosts) return;
  const costs = Array.from({ length: problem.subnets }, (_, subnet) => placed.costsOf(subnet).slice());
  const saving = (subnet: number, to: number) =>
    (costs[subnet]![placed.places[subnet]!]! - costs[subnet]![to]!) * problem.loadOf(subnet);
  const present = [...placed.places.keys()].filter((subnet) => placed.places[subnet]! >= 0);
  for (let round = 0; round < maxRounds; round++) {
    const moved = moveSingles(placed, present, saving);
    if (moved + exchangePairs(placed, present, saving) === 0) return;
  }
}

type Saving = (subnet: number, to: number) => number;

function moveSingles(placed: PlacedLoads, present: readonly number[], saving: Saving): number {
  let moved = 0;
  for (const subnet of present) {
    let [to, most] = [-1, leastSaving];
    for (let crawler = 0; crawler < placed.crawlers; crawler++) {
      if (saving(subnet, crawler) <= most || !placed.hasRoom(crawler, subnet)) continue;
      [to, most] = [crawler, saving(subnet, crawler)];
    }
    if (to < 0) continue;
    placed.settle(subnet, to);
    moved++;
  }
  return moved;
}

/** Each subnet that would be cheaper elsewhere, with any other. */
function exchangePairs(placed: PlacedLoads, present: readonly number[], saving: Saving): number {
  const displaced = present.filter((subnet) => {
    for (let crawler = 0; crawler < placed.crawlers; crawler++)
      if (saving(subnet, crawler) > leastSaving) return true;
    return false;
  });
  if (displaced.length * present.length > maxPairs) return 0;
  let exchanged = 0;
  for (const subnet of displaced) {
    let [best, most] = [-1, leastSaving];
    for (const partner of present) {
      const [here, there] = [placed.places[subnet]!, placed.places[partner]!];
      if (here === there) continue;
      const saved = saving(subnet, there) + saving(partner, here);
      if (saved > most && canExchange(placed, subnet, partner)) [best, most] = [partner, saved];
    }
    if (best < 0) continue;
    swap(placed, subnet, best);
    exchanged++;
  }
  return exchanged;
}

/** Both fit after it; whoever gets less of everything than it gives needs no room. */
function canExchange(placed: PlacedLoads, a: number, b: number): boolean {
  const { problem } = placed;
  const pages = problem.loadOf(a) - problem.loadOf(b);
  const bytes = problem.bytesOf(a) - problem.bytesOf(b);
  return fits(placed, placed.places[b]!, pages, bytes) && fits(placed, placed.places[a]!, -pages, -bytes);
}

function fits(placed: PlacedLoads, crawler: number, pages: number, bytes: number): boolean {
  return (pages <= 0 && bytes <= 0) || placed.hasRoomFor(crawler, pages, bytes);
}

// Takes whole subnets from crawlers that are over in pages or bytes: those that cost the least per relief first.

/** Most pairs that the search for one exchange looks at. */
const maxReliefPairs = 2_000_000;

/** Most exchanges for one crawler. */
const maxExchanges = 100;

function relieveOverloads(placed: PlacedLoads): void {
  const members = placed.membersOf((crawler) => placed.isOver(crawler));
  for (const [crawler, subnets] of members) {
    giveUp(placed, crawler, subnets);
    for (let round = 0; round < maxExchanges && placed.isOver(crawler); round++) {
      if (!exchangeOne(placed, crawler, subnets)) break;
    }
  }
}

function giveUp(placed: PlacedLoads, crawler: number, subnets: readonly number[]): void {
  const priced = subnets.map((subnet) => ({ subnet, price: priceOfRelief(placed, subnet) }));
  priced.sort((a, b) => a.price - b.price || a.subnet - b.subnet);
  for (const { subnet, price } of priced) {
    if (price === Number.POSITIVE_INFINITY || !placed.isOver(crawler)) return;
    const to = placed.cheapestWithRoom(subnet);
    if (to !== null && reliefOf(placed, subnet) > 0) placed.settle(subnet, to);
  }
}

/** Cost of moving the subnet per share of the overload that it takes along. */
function priceOfRelief(placed: PlacedLoads, subnet: number): number {
  const relief = reliefOf(placed, subnet);
  const costs = placed.costsOf(subnet);
  const to = relief > 0 ? placed.cheapestWithRoom(subnet, costs) : null;
  if (to === null) return Number.POSITIVE_INFINITY;
  return ((costs[to]! - costs[placed.places[subnet]!]!) * placed.problem.loadOf(subnet)) / relief;
}

/** The share of its crawler's overload, of pages or bytes, that goes with the subnet. */
function reliefOf(placed: PlacedLoads, subnet: number): number {
  const over = placed.overBy(placed.places[subnet]!);
  const ofPages = over.pages > 0 ? placed.problem.loadOf(subnet) / over.pages : 0;
  const ofBytes = over.bytes > 0 ? placed.problem.bytesOf(subnet) / over.bytes : 0;
  return Math.min(1, ofPages) + Math.min(1, ofBytes);
}

/** A large subnet of the crawler for a smaller one elsewhere, whichever costs the least per relief. */
function exchangeOne(placed: PlacedLoads, crawler: number, members: readonly number[]): boolean {
  const { problem } = placed;
  const own = members.filter((subnet) => placed.places[subnet] === crawler);
  if (own.length * problem.subnets > maxReliefPairs) return false;
  let best: { price: number; subnet: number; partner: number } | null = null;
  for (const subnet of own) {
    const costs = placed.costsOf(subnet).slice();
    for (let partner = 0; partner < problem.subnets; partner++) {
      const there = placed.places[partner]!;
      if (there < 0 || there === crawler || !relieves(placed, subnet, partner)) continue;
      const partnerCosts = placed.costsOf(partner);
      const price =
        (costs[there]! - costs[crawler]!) * problem.loadOf(subnet) +
        (partnerCosts[crawler]! - partnerCosts[there]!) * problem.loadOf(partner);
      if (best === null || price < best.price) best = { price, subnet, partner };
    }
  }
  if (best === null) return false;
  swap(placed, best.subnet, best.partner);
  return true;
}

/** The exchange takes from what its crawler has too much of, adds to no overload, and the other has the room. */
function relieves(placed: PlacedLoads, subnet: number, partner: number): boolean {
  const { problem } = placed;
  const pages = problem.loadOf(subnet) - problem.loadOf(partner);
  const bytes = problem.bytesOf(subnet) - problem.bytesOf(partner);
  const here = placed.places[subnet]!;
  const over = placed.overBy(here);
  const helps = (over.pages > 0 && pages > 0) || (over.bytes > 0 && bytes > 0);
  const harms =
    (over.pages > 0 && pages < 0) ||
    (over.bytes > 0 && bytes < 0) ||
    (over.pages === 0 && over.bytes > 0 && !placed.hasRoomFor(here, -pages, Number.NEGATIVE_INFINITY)) ||
    (over.bytes === 0 && over.pages > 0 && !placed.hasRoomFor(here, Number.NEGATIVE_INFINITY, -bytes));
  return helps && !harms && placed.hasRoomFor(placed.places[partner]!, pages, bytes);
}

function swap(placed: PlacedLoads, a: number, b: number): void {
  const [here, there] = [placed.places[a]!, placed.places[b]!];
  placed.leave(a);
  placed.leave(b);
  placed.settle(a, there);
  placed.settle(b, here);
}

// Searches a small plan for a cheaper placement in whole subnets, or for any that keeps to both limits where there
// is none yet: branch and bound, the largest subnets first, each at its cheapest crawlers first. The bound comes from
// the flow's prices: a subnet at a crawler that is dearer, cost and price together, than its cheapest loses at least
// the difference. Bounded in steps; what was found by then stands.

/** More subnets than this cannot be searched within the steps. */
const maxSubnets = 200;

const maxSteps = 20_000;

/** Prices (ms): the crawlers' and, last, that of room. */
function searchPlacement(placed: PlacedLoads, prices: Float64Array): void {
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

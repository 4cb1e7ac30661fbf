/** Takes whole subnets from crawlers that are over in pages or bytes: those that cost the least per relief first. */
import type { PlacedLoads } from "./placed-loads.ts";

/** Most pairs that the search for one exchange looks at. */
const maxPairs = 2_000_000;
/** Most exchanges for one crawler. */
const maxExchanges = 100;

export function relieveOverloads(placed: PlacedLoads): void {
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
  if (own.length * problem.subnets > maxPairs) return false;
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

export function swap(placed: PlacedLoads, a: number, b: number): void {
  const [here, there] = [placed.places[a]!, placed.places[b]!];
  placed.leave(a);
  placed.leave(b);
  placed.settle(a, there);
  placed.settle(b, here);
}

/**
 * Single moves and exchanges that save something, until none does: where subnets are few and large, putting them
 * together after the flow can cost more than it has to. With equal loads there is nothing to find, and in a large
 * plan the few that lay in parts do not weigh.
 */
import type { PlacedLoads } from "./placed-loads.ts";
import { swap } from "./relieve-overloads.ts";

/** Most pairs of subnet and crawler that a plan is improved with. */
const maxCosts = 200_000;
/** Most pairs of subnets that one round looks at. */
const maxPairs = 1_000_000;
/** Most rounds; two or three are usual. */
const maxRounds = 10;
/** Savings below this are rounding. */
const leastSaving = 1e-6;

export function improvePlacement(placed: PlacedLoads): void {
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

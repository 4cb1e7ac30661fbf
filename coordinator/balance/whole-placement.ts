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
import type { FlowProblem } from "./flow-problem.ts";
import { improvePlacement } from "./improve-placement.ts";
import { PlacedLoads } from "./placed-loads.ts";
import { relieveOverloads } from "./relieve-overloads.ts";
import { searchPlacement } from "./search-placement.ts";

export interface PlacementProblem extends FlowProblem {
  readonly capacityPages: Float64Array;
  /** Infinite where there is no limit. */
  readonly capacityBytes: Float64Array;
  bytesOf(subnet: number): number;
  /** Where a subnet without load stays, if that crawler carries anything at all. */
  ownerOf(subnet: number): number;
}

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

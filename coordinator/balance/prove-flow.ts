/**
 * Settles a flow and makes sure that what was not among the candidates cannot matter. Where it may, candidates are
 * chosen anew at the prices reached, for these subnets alone, and further with every turn; at the latest when
 * everybody is a candidate the flow is proven the cheapest over all pairs.
 */
import { maxBases } from "./candidate-arcs.ts";
import type { CrawlerFlow } from "./crawler-flow.ts";
import type { FlowProblem } from "./flow-problem.ts";

/** Reach grows by this with every turn, and is unlimited from `farMs` on. */
const growth = 2;
const farMs = 1_000;

/** False when the flow has lived through too many changes to go on with: start a new one from its prices. */
export function proveFlow(flow: CrawlerFlow, problem: FlowProblem): boolean {
  const { arcs } = flow;
  const firstReachMs = arcs.reachMs;
  for (;;) {
    const doubtful = flow.settle() ? unproven(flow, problem) : heldBy(flow, problem, flow.stuck);
    if (doubtful.length === 0) break;
    if (arcs.bases >= maxBases) return false;
    arcs.rebase(flow.prices);
    arcs.reachMs = arcs.reachMs >= farMs ? Number.POSITIVE_INFINITY : growth * arcs.reachMs;
    for (const subnet of doubtful) flow.chooseAgain(subnet);
  }
  arcs.reachMs = firstReachMs;
  return true;
}

function unproven(flow: CrawlerFlow, problem: FlowProblem): number[] {
  const isProven = flow.arcs.proofAt(flow.prices);
  return chosen(problem, (subnet) => !isProven(subnet));
}

function heldBy(flow: CrawlerFlow, problem: FlowProblem, crawlers: ReadonlySet<number>): number[] {
  return chosen(problem, (subnet) => {
    const whole = flow.holdings.wholeAt(subnet);
    if (whole >= 0) return crawlers.has(whole);
    return [...flow.holdings.partsOf(subnet).keys()].some((crawler) => crawlers.has(crawler));
  });
}

function chosen(problem: FlowProblem, isChosen: (subnet: number) => boolean): number[] {
  const found: number[] = [];
  for (let subnet = 0; subnet < problem.subnets; subnet++) {
    if (!problem.isGone(subnet) && isChosen(subnet)) found.push(subnet);
  }
  return found;
}

/**
 * Solves a transport problem exactly, a large one by way of samples: prices of a sample of the load are nearly
 * those of all of it, so that the next larger problem starts almost solved, with a few candidates per subnet.
 * Where these turn out not to suffice, more are chosen for the subnets concerned (prove-flow).
 */
import { CrawlerFlow } from "./crawler-flow.ts";
import type { FlowProblem } from "./flow-problem.ts";
import { proveFlow } from "./prove-flow.ts";

/** So many subnets are solved at once, with all crawlers as candidates. */
const wholeAtOnce = 4_000;
/** A sample is smaller than what it stands for by this factor. */
const samplingFactor = 8;
/** Candidates per subnet that the first reach is chosen for. */
const candidatesWanted = 4;

/** A first reach of less than this would be lost in the noise of a sample's prices. */
const leastReachMs = 0.05;
/** Subnets that the first reach is estimated from. */
const reachEstimate = 1_000;

export function solveFlow(problem: FlowProblem): CrawlerFlow {
  return solved(problem).flow;
}

/** `wentMs`: how far prices moved apart from what they were to start with; null when there were none. */
function solved(problem: FlowProblem): { readonly flow: CrawlerFlow; readonly wentMs: number | null } {
  const noPrices = new Float64Array(problem.capacities.length + 1);
  if (problem.subnets <= wholeAtOnce)
    return { flow: settledFlow(problem, noPrices, Number.POSITIVE_INFINITY), wentMs: null };
  const sample = sampleOf(problem, Math.max(wholeAtOnce, Math.floor(problem.subnets / samplingFactor)));
  const before = sample.subnets > 0 ? solved(sample) : null;
  const prices = before?.flow.prices ?? noPrices;
  const wentMs = before?.wentMs ?? null;
  // The error of a sample's prices falls with the square root of its size.
  const reachMs = wentMs === null ? reachFor(problem, prices) : wentMs / Math.sqrt(samplingFactor);
  const flow = settledFlow(problem, prices, Math.max(leastReachMs, reachMs));
  return { flow, wentMs: movedApart(prices, flow.prices) };
}

/** The cheapest flow, from these prices: the crawlers' and, last, that of room. */
export function settledFlow(problem: FlowProblem, prices: Float64Array, reachMs: number): CrawlerFlow {
  const flow = new CrawlerFlow(problem, { prices, reachMs });
  flow.arcs.expect(problem.subnets);
  for (let subnet = 0; subnet < problem.subnets; subnet++) {
    if (!problem.isGone(subnet)) flow.add(subnet);
  }
  return proveFlow(flow, problem) ? flow : settledFlow(problem, flow.prices, Number.POSITIVE_INFINITY);
}

function movedApart(before: Float64Array, after: Float64Array): number {
  const moved = after.map((price, node) => price - before[node]!);
  return (
    moved.reduce((most, one) => Math.max(most, one)) - moved.reduce((least, one) => Math.min(least, one))
  );
}

/** How far from the cheapest the candidates have to go for about `candidatesWanted` of them. */
export function reachFor(problem: FlowProblem, prices: Float64Array): number {
  const costs = new Float64Array(problem.capacities.length);
  const stride = Math.max(1, Math.floor(problem.subnets / reachEstimate));
  const beyondMs: number[] = [];
  for (let subnet = 0; subnet < problem.subnets; subnet += stride) {
    problem.costsInto(subnet, costs);
    const sorted = costs.map((cost, crawler) => cost + prices[crawler]!).sort();
    beyondMs.push(sorted[Math.min(candidatesWanted, sorted.length) - 1]! - sorted[0]!);
  }
  beyondMs.sort((a, b) => a - b);
  return Math.max(leastReachMs, beyondMs[beyondMs.length >> 1] ?? 0);
}

/**
 * Every so many pages of load one, in the order of the subnets: a subnet is drawn as often as its load says, and
 * the large ones are all there with nearly their own load.
 */
function sampleOf(problem: FlowProblem, draws: number): FlowProblem {
  const drawn: number[] = [];
  const loads: number[] = [];
  let total = 0;
  for (let subnet = 0; subnet < problem.subnets; subnet++) total += problem.loadOf(subnet);
  const step = total / draws;
  let passed = 0;
  let taken = 0;
  for (let subnet = 0; subnet < problem.subnets && step > 0; subnet++) {
    passed += problem.loadOf(subnet);
    const times = Math.floor(passed / step) - taken;
    if (times <= 0) continue;
    taken += times;
    drawn.push(subnet);
    loads.push(times * step);
  }
  return {
    capacities: problem.capacities,
    subnets: drawn.length,
    isGone: () => false,
    loadOf: (index) => loads[index]!,
    costsInto: (index, costs) => problem.costsInto(drawn[index]!, costs),
  };
}

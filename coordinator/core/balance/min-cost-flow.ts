/**
 * The cheapest set of moves that leaves nobody over capacity: the least sum of load × RTT over all subnets
 * (design section 6). Successive shortest paths on a graph whose nodes are the N crawlers: see
 * `crawler-graph.ts`.
 *
 * With equal loads the result is exact. With unequal loads a subnet may end in parts; these few, fewer than
 * there are crawlers, go whole to the cheapest crawler with room, the largest first. So the detour from the
 * optimum is theirs at most, and a crawler stays over capacity, by less than one subnet, only where the
 * pieces do not fit.
 *
 * Nothing moves while nobody is overloaded; when somebody is, subnets may also move to a crawler that is
 * known to be nearer. Memory: 20 bytes for every pair of subnet and crawler.
 */
import type { CrawlerId } from "../ids.ts";
import { overloads, workingCapacities } from "./capacity.ts";
import { CrawlerGraph, type FlowProblem } from "./crawler-graph.ts";
import { type BalanceInput, type BalanceSubnet, checkInput, type Move } from "./plan.ts";
import { addedRtt } from "./predict-rtt.ts";

export function planByMinCostFlow(input: BalanceInput): Move[] {
  checkInput(input);
  if (overloads(input).length === 0) return [];
  const crawlers = [...workingCapacities(input)]
    .filter(([, capacity]) => capacity > 0)
    .sort(([a], [b]) => a - b);
  if (crawlers.length === 0) return [];
  const crawlerIds = crawlers.map(([crawlerId]) => crawlerId);
  const subnets = [...input.subnets].sort((a, b) => a.subnetId - b.subnetId);
  const loads = Float64Array.from(subnets, ({ loadPagesPerDay }) => loadPagesPerDay);
  const capacities = wholeUnits(
    Float64Array.from(crawlers, ([, capacity]) => capacity),
    loads,
  );
  const problem = { capacities, loads, ...costsOf(subnets, crawlerIds, input) };
  const graph = new CrawlerGraph(problem);
  graph.relieve();
  const places = placeWhole(problem, graph);
  return subnets.flatMap((subnet, index) =>
    moveOf(subnet, crawlerIds[places[index] as number] as CrawlerId, input),
  );
}

function moveOf(subnet: BalanceSubnet, to: CrawlerId, input: BalanceInput): Move[] {
  if (to === subnet.crawlerId) return [];
  return [{ subnetId: subnet.subnetId, from: subnet.crawlerId, to, ...addedRtt(subnet, to, input) }];
}

/** Added RTT of every subnet at every crawler, and where each subnet is now (-1: at a crawler that departed). */
function costsOf(subnets: readonly BalanceSubnet[], crawlerIds: readonly CrawlerId[], input: BalanceInput) {
  const costs = new Float64Array(subnets.length * crawlerIds.length);
  const origins = new Int32Array(subnets.length).fill(-1);
  subnets.forEach((subnet, s) => {
    crawlerIds.forEach((crawlerId, c) => {
      if (crawlerId === subnet.crawlerId) origins[s] = c;
      else costs[s * crawlerIds.length + c] = addedRtt(subnet, crawlerId, input).addedRttMs;
    });
  });
  return { costs, origins };
}

/**
 * With equal loads, capacities in whole subnets. Where the fractions that are lost by this are needed to hold
 * everything, the crawlers with the largest ones take a subnet more.
 */
function wholeUnits(capacities: Float64Array, loads: Float64Array): Float64Array {
  const unit = loads[0] ?? 0;
  if (unit === 0 || loads.some((load) => load !== unit)) return capacities;
  // A hair more, so that a capacity of 0.3 carries three subnets of 0.1.
  const units = capacities.map((capacity) => capacity / unit + 1e-9);
  const whole = units.map(Math.floor);
  const byFraction = [...units.keys()].sort((a, b) => fraction(units, b) - fraction(units, a) || a - b);
  const missing = loads.length - whole.reduce((sum, count) => sum + count, 0);
  for (const crawler of byFraction.slice(0, Math.max(0, missing)))
    whole[crawler] = (whole[crawler] as number) + 1;
  return whole.map((count) => count * unit);
}

const fraction = (units: Float64Array, crawler: number) => (units[crawler] as number) % 1;

/** The crawler of each subnet, those in parts put together. */
function placeWhole(problem: FlowProblem, graph: CrawlerGraph): Int32Array {
  const { capacities, loads } = problem;
  const room = capacities.slice();
  const places = new Int32Array(loads.length).fill(-1);
  const inParts: number[] = [];
  for (let subnet = 0; subnet < loads.length; subnet += 1) {
    const holders = graph.holdersOf(subnet);
    if (holders.length > 1) inParts.push(subnet);
    else settle(subnet, holders[0] as number);
  }
  inParts.sort((a, b) => (loads[b] as number) - (loads[a] as number) || a - b);
  for (const subnet of inParts)
    settle(subnet, cheapestWithRoom({ subnet, problem, room }) ?? roomiest(graph.holdersOf(subnet), room));
  return places;

  function settle(subnet: number, crawler: number): void {
    places[subnet] = crawler;
    room[crawler] = (room[crawler] as number) - (loads[subnet] as number);
  }
}

function cheapestWithRoom(search: {
  subnet: number;
  problem: FlowProblem;
  room: Float64Array;
}): number | null {
  const { subnet, problem, room } = search;
  const costAt = (crawler: number) => problem.costs[subnet * room.length + crawler] as number;
  const fitting = [...room.keys()].filter(
    (crawler) => (room[crawler] as number) >= (problem.loads[subnet] as number),
  );
  return fitting.sort((a, b) => costAt(a) - costAt(b) || a - b)[0] ?? null;
}

function roomiest(crawlers: readonly number[], room: Float64Array): number {
  return [...crawlers].sort((a, b) => (room[b] as number) - (room[a] as number) || a - b)[0] as number;
}

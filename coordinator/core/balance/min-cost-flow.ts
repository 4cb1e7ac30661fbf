/**
 * The cheapest set of moves that leaves nobody over capacity: the least sum of load × RTT over all subnets
 * (design section 6). Successive shortest paths on a graph whose nodes are the N crawlers: see
 * `crawler-graph.ts`.
 *
 * With equal loads the result is exact. With unequal loads, where the exact answer is NP-hard to find, a few
 * subnets end in parts, and `place-whole.ts` puts them together: near the optimum, and a crawler stays over
 * capacity, by less than one subnet, only where the pieces do not fit.
 *
 * Nothing moves while nobody is overloaded; when somebody is, subnets may also move to a crawler that is
 * known to be nearer. Memory: 20 bytes for every pair of subnet and crawler.
 */
import type { CrawlerId } from "../ids.ts";
import { overloads, workingCapacities } from "./capacity.ts";
import { CrawlerGraph } from "./crawler-graph.ts";
import { placeWhole } from "./place-whole.ts";
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

/**
 * The paper's rule (section 4.4): an overloaded crawler gives up the subnets with the lowest variance in their
 * probing results, each to its next-best available crawler. A low variance means that the probed crawlers are
 * about equally far, so that another one does nearly as well.
 *
 * Filled in where the paper is silent: a subnet that fewer than two crawlers measured has no variance and goes
 * last; "next-best" is the lowest RTT, measured or predicted, among crawlers with room for the whole subnet;
 * where nobody has room, the subnet stays, except that a departed crawler keeps nothing.
 */
import type { CrawlerId } from "../ids.ts";
import { loadsOf, overloads, workingCapacities } from "./capacity.ts";
import { type BalanceInput, type BalanceSubnet, checkInput, type Move } from "./plan.ts";
import { addedRtt } from "./predict-rtt.ts";

export function planByVarianceRule(input: BalanceInput): Move[] {
  checkInput(input);
  const capacities = workingCapacities(input);
  const loads = loadsOf(input);
  const moves: Move[] = [];
  for (const { crawlerId } of overloads(input)) {
    const capacity = capacities.get(crawlerId) ?? 0;
    for (const subnet of lowestVarianceFirst(input.subnets.filter((one) => one.crawlerId === crawlerId))) {
      const isRelieved = capacity > 0 && (loads.get(crawlerId) ?? 0) <= capacity;
      if (isRelieved) break;
      if (capacity > 0 && subnet.loadPagesPerDay === 0) continue;
      const move = nextBest({ subnet, input, capacities, loads });
      if (move === null) continue;
      moves.push(move);
      addLoad(loads, move.from, -subnet.loadPagesPerDay);
      addLoad(loads, move.to, subnet.loadPagesPerDay);
    }
  }
  return moves;
}

/** Population variance of the probing results, in ms²; infinite when there are fewer than two. */
export function probingVariance(subnet: BalanceSubnet): number {
  const rtts = [...subnet.rttMs.values()];
  if (rtts.length < 2) return Number.POSITIVE_INFINITY;
  const mean = rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length;
  return rtts.reduce((sum, rtt) => sum + (rtt - mean) ** 2, 0) / rtts.length;
}

function lowestVarianceFirst(subnets: readonly BalanceSubnet[]): BalanceSubnet[] {
  const variances = new Map(subnets.map((subnet) => [subnet, probingVariance(subnet)]));
  const varianceOf = (subnet: BalanceSubnet) => variances.get(subnet) as number;
  return [...subnets].sort((a, b) => {
    if (varianceOf(a) === varianceOf(b)) return a.subnetId - b.subnetId;
    return varianceOf(a) < varianceOf(b) ? -1 : 1;
  });
}

interface Search {
  readonly subnet: BalanceSubnet;
  readonly input: BalanceInput;
  readonly capacities: ReadonlyMap<CrawlerId, number>;
  readonly loads: ReadonlyMap<CrawlerId, number>;
}

function nextBest({ subnet, input, capacities, loads }: Search): Move | null {
  const roomOf = (crawlerId: CrawlerId) => (capacities.get(crawlerId) ?? 0) - (loads.get(crawlerId) ?? 0);
  const others = input.crawlers
    .map(({ crawlerId }) => crawlerId)
    .filter((crawlerId) => crawlerId !== subnet.crawlerId && (capacities.get(crawlerId) ?? 0) > 0);
  const withRoom = others.filter((crawlerId) => roomOf(crawlerId) >= subnet.loadPagesPerDay);
  const departed = (capacities.get(subnet.crawlerId) ?? 0) === 0;
  const mostRoom = departed ? [...others].sort((a, b) => roomOf(b) - roomOf(a) || a - b).slice(0, 1) : [];
  const candidates = (withRoom.length > 0 ? withRoom : mostRoom)
    .map(
      (to): Move => ({
        subnetId: subnet.subnetId,
        from: subnet.crawlerId,
        to,
        ...addedRtt(subnet, to, input),
      }),
    )
    .sort((a, b) => a.addedRttMs - b.addedRttMs || a.to - b.to);
  return candidates[0] ?? null;
}

function addLoad(loads: Map<CrawlerId, number>, crawlerId: CrawlerId, pagesPerDay: number): void {
  loads.set(crawlerId, (loads.get(crawlerId) ?? 0) + pagesPerDay);
}

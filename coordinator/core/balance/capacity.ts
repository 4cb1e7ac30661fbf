/**
 * Who is over capacity (paper section 4.4: "the size of the assigned web-pages that the crawler has to check
 * each day"). A partner states pages and bytes per day; planning is done in pages.
 */
import type { CrawlerId } from "../ids.ts";
import type { BalanceInput } from "./plan.ts";

/** Taken while no page has been measured yet: the page that our crawl benchmarks use. */
export const defaultMeanPageBytes = 40_000;

/** Pages a day that both of a partner's limits allow, at this mean size of a page. */
export function effectiveCapacity(
  limits: { readonly pagesPerDay: number; readonly bytesPerDay: number },
  meanPageBytes: number = defaultMeanPageBytes,
): number {
  if (!(meanPageBytes > 0)) return limits.pagesPerDay;
  return Math.min(limits.pagesPerDay, Math.floor(limits.bytesPerDay / meanPageBytes));
}

/** Load of every crawler that is listed or still has a subnet. */
export function loadsOf({ crawlers, subnets }: BalanceInput): Map<CrawlerId, number> {
  const loads = new Map<CrawlerId, number>(crawlers.map(({ crawlerId }) => [crawlerId, 0]));
  for (const { crawlerId, loadPagesPerDay } of subnets) {
    loads.set(crawlerId, (loads.get(crawlerId) ?? 0) + loadPagesPerDay);
  }
  return loads;
}

export interface Overload {
  readonly crawlerId: CrawlerId;
  readonly loadPagesPerDay: number;
  readonly capacityPagesPerDay: number;
}

/** Crawlers with more load than capacity, and departed ones that still have a subnet; the most overloaded first. */
export function overloads(input: BalanceInput): Overload[] {
  const capacities = new Map(
    input.crawlers.map(({ crawlerId, capacityPagesPerDay }) => [crawlerId, capacityPagesPerDay]),
  );
  const withSubnets = new Set(input.subnets.map(({ crawlerId }) => crawlerId));
  return [...loadsOf(input)]
    .map(([crawlerId, loadPagesPerDay]) => ({
      crawlerId,
      loadPagesPerDay,
      capacityPagesPerDay: capacities.get(crawlerId) ?? 0,
    }))
    .filter(({ crawlerId, loadPagesPerDay, capacityPagesPerDay }) =>
      capacityPagesPerDay === 0 ? withSubnets.has(crawlerId) : loadPagesPerDay > capacityPagesPerDay,
    )
    .sort((a, b) => excess(b) - excess(a) || a.crawlerId - b.crawlerId);
}

/**
 * The capacities to plan with. Where the fleet as a whole cannot carry the load, everyone's grows by the same
 * factor, so that all are equally overloaded and a departed crawler still gets rid of its subnets. Crawlers
 * that are not listed have none.
 */
export function workingCapacities(input: BalanceInput): Map<CrawlerId, number> {
  const total = input.subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  const carried = input.crawlers.reduce((sum, { capacityPagesPerDay }) => sum + capacityPagesPerDay, 0);
  const factor = carried > 0 && total > carried ? total / carried : 1;
  const capacities = new Map<CrawlerId, number>(input.subnets.map(({ crawlerId }) => [crawlerId, 0]));
  for (const { crawlerId, capacityPagesPerDay } of input.crawlers)
    capacities.set(crawlerId, capacityPagesPerDay * factor);
  return capacities;
}

const excess = ({ loadPagesPerDay, capacityPagesPerDay }: Overload) => loadPagesPerDay - capacityPagesPerDay;

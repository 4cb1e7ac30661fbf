/**
 * Who is over capacity (paper section 4.4: "the size of the assigned web-pages that the crawler has to check
 * each day"). A partner states pages and bytes per day, and neither may be exceeded.
 */
import type { CrawlerId } from "#core/ids";
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
  readonly loadBytesPerDay: number;
  /** Infinite where the partner set no such limit. */
  readonly capacityBytesPerDay: number;
}

/**
 * Crawlers with more load than capacity, in pages or in bytes, and departed ones that still have a subnet; the most
 * overloaded in pages first.
 */
export function overloads(input: Pick<BalanceInput, "crawlers" | "subnets">): Overload[] {
  const burdens = new Map<CrawlerId, Writable<Overload> & { subnets: number }>();
  const burdenOf = (crawlerId: CrawlerId) => {
    const known = burdens.get(crawlerId) ?? { ...unloaded, crawlerId, subnets: 0 };
    burdens.set(crawlerId, known);
    return known;
  };
  for (const { crawlerId, capacityPagesPerDay, capacityBytesPerDay } of input.crawlers)
    Object.assign(burdenOf(crawlerId), {
      capacityPagesPerDay,
      capacityBytesPerDay: capacityBytesPerDay ?? Number.POSITIVE_INFINITY,
    });
  for (const { crawlerId, loadPagesPerDay, loadBytesPerDay } of input.subnets) {
    const burden = burdenOf(crawlerId);
    burden.subnets++;
    burden.loadPagesPerDay += loadPagesPerDay;
    burden.loadBytesPerDay += loadBytesPerDay ?? 0;
  }
  return [...burdens.values()]
    .filter((burden) => isOver(burden) || (burden.capacityPagesPerDay === 0 && burden.subnets > 0))
    .map(({ subnets: _subnets, ...overload }) => overload)
    .sort((a, b) => excess(b) - excess(a) || a.crawlerId - b.crawlerId);
}

type Writable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

const unloaded = {
  loadPagesPerDay: 0,
  capacityPagesPerDay: 0,
  loadBytesPerDay: 0,
  capacityBytesPerDay: Number.POSITIVE_INFINITY,
};

const isOver = (burden: Overload) =>
  burden.loadPagesPerDay > burden.capacityPagesPerDay || burden.loadBytesPerDay > burden.capacityBytesPerDay;

const excess = ({ loadPagesPerDay, capacityPagesPerDay }: Overload) => loadPagesPerDay - capacityPagesPerDay;

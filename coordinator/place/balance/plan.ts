/** Input and output of a balancing policy, which is pure and deterministic. A departed crawler has capacity 0. */
import type { CrawlerId, SubnetId } from "#core/ids";
import { type DayLimits, defaultMeanPageBytes } from "../crawlers/crawler.ts";

export interface BalanceInput {
  readonly crawlers: readonly BalanceCrawler[];
  readonly subnets: readonly BalanceSubnet[];
  /** RTT between two crawlers, in either direction; undefined when unmeasured. */
  readonly crawlerRttMs: (a: CrawlerId, b: CrawlerId) => number | undefined;
}

export interface BalanceCrawler {
  readonly crawlerId: CrawlerId;
  readonly capacityPagesPerDay: number;
  /** The partner's limit in bytes; none when absent. */
  readonly capacityBytesPerDay?: number;
}

export interface BalanceSubnet {
  readonly subnetId: SubnetId;
  /** The present crawler; one that is not listed counts as departed. */
  readonly crawlerId: CrawlerId;
  readonly loadPagesPerDay: number;
  /** Not counted when absent. */
  readonly loadBytesPerDay?: number;
  /** Measured RTTs in ms; crawlers that never measured it are absent. */
  readonly rttMs: ReadonlyMap<CrawlerId, number>;
}

export interface Move {
  readonly subnetId: SubnetId;
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  /** The new crawler's RTT less the old one's: what the move costs every page. */
  readonly addedRttMs: number;
  /** Whether either RTT is predicted and should be probed before the move. */
  readonly predicted: boolean;
}

/** Pages per day that both limits allow, at this mean page size. */
export function effectiveCapacity(limits: DayLimits, meanPageBytes: number = defaultMeanPageBytes): number {
  if (!(meanPageBytes > 0)) return limits.pagesPerDay;
  return Math.min(limits.pagesPerDay, Math.floor(limits.bytesPerDay / meanPageBytes));
}

/** Crawlers over capacity in pages or bytes, and departed ones that still have a subnet; most overloaded in pages first. */
export function overloads(input: Pick<BalanceInput, "crawlers" | "subnets">): CrawlerId[] {
  const burdens = new Map<CrawlerId, Burden>();
  const burdenOf = (crawlerId: CrawlerId) => {
    const known = burdens.get(crawlerId) ?? { ...unlisted };
    burdens.set(crawlerId, known);
    return known;
  };
  for (const { crawlerId, capacityPagesPerDay, capacityBytesPerDay } of input.crawlers)
    Object.assign(burdenOf(crawlerId), {
      mostPages: capacityPagesPerDay,
      mostBytes: capacityBytesPerDay ?? Number.POSITIVE_INFINITY,
    });
  for (const { crawlerId, loadPagesPerDay, loadBytesPerDay } of input.subnets) {
    const burden = burdenOf(crawlerId);
    burden.subnets++;
    burden.pages += loadPagesPerDay;
    burden.bytes += loadBytesPerDay ?? 0;
  }
  return [...burdens]
    .filter(([, { pages, bytes, mostPages, mostBytes, subnets }]) => {
      return pages > mostPages || bytes > mostBytes || (mostPages === 0 && subnets > 0);
    })
    .sort(([a, one], [b, other]) => other.pages - other.mostPages - (one.pages - one.mostPages) || a - b)
    .map(([crawlerId]) => crawlerId);
}

type Burden = { -readonly [Name in keyof typeof unlisted]: number };

/** No byte limit. */
const unlisted = { pages: 0, bytes: 0, mostPages: 0, mostBytes: Number.POSITIVE_INFINITY, subnets: 0 };

/**
 * What keeps subnets from wandering. A move has to pay: leaving its crawler costs a subnet something on top, so that
 * it goes only where it saves more, or where an overload makes it go (and then whichever subnet goes the cheapest).
 * The same holds for the way home when there is room again. Relief has a dead band: it begins when a crawler is over
 * its capacity and goes on until it is a little under, and nobody is filled beyond that mark, so that the noise of
 * loads does not make it begin again the next day.
 */
export interface BalanceSettings {
  /** Minimum saving per page; less is within measurement differences of one path. */
  readonly leastSavingMs: number;
  /** Minimum total saving per day: the cost of a probe, a hand-over and cold connections. */
  readonly leastSavingMsPagesPerDay: number;
  /** Relief continues until this share of the capacity is free. */
  readonly deadBandShare: number;
}

/**
 * Chosen on simulated fortnights (test/bench/results/balance.md): 10 ms and 2 % make a quarter of the moves that planning
 * without hysteresis makes, at pages that are 6 % further away; a larger dead band costs more than it spares. 20 ms × pages a day: about a probe.
 */
export const defaultBalanceSettings: BalanceSettings = {
  leastSavingMs: 10,
  leastSavingMsPagesPerDay: 20,
  deadBandShare: 0.02,
};

/** The cheapest plan, however many moves it takes. */
export const noHysteresis: BalanceSettings = {
  leastSavingMs: 0,
  leastSavingMsPagesPerDay: 0,
  deadBandShare: 0,
};

/** Breaks ties in favour of staying. */
const stayMs = 1e-6;

/** Any subnet, however small its load, may move for this. */
const mostLeaveMs = 300;

/** The cost of leaving its crawler in ms per page. Loads are rounded to powers of two, so that it does not change with every page. */
export function leaveCostMs(pagesPerDay: number, settings: BalanceSettings): number {
  const { leastSavingMs, leastSavingMsPagesPerDay } = settings;
  const perPageMs =
    leastSavingMsPagesPerDay === 0 ? 0 : leastSavingMsPagesPerDay / 2 ** loadClass(pagesPerDay);
  return stayMs + Math.min(mostLeaveMs, leastSavingMs + perPageMs);
}

/** Loads of one class cost the same to move. */
function loadClass(pagesPerDay: number): number {
  return Math.floor(Math.log2(Math.max(pagesPerDay, 2 ** -10)));
}

/** The planning capacity from a crawler's capacity and load, in the same unit. */
export function plannedCapacity(capacity: number, load: number, { deadBandShare }: BalanceSettings): number {
  const mark = (1 - deadBandShare) * capacity;
  return load > capacity ? mark : Math.max(mark, load);
}

/** The balancing policies' names in settings. */
export const balancePolicyNames = ["min-cost-flow", "variance-rule"] as const;

export type BalancePolicyName = (typeof balancePolicyNames)[number];

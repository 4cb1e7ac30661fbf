/** Settings, input and output of a balancing policy, which is pure and deterministic. A departed crawler has capacity 0. */
import { z } from "zod";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type DeepReadonly, policy, seconds } from "../../core/policy.ts";

export interface BalanceInput {
  readonly crawlers: readonly BalanceCrawler[];
  readonly subnets: readonly BalanceSubnet[];
  /** RTT between two crawlers, in either direction. Undefined if unmeasured. */
  readonly crawlerRttMs: (a: CrawlerId, b: CrawlerId) => number | undefined;
}

interface BalanceCrawler {
  readonly crawlerId: CrawlerId;
  readonly capacityPagesPerDay: number;
  /** The partner's limit in bytes. If absent, there is none. */
  readonly capacityBytesPerDay?: number;
}

export interface BalanceSubnet {
  readonly subnetId: SubnetId;
  /** The present crawler. One that is not listed counts as departed. */
  readonly crawlerId: CrawlerId;
  readonly loadPagesPerDay: number;
  readonly loadBytesPerDay?: number;
  /** Measured RTTs in ms. Crawlers that never measured the subnet are absent. */
  readonly rttMs: ReadonlyMap<CrawlerId, number>;
}

export interface Move {
  readonly subnetId: SubnetId;
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  /** The new crawler's RTT minus the old one's: the cost of the move to every page. */
  readonly addedRttMs: number;
  /** Whether either RTT is predicted and should be probed before the move. */
  readonly predicted: boolean;
}

/** A crawler's daily load and limits. A limit in bytes is infinite if not stated. */
export interface Burden {
  pages: number;
  bytes: number;
  subnets: number;
  mostPages: number;
  mostBytes: number;
}

/** A crawler that is not listed has no capacity. */
export const unlisted: Readonly<Burden> = {
  ...{ pages: 0, bytes: 0, subnets: 0, mostPages: 0, mostBytes: Number.POSITIVE_INFINITY },
};

/** The burdens of the listed crawlers and of all others that have a subnet. */
export function burdensOf({ crawlers, subnets }: Omit<BalanceInput, "crawlerRttMs">): Map<CrawlerId, Burden> {
  const burdens = new Map<CrawlerId, Burden>();
  for (const { crawlerId, capacityPagesPerDay: mostPages, capacityBytesPerDay } of crawlers)
    burdens.set(crawlerId, { ...unlisted, mostPages, mostBytes: capacityBytesPerDay ?? unlisted.mostBytes });
  for (const { crawlerId, loadPagesPerDay, loadBytesPerDay = 0 } of subnets) {
    const burden = burdens.get(crawlerId) ?? { ...unlisted };
    burdens.set(crawlerId, burden);
    burden.subnets += 1;
    burden.pages += loadPagesPerDay;
    burden.bytes += loadBytesPerDay;
  }
  return burdens;
}

/** Crawlers over a limit, and departed ones that still have a subnet. The most overloaded in pages come first. */
export function overloads(burdens: ReadonlyMap<CrawlerId, Readonly<Burden>>): CrawlerId[] {
  return [...burdens]
    .filter(([, { pages, bytes, mostPages, mostBytes, subnets }]) => {
      return pages > mostPages || bytes > mostBytes || (mostPages === 0 && subnets > 0);
    })
    .sort(([a, one], [b, other]) => other.pages - other.mostPages - (one.pages - one.mostPages) || a - b)
    .map(([crawlerId]) => crawlerId);
}

/**
 * Keeps subnets from moving back and forth. A move has to pay: leaving its crawler costs a subnet something extra, so that it
 * moves only where it saves more, or when an overload forces a move (and then the cheapest subnet moves). The same holds for
 * the way home when there is room again. Relief has a dead band. It begins when a crawler is over its capacity and continues
 * until it is a little under, and nobody is filled beyond that mark, so that the noise of loads does not restart it the next
 * day.
 */
export interface Hysteresis {
  /** Minimum saving per page. Smaller differences occur between measurements of one path. */
  readonly leastSavingMs: number;
  /** Minimum total saving per day: the cost of a probe, a hand-over and cold connections. */
  readonly leastSavingMsPagesPerDay: number;
  /** Relief continues until this share of the capacity is free. */
  readonly deadBandShare: number;
}

/**
 * Chosen on simulated fortnights (test/bench/results/balance.md). 10 ms and 2 % make a quarter of the moves that planning
 * without hysteresis makes, with pages 6 % further away. A larger dead band costs more than it saves. 20 ms × pages a day is
 * about a probe.
 */
export const defaultHysteresis: Hysteresis = {
  leastSavingMs: 10,
  leastSavingMsPagesPerDay: 20,
  deadBandShare: 0.02,
};

/** The cheapest plan, whatever the number of moves. */
export const noHysteresis: Hysteresis = {
  leastSavingMs: 0,
  leastSavingMsPagesPerDay: 0,
  deadBandShare: 0,
};

/** Breaks ties in favour of staying. */
const stayMs = 1e-6;

/** Maximum cost of leaving. For this saving any subnet may move, however small its load. */
const mostLeaveMs = 300;

/** The cost of leaving its crawler, in ms per page. Loads are rounded to powers of two to keep it stable. */
export function leaveCostMs(pagesPerDay: number, settings: Hysteresis): number {
  const { leastSavingMs, leastSavingMsPagesPerDay } = settings;
  const perPageMs =
    leastSavingMsPagesPerDay === 0 ? 0 : leastSavingMsPagesPerDay / 2 ** loadClass(pagesPerDay);
  return stayMs + Math.min(mostLeaveMs, leastSavingMs + perPageMs);
}

/** Loads of one class cost the same to move. */
function loadClass(pagesPerDay: number): number {
  return Math.floor(Math.log2(Math.max(pagesPerDay, 2 ** -10)));
}

/** Pages and bytes per day that a plan may give each crawler. */
interface Capacities {
  readonly pages: Float64Array;
  readonly bytes: Float64Array;
}

/**
 * Leaves the dead band free if the fleet has room for it, and otherwise uses the stated capacities. If even these do not
 * suffice, all of them grow by the same factor, so that the overload is shared equally.
 */
export function plannedCapacities(
  burdens: readonly Readonly<Burden>[],
  { deadBandShare }: Hysteresis = noHysteresis,
): Capacities {
  const of = (figure: (burden: Readonly<Burden>) => number) => Float64Array.from(burdens, figure);
  const banded = (capacity: number, load: number) => {
    const mark = (1 - deadBandShare) * capacity;
    return load > capacity ? mark : Math.max(mark, load);
  };
  const [pages, bytes] = [sum(of((one) => one.pages)), sum(of((one) => one.bytes))];
  const usual = {
    pages: of((one) => banded(one.mostPages, one.pages)),
    bytes: of((one) => banded(one.mostBytes, one.bytes)),
  };
  if (sum(usual.pages) >= pages && sum(usual.bytes) >= bytes) return usual;
  return {
    pages: grownTo(
      of((one) => one.mostPages),
      pages,
    ),
    bytes: grownTo(
      of((one) => one.mostBytes),
      bytes,
    ),
  };
}

function grownTo(capacities: Float64Array, load: number): Float64Array {
  const carried = sum(capacities);
  return carried > 0 && load > carried
    ? capacities.map((capacity) => (capacity * load) / carried)
    : capacities;
}

/**
 * With equal loads, rounds capacities to whole subnets. If the lost fractions are needed, the crawlers with the largest ones
 * take another subnet.
 */
export function wholeUnits(capacities: Float64Array, unit: number, subnets: number): Float64Array {
  // Adds a margin, so that a capacity of 0.3 carries three subnets of 0.1.
  const units = capacities.map((capacity) => capacity / unit + 1e-9);
  const whole = units.map(Math.floor);
  const fraction = (crawler: number) => units[crawler]! % 1;
  const byFraction = [...units.keys()].sort((a, b) => fraction(b) - fraction(a) || a - b);
  const missing = subnets - sum(whole);
  for (const crawler of byFraction.slice(0, Math.max(0, missing))) whole[crawler]! += 1;
  return whole.map((count) => count * unit);
}

const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);

export const balanceSettings = z.strictObject({
  policy: policy(z.enum(["min-cost-flow", "variance-rule", "none"]).default("min-cost-flow"), {
    title: "Balance policy",
    help: "Which subnets an overloaded crawler gives up, and to whom; none leaves overloads alone.",
    unit: null,
    origin: "measured, test/bench/results/balance.md",
  }),
  everySeconds: seconds(86_400).default(60),
  movesPerPass: z.int().min(1).max(100_000).default(500),
});

export type BalanceSettings = DeepReadonly<z.infer<typeof balanceSettings>>;

/**
 * How often pages are fetched again: the strategy in force, with what it has computed for the whole fleet. Each
 * result of a page sets the page's own interval from it, in O(1).
 *
 * fixed     one interval for all pages
 * iir, icr  one interval for each priority group of channels: hosts, and what is configured of them (SARSS, priority-groups.ts)
 * optimal   the rate at which one more fetch adds the same freshness everywhere (optimal-rates.ts)
 */
import { usualChangesPerDay } from "./change-rate.ts";

export const recrawlStrategies = ["fixed", "iir", "icr", "optimal"] as const;
export type RecrawlStrategy = (typeof recrawlStrategies)[number];

export interface RateBounds {
  readonly leastPerDay: number;
  readonly mostPerDay: number;
  /** Maximum fetches of a page per estimated change (SARSS section 4.3 sets 2, see `defaultRateBounds`). */
  readonly visitsPerChange: number;
}

export interface PlanInForce {
  readonly strategy: RecrawlStrategy;
  /** The multiplier of *optimal*; null until it is computed. */
  readonly multiplier: number | null;
  /** The intervals of iir and icr, most urgent group first; empty until they are computed. */
  readonly groupIntervalSeconds: readonly number[];
  readonly bounds: RateBounds;
  /** Number of URLs with a PageRank. If 0, importance follows from back-links. */
  readonly rankedPages: number;
  /** Expected changes per day of a page about which nothing is known. */
  readonly usualChangesPerDay: number;
}

/**
 * SARSS's limit of 2 visits per change suits groups that take what they can. Where a total is divided it does harm:
 * what slow pages leave over goes to those that change too fast, and with less than one change between two fetches
 * the index is less fresh than at a fixed interval. At 10 hardly anything is lost, and static pages still take none
 * of the fleet's time (test/recrawl/optimal-rates).
 */
export const defaultRateBounds: RateBounds = { leastPerDay: 1 / 60, mostPerDay: 24, visitsPerChange: 10 };

export const fixedPlan: PlanInForce = {
  strategy: "fixed",
  multiplier: null,
  groupIntervalSeconds: [],
  bounds: defaultRateBounds,
  rankedPages: 0,
  usualChangesPerDay,
};

export interface PlannedPage {
  readonly changesPerDay: number;
  readonly importance: number;
  readonly group: number | null;
  /** The multiplier of the page's host; null to use the plan's. */
  readonly hostMultiplier: number | null;
}

const daySeconds = 86_400;

/** Returns the time from this fetch to the next; null if the plan cannot say yet, so that the fixed interval applies. */
export function plannedIntervalSeconds(page: PlannedPage, plan: PlanInForce): number | null {
  switch (plan.strategy) {
    case "fixed":
      return null;
    case "iir":
    case "icr":
      return page.group === null ? null : (plan.groupIntervalSeconds[page.group] ?? null);
    case "optimal":
      return plan.multiplier === null ? null : daySeconds / optimalRate(page, plan.multiplier, plan.bounds);
  }
}

function optimalRate(page: PlannedPage, multiplier: number, bounds: RateBounds): number {
  const own = Math.max(multiplier, page.hostMultiplier ?? 0);
  const rate = rateAtMultiplier(page.changesPerDay, page.importance, own);
  return Math.min(mostPerDay(page.changesPerDay, bounds), Math.max(bounds.leastPerDay, rate));
}

export function mostPerDay(changesPerDay: number, bounds: RateBounds): number {
  return Math.max(bounds.leastPerDay, Math.min(bounds.mostPerDay, bounds.visitsPerChange * changesPerDay));
}

/** Importance of a page outside the graph: the rank it has from random jumps (PageRank's 1 − 0.85), relative to the mean. */
const unrankedImportance = 0.15;

/** Weight of a page's freshness: its PageRank relative to the mean, or else the logarithm of its back-links. */
export function importanceOf(
  page: { readonly pageRank: number | null; readonly backLinks: number },
  rankedPages: number,
): number {
  if (rankedPages > 0) return Math.max(unrankedImportance, (page.pageRank ?? 0) * rankedPages);
  return 1 + Math.log2(1 + Math.max(0, page.backLinks));
}

/**
 * Freshness of one page: the share of time in which the stored copy is current, if the page changes as a Poisson
 * process (λ per day) and is fetched f times per day at even distances: (f/λ)(1 − e^(−λ/f)) (J. Cho, H.
 * Garcia-Molina, "Effective page refresh policies for web crawlers", ACM TODS 28(4), 2003). Distances are even rather
 * than random (f/(f + λ), Azar et al. 2018), because each result sets the time of the next fetch. Even distances are
 * never worse.
 */
export function freshnessOf(fetchesPerDay: number, changesPerDay: number): number {
  if (changesPerDay === 0) return 1;
  if (fetchesPerDay === 0) return 0;
  const changesPerFetch = changesPerDay / fetchesPerDay;
  return changesPerFetch === 0 ? 1 : -Math.expm1(-changesPerFetch) / changesPerFetch;
}

/**
 * Returns the rate at which one more fetch per day adds `multiplier` to importance times freshness. With x = λ/f
 * changes between fetches: importance/λ · (1 − (1 + x)e^(−x)) = multiplier. 0 for pages that change too often, or
 * matter too little, to gain that much.
 */
export function rateAtMultiplier(changesPerDay: number, importance: number, multiplier: number): number {
  const share = (multiplier * changesPerDay) / importance;
  if (!(changesPerDay > 0) || !(share < 1)) return 0;
  return changesPerDay / changesPerFetchAt(share);
}

/**
 * Solves 1 − (1 + x)e^(−x) = share for a share in (0, 1): interpolates in a table, then refines by Halley's steps to
 * about 1e-13.
 */
export function changesPerFetchAt(share: number): number {
  if (share < 1e-8) return seriesRoot(share);
  let x = share < tableEnd ? fromTable(share) : nearOne(1 - share);
  for (let step = 0; step < 20; step++) {
    const power = Math.exp(-x);
    const newton = (1 - (1 + x) * power - share) / (x * power);
    // The second derivative over the first is 1/x − 1.
    const change = newton / (1 - (newton * (1 / x - 1)) / 2);
    x -= change;
    // Convergence is cubic, so the next step would be below 1e-13.
    if (Math.abs(change) <= 3e-5 * x) break;
  }
  return x;
}

/** Up to this share, x is interpolated in a table over the root of the share, in which it is nearly linear. */
const tableEnd = 0.99;

const tableSteps = 1024;
const table = Float64Array.from({ length: tableSteps + 2 }, (_, step) => slowRoot((step / tableSteps) ** 2));

function fromTable(share: number): number {
  const at = Math.sqrt(share) * tableSteps;
  const step = Math.floor(at);
  return table[step]! + (at - step) * (table[step + 1]! - table[step]!);
}

function slowRoot(share: number): number {
  let [low, high] = [0, 50];
  while (high - low > 1e-12) {
    const middle = (low + high) / 2;
    if (-Math.expm1(-middle) - middle * Math.exp(-middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

/** Solves (1 + x)e^(−x) = rest by iterating x = ln((1 + x)/rest) three times. */
function nearOne(rest: number): number {
  const first = -Math.log(rest) + 1;
  const second = Math.log1p(first) - Math.log(rest);
  return Math.log1p(second) - Math.log(rest);
}

/** Solves x²/2 − x³/3 = share, since for small shares the closed form would lose precision. */
function seriesRoot(share: number): number {
  const x = Math.sqrt(2 * share);
  return x * (1 + x / 3);
}

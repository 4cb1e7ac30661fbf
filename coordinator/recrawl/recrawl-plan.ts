/**
 * How often pages are fetched again, as it is in force: the strategy with what it has worked out for the whole fleet.
 * A page's own interval follows from it at each of its results, in O(1).
 *
 * fixed     one interval for all pages
 * iir, icr  one interval for each priority group of channels: hosts, and what is configured of them (SARSS, iterated-interval.ts, iterated-capacity.ts)
 * optimal   the rate at which one more fetch adds the same freshness everywhere (optimal-rates.ts)
 */
import { usualChangesPerDay } from "./change-rate.ts";
import { rateAtMultiplier } from "./freshness.ts";

export const recrawlStrategies = ["fixed", "iir", "icr", "optimal"] as const;
export type RecrawlStrategy = (typeof recrawlStrategies)[number];

/** Bounds of a page's rate. */
export interface RateBounds {
  readonly leastPerDay: number;
  readonly mostPerDay: number;
  /** No page is fetched more often than so many times its estimated changes (SARSS section 4.3 names 2, see `defaultRateBounds`). */
  readonly visitsPerChange: number;
}

export interface PlanInForce {
  readonly strategy: RecrawlStrategy;
  /** Of *optimal*; null: not worked out yet. */
  readonly multiplier: number | null;
  /** Of iir and icr, most urgent first; empty: not worked out yet. */
  readonly groupIntervalSeconds: readonly number[];
  readonly bounds: RateBounds;
  /** URLs that have a PageRank; 0: importance is by back-links. */
  readonly rankedPages: number;
  /** What a page is expected to change that nothing is known of. */
  readonly usualChangesPerDay: number;
}

/**
 * SARSS's limit of 2 visits for each change is for groups that take what they can. Where a total is divided it does harm:
 * what slow pages may not have goes to those that change too fast, and where pages change less than once between two
 * fetches, an index under it is less fresh than one at a fixed interval. At 10 hardly anything is lost any more, and no
 * page that is thought still takes the fleet's time (test/core/recrawl/optimal-rates).
 */
export const defaultRateBounds: RateBounds = { leastPerDay: 1 / 60, mostPerDay: 24, visitsPerChange: 10 };

/** One interval for all pages. */
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
  /** Of its host; null: the plan's. */
  readonly hostMultiplier: number | null;
}

const daySeconds = 86_400;

/** From this fetch to the next; null: the plan says nothing of the page yet, so that the fixed interval holds. */
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

/** Of a page that the graph does not know: what a jump to any page gives it (PageRank's 1 − 0.85), in means. */
const unrankedImportance = 0.15;

/** How much a page's freshness counts: its PageRank in units of the mean one, or by the logarithm of its back-links. */
export function importanceOf(
  page: { readonly pageRank: number | null; readonly backLinks: number },
  rankedPages: number,
): number {
  if (rankedPages > 0) return Math.max(unrankedImportance, (page.pageRank ?? 0) * rankedPages);
  return 1 + Math.log2(1 + Math.max(0, page.backLinks));
}

/** What planning works with (plan-recrawls.ts, plan-optimal-recrawls.ts), and a plan that holds nothing yet. */

import type { RecrawlPlan, RecrawlPlanStore } from "./make-plan.ts";
import { fixedPlan, type RateBounds, type RecrawlStrategy } from "./recrawl-plan.ts";
import type { RecrawlPolicies } from "./settings.ts";

export interface PlanningPorts {
  readonly store: RecrawlPlanStore;
  readonly policies: RecrawlPolicies;
  readonly now: Date;
}

export function boundsOf({ shortestHours, longestDays, visitsPerChange }: RecrawlPolicies): RateBounds {
  return { leastPerDay: 1 / longestDays, mostPerDay: 24 / shortestHours, visitsPerChange };
}

export function emptyPlan({ policies, now }: PlanningPorts, last: RecrawlPlan | null): RecrawlPlan {
  const { strategy } = policies;
  return {
    ...fixedPlan,
    strategy,
    bounds: boundsOf(policies),
    madeAt: now,
    since: last?.strategy === strategy ? last.since : now,
    reason: "",
    groups: [],
    pages: 0,
    allowedPerDay: 0,
    totalPerDay: 0,
    achievedPerDay: null,
    freshness: null,
    lastLeaseId: "0",
    capacityPerDay: 0,
    correction: 1,
  };
}

// The time from one fetch of a page to its next, over all pages: what a crawler's load comes to.

/** Of a plan that was made. */
export interface PlannedTotal {
  readonly strategy: RecrawlStrategy;
  readonly pages: number;
  /** Fetches a day of these pages; 0: the plan says nothing of it. */
  readonly totalPerDay: number;
  /** What the fleet was found to manage of them, as *optimal* measures it. */
  readonly capacityPerDay: number;
}

export interface IntervalPolicies {
  readonly strategy: RecrawlStrategy;
  readonly intervalHours: number;
  readonly total: "interval" | "capacity";
}

/**
 * In days. A plan of another strategy says nothing, nor does one without pages: until the policies' own is made, the
 * fixed interval holds. *optimal* divides what the interval comes to, so that another interval is seen before it is
 * planned with; but never more than the fleet manages.
 */
export function meanIntervalDays(policies: IntervalPolicies, plan: PlannedTotal | null): number {
  const asked = policies.intervalHours / 24;
  if (plan === null || policies.strategy === "fixed" || plan.strategy !== policies.strategy) return asked;
  if (!(plan.pages > 0) || !(plan.totalPerDay > 0)) return asked;
  const planned = plan.pages / plan.totalPerDay;
  if (policies.strategy !== "optimal" || policies.total === "capacity") return planned;
  return plan.capacityPerDay > 0 ? Math.max(asked, plan.pages / plan.capacityPerDay) : asked;
}

/** What planning works with (plan-recrawls.ts, plan-optimal-recrawls.ts), and a plan that holds nothing yet. */
import type { PolicySettings } from "../settings/schema.ts";
import type { RecrawlPlan, RecrawlPlanStore } from "./make-plan.ts";
import { fixedPlan, type RateBounds } from "./recrawl-plan.ts";

export type RecrawlPolicies = PolicySettings["recrawl"];

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

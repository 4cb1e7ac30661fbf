/** What planning works with (plan-recrawls.ts, plan-optimal-recrawls.ts), and a plan that holds nothing yet. */
import { z } from "zod";
import { leastChangesPerDay, mostChangesPerDay, usualChangesPerDay } from "./change-rate.ts";
import type { RecrawlPlan, RecrawlPlanStore } from "./make-plan.ts";
import {
  defaultRateBounds,
  fixedPlan,
  type RateBounds,
  type RecrawlStrategy,
  recrawlStrategies,
} from "./recrawl-plan.ts";

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

// Forms of settings that several rooms share.

export const seconds = (most: number) => z.number().positive().max(most);

// The settings of recrawl: in the coordinator's file, and as policies that operators change while it runs.

export const recrawlSettings = z.strictObject({
  intervalHours: z
    .number()
    .positive()
    .max(24 * 3650)
    .default(24 * 7),
  /** recrawl/recrawl-plan. */
  strategy: z.enum(recrawlStrategies).default("fixed"),
  /** Of `optimal`: as many fetches as `intervalHours` for every page comes to, or all that the fleet is found to manage. */
  total: z.enum(["interval", "capacity"]).default("interval"),
  /** Priority groups of iir and icr; SARSS section 4 has 5. */
  groups: z.int().min(2).max(20).default(5),
  /** δ: a group that succeeds more often than before is tried at an interval so much shorter. */
  encourageRate: z.number().min(0.1).max(0.999).default(0.9),
  /** σ and μ of checkPriorities: bounds on an interval, in that of the more urgent group before it. */
  smallestMultiple: z.number().min(1).max(100).default(1.1),
  biggestMultiple: z.number().min(1).max(1000).default(4),
  /** No page is fetched more often than this, however often it changes, nor less often than `longestDays`. */
  shortestHours: z
    .number()
    .positive()
    .max(24 * 365)
    .default(1),
  longestDays: z.number().positive().max(3650).default(60),
  /** SARSS section 4.3 has an upper limit such as 2 times the change frequency; why it is larger here: defaultRateBounds. */
  visitsPerChange: z.number().min(0.1).max(100).default(defaultRateBounds.visitsPerChange),
  usualChangesPerDay: z.number().min(leastChangesPerDay).max(mostChangesPerDay).default(usualChangesPerDay),
  /** How often it is looked whether intervals are to be made anew. */
  everySeconds: seconds(86_400).default(600),
});

export type RecrawlPolicies = Readonly<z.infer<typeof recrawlSettings>>;

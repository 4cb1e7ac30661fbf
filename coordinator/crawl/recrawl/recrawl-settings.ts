/** Recrawl settings, in the coordinator's file and as policies that operators change at run time, and the mean interval. */
import { z } from "zod";
import { policy, seconds } from "../../core/policy.ts";
import { leastChangesPerDay, mostChangesPerDay, usualChangesPerDay } from "./change-rate.ts";
import type { RecrawlPlan } from "./make-plan.ts";
import {
  defaultRateBounds,
  fixedPlan,
  type RateBounds,
  type RecrawlStrategy,
  recrawlStrategies,
} from "./recrawl-plan.ts";

export function boundsOf({ shortestHours, longestDays, visitsPerChange }: RecrawlPolicies): RateBounds {
  return { leastPerDay: 1 / longestDays, mostPerDay: 24 / shortestHours, visitsPerChange };
}

export function emptyPlan(
  { policies, now }: { readonly policies: RecrawlPolicies; readonly now: Date },
  last: RecrawlPlan | null,
): RecrawlPlan {
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

// The mean time between two fetches of a page. It determines how much work a crawler has.

export interface PlannedTotal {
  readonly strategy: RecrawlStrategy;
  readonly pages: number;
  /** Planned fetches of these pages per day; 0 if not planned. */
  readonly totalPerDay: number;
  /** Capacity of the fleet in fetches per day, as measured by *optimal*. */
  readonly capacityPerDay: number;
}

export interface IntervalPolicies {
  readonly strategy: RecrawlStrategy;
  readonly intervalHours: number;
  readonly total: "interval" | "capacity";
}

/**
 * The mean interval in days. It is the fixed interval if the plan is of another strategy or has no pages. *optimal*
 * plans for the total that this interval gives, but never for more than the fleet achieves.
 */
export function meanIntervalDays(policies: IntervalPolicies, plan: PlannedTotal | null): number {
  const asked = policies.intervalHours / 24;
  if (plan === null || policies.strategy === "fixed" || plan.strategy !== policies.strategy) return asked;
  if (!(plan.pages > 0) || !(plan.totalPerDay > 0)) return asked;
  const planned = plan.pages / plan.totalPerDay;
  if (policies.strategy !== "optimal" || policies.total === "capacity") return planned;
  return plan.capacityPerDay > 0 ? Math.max(asked, plan.pages / plan.capacityPerDay) : asked;
}

export const recrawlSettings = z.strictObject({
  intervalHours: policy(
    z
      .number()
      .positive()
      .max(24 * 3650)
      .default(24 * 7),
    {
      title: "Recrawl interval",
      basic: true,
      help: "How long after a fetch a page is due again, which also counts in every crawler's load. Pages already scheduled keep their time.",
      unit: "h",
      origin: "our judgement, a week",
    },
  ),
  strategy: policy(z.enum(recrawlStrategies).default("fixed"), {
    title: "Recrawl strategy",
    basic: true,
    help:
      "fixed: the same interval for every page; iir and icr: groups of hosts and channels at intervals that follow the " +
      "fleet's capacity; optimal: each page at the rate that keeps most of the index fresh.",
    unit: null,
    origin:
      "our judgement: optimal keeps one to two points more fresh, and skips what changes too fast; test/bench/results/recrawl.md",
  }),
  total: policy(z.enum(["interval", "capacity"]).default("interval"), {
    title: "Total recrawl rate",
    help: "With optimal: interval divides as many fetches as recrawl.intervalHours would take for every page; capacity uses all that the fleet manages.",
    unit: null,
    origin: "our judgement, an interval says how much load sites and partners bear",
  }),
  groups: z.int().min(2).max(20).default(5),
  encourageRate: z.number().min(0.1).max(0.999).default(0.9),
  smallestMultiple: z.number().min(1).max(100).default(1.1),
  biggestMultiple: z.number().min(1).max(1000).default(4),
  shortestHours: policy(
    z
      .number()
      .positive()
      .max(24 * 365)
      .default(1),
    {
      title: "Shortest interval",
      help: "With iir, icr and optimal, no page is fetched again sooner, however often it changes.",
      unit: "h",
      origin: "our judgement, hardly any reader notices the rest",
    },
  ),
  longestDays: policy(z.number().positive().max(3650).default(60), {
    title: "Longest interval",
    help: "With iir, icr and optimal, every page is fetched again by then, since even one that never changed may.",
    unit: "days",
    origin: "our judgement",
  }),
  visitsPerChange: z.number().min(0.1).max(100).default(defaultRateBounds.visitsPerChange),
  usualChangesPerDay: z.number().min(leastChangesPerDay).max(mostChangesPerDay).default(usualChangesPerDay),
  everySeconds: seconds(86_400).default(600),
});

export type RecrawlPolicies = Readonly<z.infer<typeof recrawlSettings>>;

/** The time from one fetch of a page to its next, over all pages: what a crawler's load comes to. */
import type { RecrawlStrategy } from "./recrawl-plan.ts";

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

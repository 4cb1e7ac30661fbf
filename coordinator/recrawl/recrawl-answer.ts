/** How often pages are fetched again, for pages, programs and the command: the plan in force, and those before it. */

import type { PlannedGroup, RecrawlPlan, RecrawlPlanStore } from "./make-plan.ts";
import type { RecrawlStrategy } from "./recrawl-plan.ts";

export interface ToldPlan {
  readonly madeAt: string;
  readonly strategy: RecrawlStrategy;
  readonly reason: string;
  /** Since when plans have been of this strategy. */
  readonly since: string;
  readonly pages: number;
  /** Fetches a day: what online crawlers' budgets allow, what they are found to manage, planned, and as measured before. */
  readonly allowedPerDay: number;
  readonly capacityPerDay: number | null;
  readonly plannedPerDay: number | null;
  readonly achievedPerDay: number | null;
  /** By which the planned total is multiplied, since less or more came true; 1: nothing to correct. */
  readonly correction: number;
  /** Expected share of current copies, by importance. */
  readonly freshness: number | null;
  readonly multiplier: number | null;
  readonly groups: readonly PlannedGroup[];
}

export interface RecrawlAnswer {
  readonly now: string;
  /** Newest first, the one in force too; empty: every page after the same interval. */
  readonly plans: readonly ToldPlan[];
}

export async function recrawlAnswer(
  store: Pick<RecrawlPlanStore, "history">,
  limit: number,
  now: Date,
): Promise<RecrawlAnswer> {
  return { now: now.toISOString(), plans: (await store.history(limit)).map(toldPlan) };
}

function toldPlan(plan: RecrawlPlan): ToldPlan {
  return {
    madeAt: plan.madeAt.toISOString(),
    strategy: plan.strategy,
    reason: plan.reason,
    since: plan.since.toISOString(),
    pages: plan.pages,
    allowedPerDay: plan.allowedPerDay,
    capacityPerDay: plan.strategy === "optimal" ? plan.capacityPerDay : null,
    plannedPerDay: plan.totalPerDay > 0 ? plan.totalPerDay : null,
    achievedPerDay: plan.achievedPerDay,
    correction: plan.correction,
    freshness: plan.freshness,
    multiplier: plan.multiplier,
    groups: plan.groups,
  };
}

/** What happens where no plan was ever made. */
export const noPlanWords =
  "No plan was made yet: every page is fetched again after the same interval (policy recrawl.intervalHours). iir and icr begin when half of the pages were compared often enough, with at least as many hosts and channels as recrawl.groups.";

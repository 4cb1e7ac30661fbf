/** Keeps the recrawl plan in force: every coordinator loads it at its start and on every run, and one of them renews it. */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import type { RecrawlPlan } from "./make-plan.ts";
import { latestPlan, latestPlans } from "./plan-store.ts";
import { planRecrawls } from "./plan-writes.ts";
import { type RecrawlPorts, recrawlOperations } from "./recrawl-ask.ts";
import { fixedPlan, type PlanInForce } from "./recrawl-plan.ts";
import { boundsOf, meanIntervalDays, type RecrawlPolicies } from "./recrawl-settings.ts";

export function recrawlDuties(
  ports: {
    readonly pool: Pool;
    readonly timekeeper: Pick<Timekeeper, "every">;
    readonly log: Log;
    readonly now: () => Date;
  },
  config: { readonly recrawl: RecrawlPolicies },
) {
  const { pool, timekeeper, log, now } = ports;
  let latest: RecrawlPlan | null = null;
  const read = async () => {
    latest = await latestPlan(pool);
  };
  const turn = async () => {
    const policies = config.recrawl;
    const plan = await planRecrawls({ pool, policies, now: now() });
    if (plan !== null) {
      const { strategy, reason, totalPerDay } = plan;
      log.info(
        { strategy, reason, totalPerDay: Math.round(totalPerDay) },
        "pages are fetched again by a new plan",
      );
    }
    await read();
  };
  return {
    /** The plan by which incoming results are scheduled. */
    plan: (): PlanInForce => inForce(latest ?? fixedPlan, config.recrawl),
    /** Planned mean interval between two fetches of a page, in days. */
    meanDays: () => meanIntervalDays(config.recrawl, latest),
    start: async () => {
      await read();
      timekeeper.every("plan-recrawls", () => config.recrawl.everySeconds * 1000, turn, { onEach: true });
    },
  };
}

/** Ignores a plan of another strategy than the policy's. Changed limits apply at once. */
function inForce(latest: PlanInForce, policies: RecrawlPolicies): PlanInForce {
  const { strategy } = policies;
  const bounds = boundsOf(policies);
  const { usualChangesPerDay } = policies;
  if (latest.strategy !== strategy) return { ...fixedPlan, strategy, bounds, usualChangesPerDay };
  const leastPerDay = Math.min(bounds.leastPerDay, latest.bounds.leastPerDay);
  return { ...latest, bounds: { ...bounds, leastPerDay }, usualChangesPerDay };
}

export const recrawlPart = (pool: Pool, charts: RecrawlPorts["charts"]): WebPart =>
  addOperations<RecrawlPorts>(recrawlOperations, {
    latestPlans: async (most) => await latestPlans(pool, most),
    charts,
  });

/** The balancing policies by the name that settings use. */
import { planByMinCostFlow } from "./min-cost-flow.ts";
import type { PlanMoves } from "./plan.ts";
import { planByVarianceRule } from "./variance-rule.ts";

export const balancePolicyNames = ["min-cost-flow", "variance-rule"] as const;
export type BalancePolicyName = (typeof balancePolicyNames)[number];

export const balancePolicies: Readonly<Record<BalancePolicyName, PlanMoves>> = {
  "min-cost-flow": planByMinCostFlow,
  "variance-rule": planByVarianceRule,
};

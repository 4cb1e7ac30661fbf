/** The balancing policies by the name that settings use. */
export const balancePolicyNames = ["min-cost-flow", "variance-rule"] as const;
export type BalancePolicyName = (typeof balancePolicyNames)[number];

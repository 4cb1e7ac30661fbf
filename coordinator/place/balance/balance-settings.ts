/** Settings of balancing. */
import { z } from "zod";
import { type DeepReadonly, policy, seconds } from "../../core/policy.ts";
import { balancePolicyNames } from "./plan.ts";

export const balanceSettings = z.strictObject({
  policy: policy(z.enum([...balancePolicyNames, "none"]).default("min-cost-flow"), {
    title: "Balance policy",
    help: "Which subnets an overloaded crawler gives up, and to whom; none leaves overloads alone.",
    unit: null,
    origin: "measured, test/bench/results/balance.md",
  }),
  everySeconds: seconds(86_400).default(60),
  movesPerPass: z.int().min(1).max(100_000).default(500),
});

export type BalanceSettings = DeepReadonly<z.infer<typeof balanceSettings>>;

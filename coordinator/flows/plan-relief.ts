/**
 * Plans with the chosen policy, and again after some of what it wanted to know was measured. `min-cost-flow`
 * plans with hysteresis and says itself which pairs are worth a probe; `variance-rule` is the paper's, and of
 * its moves those are measured whose round-trip time is only predicted.
 */
import { BalancePlanner } from "#core/balance/balance-planner";
import type { BalanceInput, Move } from "#core/balance/plan";
import type { BalancePolicyName } from "#core/balance/policies";
import { planByVarianceRule } from "#core/balance/variance-rule";
import type { CrawlerId, SubnetId } from "#core/ids";

export interface MeasuredPair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

export interface ReliefPlan {
  readonly moves: readonly Move[];
  /** The most worth first. */
  readonly probes: readonly { readonly subnetId: SubnetId; readonly crawlerId: CrawlerId }[];
}

export interface ReliefPlanning {
  plan(): ReliefPlan;
  /** Plans with these from now on. */
  note(measured: readonly MeasuredPair[]): void;
}

export function planRelief(policy: BalancePolicyName, input: BalanceInput): ReliefPlanning {
  return policy === "variance-rule" ? byVarianceRule(input) : byMinCostFlow(input);
}

function byMinCostFlow({ crawlers, subnets, crawlerRttMs }: BalanceInput): ReliefPlanning {
  const planner = new BalancePlanner(crawlerRttMs);
  planner.note({ crawlers, subnets });
  return { plan: () => planner.plan(), note: (measured) => planner.note({ measured }) };
}

function byVarianceRule(input: BalanceInput): ReliefPlanning {
  const rtts = new Map(input.subnets.map(({ subnetId, rttMs }) => [subnetId, new Map(rttMs)]));
  return {
    plan: () => {
      const subnets = input.subnets.map((subnet) => ({
        ...subnet,
        rttMs: rtts.get(subnet.subnetId) ?? subnet.rttMs,
      }));
      const moves = planByVarianceRule({ ...input, subnets });
      const unknown = moves.filter(({ subnetId, to }) => rtts.get(subnetId)?.has(to) !== true);
      return { moves, probes: unknown.map(({ subnetId, to }) => ({ subnetId, crawlerId: to })) };
    },
    note: (measured) => {
      for (const { subnetId, crawlerId, rttMs } of measured) rtts.get(subnetId)?.set(crawlerId, rttMs);
    },
  };
}

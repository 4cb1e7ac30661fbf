/**
 * The balancing policies that are compared, in one form: plan, hear what was measured, plan again. Beside the
 * product's two there are the obvious ones: whichever subnet chance picks, and whichever move costs the least.
 */

import { type BalanceInput, type BalanceSubnet, type Move, noHysteresis } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import { planByVarianceRule } from "#coordinator/balance/variance-rule";
import type { CrawlerId, SubnetId } from "#core/ids";
import { planGreedily, planRandomVictims } from "./balance-baselines.ts";

export const simulatedPolicyNames = ["none", "random", "greedy", "variance-rule", "min-cost-flow"] as const;
export type SimulatedPolicy = (typeof simulatedPolicyNames)[number];

export interface Pair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
}

export interface BalancePlanning {
  /** Moves, and the pairs that are to be measured before they are made. */
  plan(): { readonly moves: readonly Move[]; readonly probes: readonly Pair[] };
  note(measured: readonly (Pair & { readonly rttMs: number })[]): void;
  /** The moves to make in the end: nothing unmeasured is relied on. */
  finalMoves(): readonly Move[];
}

export function balancePlanning(policy: SimulatedPolicy, input: BalanceInput, seed: number): BalancePlanning {
  switch (policy) {
    case "none":
      return { plan: () => ({ moves: [], probes: [] }), note: () => {}, finalMoves: () => [] };
    case "random":
      return stateless(input, (known) => planRandomVictims(known, seed));
    case "greedy":
      return stateless(input, planGreedily);
    case "variance-rule":
      return stateless(input, planByVarianceRule);
    case "min-cost-flow":
      return byPlanner(input);
  }
}

function byPlanner({ crawlers, subnets, crawlerRttMs }: BalanceInput): BalancePlanning {
  const planner = new BalancePlanner(crawlerRttMs, noHysteresis);
  planner.note({ crawlers, subnets });
  return {
    plan: () => planner.plan(),
    note: (measured) => planner.note({ measured }),
    finalMoves: () => planner.planMeasured(),
  };
}

/** Those without a state of their own plan from scratch each time; they measure what their moves rely on. */
function stateless(input: BalanceInput, planMoves: (input: BalanceInput) => Move[]): BalancePlanning {
  const subnets = new Map<SubnetId, BalanceSubnet>(input.subnets.map((subnet) => [subnet.subnetId, subnet]));
  const planned = () => planMoves({ ...input, subnets: [...subnets.values()] });
  return {
    finalMoves: () => planned().filter(({ subnetId, to }) => subnets.get(subnetId)!.rttMs.has(to)),
    plan: () => {
      const moves = planned();
      const unknown = moves.filter(({ subnetId, to }) => !subnets.get(subnetId)!.rttMs.has(to));
      return { moves, probes: unknown.map(({ subnetId, to }) => ({ subnetId, crawlerId: to })) };
    },
    note: (measured) => {
      for (const { subnetId, crawlerId, rttMs } of measured) {
        const subnet = subnets.get(subnetId)!;
        subnets.set(subnetId, { ...subnet, rttMs: new Map(subnet.rttMs).set(crawlerId, rttMs) });
      }
    },
  };
}

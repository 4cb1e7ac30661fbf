/**
 * The cheapest set of moves that leaves nobody over capacity: the least sum of load × RTT over all subnets (design
 * section 6), as one plan from scratch and without hysteresis; a live fleet goes on from plan to plan with
 * BalancePlanner.
 *
 * Exact in this sense: the flow (crawler-flow, solve-flow) is the cheapest there is when subnets may be divided, at
 * any size. With equal loads and no limit in bytes it is in whole subnets by itself, so the plan is the cheapest.
 * With unequal loads, where the exact answer is NP-hard to find, fewer subnets than there are crawlers are divided,
 * and whole-placement puts those together: near the optimum.
 *
 * Nothing moves while nobody is overloaded; when somebody is, subnets may also move to a crawler that is nearer.
 */

import { type BalanceInput, checkInput, type Move, noHysteresis, overloads } from "./plan.ts";
import { BalancePlanner } from "./planner.ts";

export function planByMinCostFlow(input: BalanceInput): Move[] {
  checkInput(input);
  if (overloads(input).length === 0) return [];
  const planner = new BalancePlanner(input.crawlerRttMs, noHysteresis);
  planner.note({
    crawlers: [...input.crawlers].sort((a, b) => a.crawlerId - b.crawlerId),
    subnets: [...input.subnets].sort((a, b) => a.subnetId - b.subnetId),
  });
  return [...planner.plan().moves];
}

/**
 * Balance: CPU time of a plan from scratch, of a re-plan against it, of the variance rule, and memory. Run: npm run bench --
 * balance
 */

import { type BalanceInput, noHysteresis } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import { planByVarianceRule } from "#coordinator/balance/rebalance";
import { asCrawlerId } from "#core/ids";
import { keptBytes, plane, type Shape, seconds } from "./balance/plane.ts";

for (const unitLoads of [true, false]) {
  measureScale({ crawlers: 50, subnets: 5_000, unitLoads });
  measureScale({ crawlers: 200, subnets: 100_000, unitLoads });
  measureScale({ crawlers: 200, subnets: 1_000_000, unitLoads });
}

function measureScale(shape: Shape): void {
  const input = plane(shape);
  const before = keptBytes();
  const planner = plannerOf(input);
  let moves = 0;
  const scratch = seconds(() => {
    moves = planner.plan().moves.length;
  });
  const bytes = (keptBytes() - before) / shape.subnets;
  const [first] = input.crawlers;
  const smaller = { ...first!, capacityPagesPerDay: 0.9 * first!.capacityPagesPerDay };
  const changed = input.subnets.slice(0, 300).map((subnet) => ({ ...subnet, crawlerId: asCrawlerId(1) }));
  const capacity = seconds(() => planner.update({ crawlers: [smaller] }));
  const appeared = seconds(() => planner.update({ subnets: changed }));
  const variance = seconds(() => planByVarianceRule(input));
  const times = (one: number) => `${one.toFixed(2)} s (1/${(scratch / one).toFixed(0)})`;
  console.log(
    `${nameOf(shape)}: plan from scratch ${scratch.toFixed(1)} s, ${moves} moves, ${bytes.toFixed(0)} bytes a subnet kept; ` +
      `a capacity changes ${times(capacity)}, 300 subnets change ${times(appeared)}; variance rule ${variance.toFixed(1)} s`,
  );
}

function plannerOf(input: BalanceInput): BalancePlanner {
  const planner = new BalancePlanner(input.crawlerRttMs, noHysteresis);
  planner.note(input);
  return planner;
}

function nameOf({ crawlers, subnets, unitLoads }: Shape): string {
  return `${crawlers} crawlers, ${subnets.toLocaleString("en")} subnets, ${unitLoads ? "equal" : "heavy-tailed"} loads`;
}

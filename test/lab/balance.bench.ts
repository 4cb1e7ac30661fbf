/**
 * Balance: CPU time of a plan from scratch against the dense solver that keeps a cost for every pair (where that
 * still fits), of a re-plan against a plan from scratch, of the variance rule, and memory. Run: npm run bench -- balance
 */

import { type BalanceInput, noHysteresis } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import { planByVarianceRule } from "#coordinator/balance/rebalance";
import { asCrawlerId } from "#core/ids";
import { DenseFlow } from "../balance/dense-flow.ts";
import { keptBytes, plane, type Shape, seconds } from "./balance/plane.ts";

for (const unitLoads of [true, false]) {
  compareWithDense({ crawlers: 50, subnets: 5_000, unitLoads });
  measureScale({ crawlers: 200, subnets: 100_000, unitLoads });
  measureScale({ crawlers: 200, subnets: 1_000_000, unitLoads });
}

function compareWithDense(shape: Shape): void {
  const input = plane(shape);
  const ratios = [1, 2, 3].map(() => {
    const ours = seconds(() => plannerOf(input).plan());
    const dense = seconds(() => relieveDensely(input));
    return { ours, dense, ratio: dense / ours };
  });
  const middle = ratios.toSorted((a, b) => a.ratio - b.ratio)[1]!;
  const spread = `${Math.min(...ratios.map((one) => one.ratio)).toFixed(1)} to ${Math.max(...ratios.map((one) => one.ratio)).toFixed(1)}`;
  console.log(
    `${nameOf(shape)}: plan ${middle.ours.toFixed(2)} s, dense solver ${middle.dense.toFixed(2)} s, ratio ${middle.ratio.toFixed(1)} (${spread})`,
  );
}

/** With the same knowledge: every pair's RTT, as the planner's table works it out. */
function relieveDensely(input: BalanceInput): void {
  const crawlers = input.crawlers.length;
  const costs = new Float64Array(input.subnets.length * crawlers);
  input.subnets.forEach(({ rttMs }, subnet) => {
    for (let crawler = 0; crawler < crawlers; crawler++) {
      const id = asCrawlerId(crawler + 1);
      let [least, most] = [0, Number.POSITIVE_INFINITY];
      for (const [witness, ms] of rttMs) {
        const apart = witness === id ? 0 : input.crawlerRttMs(witness, id)!;
        least = Math.max(least, Math.abs(apart - ms));
        most = Math.min(most, apart + ms);
      }
      costs[subnet * crawlers + crawler] = rttMs.get(id) ?? (least + most) / 2;
    }
  });
  new DenseFlow({
    capacities: Float64Array.from(
      input.crawlers,
      ({ capacityPagesPerDay }) => Math.floor(capacityPagesPerDay / 10) * 10,
    ),
    loads: Float64Array.from(input.subnets, ({ loadPagesPerDay }) => loadPagesPerDay),
    costs,
    origins: Int32Array.from(input.subnets, ({ crawlerId }) => crawlerId - 1),
  }).relieve();
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

/**
 * Balance at the size of 1,000 crawlers and a million subnets: the plan over likely crawlers against the exact one where
 * that fits, from scratch and after changes, in CPU time, memory and extra ms.
 * Run: npm run bench -- balance [CRAWLERS SUBNETS [heavy-tailed] [likely]]; likely: without the exact plan.
 */

import { noHysteresis } from "#coordinator/balance/plan";
import { type BalancePlan, BalancePlanner } from "#coordinator/balance/planner";
import { asCrawlerId } from "#core/ids";
import { keptBytes, type Plane, plane, type Shape, seconds } from "./balance/plane.ts";

const [crawlers, subnets, ...words] = process.argv.slice(2).filter((word) => word !== "--");
const shapes: Shape[] =
  crawlers === undefined
    ? [
        { crawlers: 50, subnets: 5_000, unitLoads: true },
        { crawlers: 200, subnets: 100_000, unitLoads: true },
        { crawlers: 200, subnets: 100_000, unitLoads: false },
      ]
    : [{ crawlers: Number(crawlers), subnets: Number(subnets), unitLoads: !words.includes("heavy-tailed") }];

for (const shape of shapes) {
  const world = plane(shape);
  if (!words.includes("likely")) measure(world, shape, Number.POSITIVE_INFINITY);
  measure(world, shape, 0);
}

function measure(world: Plane, { crawlers, subnets, unitLoads }: Shape, exactPairs: number): void {
  const before = keptBytes();
  const planner = new BalancePlanner(world.crawlerRttMs, noHysteresis, exactPairs);
  const taking = seconds(() => planner.note(world));
  let plan: BalancePlan = { moves: [], probes: [] };
  const scratch = seconds(() => {
    plan = planner.plan();
  });
  const bytes = (keptBytes() - before) / subnets;
  const added = addedMs(world, plan);
  planner.note({ made: plan.moves });
  planner.plan();
  const [first, other] = [world.crawlers[0]!, world.crawlers[4]!];
  const replanned = {
    "a capacity lost a tenth": {
      crawlers: [{ ...first, capacityPagesPerDay: 0.9 * first.capacityPagesPerDay }],
    },
    "300 subnets went to another crawler": {
      subnets: world.subnets.slice(0, 300).map((subnet) => ({ ...subnet, crawlerId: asCrawlerId(1) })),
    },
    "300 loads changed": {
      loads: world.subnets.slice(300, 600).map(({ subnetId, loadPagesPerDay }) => ({
        subnetId,
        loadPagesPerDay: 1.3 * loadPagesPerDay,
      })),
    },
    "a crawler left": { crawlers: [{ ...other, capacityPagesPerDay: 0 }] },
    "it came back": { crawlers: [other] },
  };
  const times = Object.entries(replanned).map(
    ([name, changes]) => `${name} ${seconds(() => planner.update(changes)).toFixed(2)} s`,
  );
  console.log(
    `${crawlers} crawlers, ${subnets.toLocaleString("en")} subnets, ${unitLoads ? "equal" : "heavy-tailed"} loads, ` +
      `${exactPairs === 0 ? "likely crawlers" : "exact"}: taken in ${taking.toFixed(1)} s, from scratch ${scratch.toFixed(1)} s, ` +
      `${plan.moves.length} moves, ${bytes.toFixed(0)} bytes a subnet, a page is ${added.meanMs.toFixed(2)} ms away at first, then ` +
      `${added.predictedMs.toFixed(3)} ms more as predicted, ${added.trueMs.toFixed(3)} in truth; ${times.join(", ")}`,
  );
}

function addedMs(world: Plane, { moves }: BalancePlan) {
  let [pages, now, predicted, inTruth] = [0, 0, 0, 0];
  for (const { subnetId, crawlerId, loadPagesPerDay } of world.subnets) {
    pages += loadPagesPerDay;
    now += loadPagesPerDay * world.rttMs(subnetId, crawlerId);
  }
  for (const { subnetId, from, to, addedRttMs } of moves) {
    const load = world.subnets[subnetId - 1]!.loadPagesPerDay;
    predicted += load * addedRttMs;
    inTruth += load * (world.rttMs(subnetId, to) - world.rttMs(subnetId, from));
  }
  return { meanMs: now / pages, predictedMs: predicted / pages, trueMs: inTruth / pages };
}

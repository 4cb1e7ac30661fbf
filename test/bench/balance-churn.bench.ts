/**
 * Balance over a day of churn: moves and flaps with hysteresis and without, and the CPU time of every hour's plan.
 * Run: npm run bench -- balance-churn [--large]; --large: 1,000 crawlers and a million subnets, ten minutes of CPU.
 */
import { defaultBalanceSettings, noHysteresis } from "#coordinator/balance/plan";
import { churnDay } from "./balance/churn-day.ts";
import { plane, type Shape } from "./balance/plane.ts";

const isLarge = process.argv.includes("--large");

const shapes: Shape[] = isLarge
  ? [{ crawlers: 1_000, subnets: 1_000_000, unitLoads: true }]
  : [{ crawlers: 40, subnets: 4_000, unitLoads: true }];

for (const shape of shapes) {
  const world = plane(shape);
  for (const [name, settings] of [
    ["with hysteresis", defaultBalanceSettings],
    ["without", noHysteresis],
  ] as const) {
    if (isLarge && settings === noHysteresis) continue;
    const day = churnDay(world, { settings, seed: 1, reported: isLarge ? 0.1 : 1 });
    console.log(
      `${shape.crawlers} crawlers, ${shape.subnets.toLocaleString("en")} subnets, ${name}: ` +
        `first ${day.firstMoves}, then ${day.moves} moves (${day.evacuated} off crawlers that left, ${day.home} back to ` +
        `those that returned), ${day.flaps} flaps, at most ${day.mostMoves} a subnet; ${day.addedMs.toFixed(2)} ms a page ` +
        `further than without limits; ${day.overloads} overloads; CPU an hour: plan ${spread(day.planSeconds)}, ` +
        `taking changes in ${spread(day.noteSeconds)}`,
    );
  }
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  return `${sorted[sorted.length >> 1]!.toFixed(2)} s (at most ${sorted.at(-1)!.toFixed(2)})`;
}

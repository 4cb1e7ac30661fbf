/**
 * What `nearest` loses and saves by looking at a short list of a large fleet: accuracy, probes and CPU time in generated
 * worlds, over the same targets in the same order, beside the same policy looking at everybody; with every pair of crawlers
 * measured, and with what a fleet has measured after some turns. Run: npm run bench -- short-list; after it the sizes
 * of the fleets and the number of worlds (200 1000 3).
 */
import { worldInstance } from "#ops/simulate/repeat-policies";
import { generateWorld } from "#ops/world/generate-world";
import { MeasuredFleet } from "./calibration/measured-fleet.ts";

const given = process.argv.slice(2).map(Number);
const worlds = given.length > 1 ? given.pop()! : 3;
const fleets = given.length > 0 ? given : [200, 1000];
const sites = 1500;
const turns = 4;

const ways = [
  ["everybody", Number.POSITIVE_INFINITY],
  ["short list", 0],
] as const;

for (const crawlers of fleets) {
  console.log(
    `\n${crawlers} crawlers, ${sites} sites | the best % | within 5 ms % | mean excess ms | probes | CPU s`,
  );
  for (const isFull of [true, false]) {
    const sums = ways.map(() => [0, 0, 0, 0, 0]);
    for (let seed = 1; seed <= worlds; seed++) {
      const fleet = new MeasuredFleet(worldInstance(generateWorld({ seed, crawlers, sites })));
      if (!isFull) for (let turn = 0; turn < turns; turn++) fleet.turn();
      for (const [way, [, listFrom]] of ways.entries()) {
        const before = process.cpuUsage();
        const figures = isFull ? fleet.fullFigures(seed, listFrom) : fleet.figures(seed, listFrom);
        const { user, system } = process.cpuUsage(before);
        const { optimalPct, within5msPct, meanExcessMs, probesPerUrl } = figures;
        [optimalPct, within5msPct, meanExcessMs, probesPerUrl, (user + system) / 1e6].forEach((value, at) => {
          sums[way]![at]! += value / worlds;
        });
      }
    }
    for (const [way, [name]] of ways.entries()) {
      const known = isFull ? "every pair known" : `after ${turns} turns`;
      const [best, within, excess, probes, cpu] = sums[way]!.map((value) => value.toFixed(2));
      console.log(`${name}, ${known} | ${best} | ${within} | ${excess} | ${probes} | ${cpu}`);
    }
  }
}

/** The figures by which worlds are calibrated, of generated worlds and of fleets from measured matrices. */
import { instanceFigures, type WorldFigures, worldFigures } from "#ops/world/figures";
import { generateWorld } from "#ops/world/generate-world";
import { hasMatrices, measuredFleets } from "../../ops/world/measured-fleets.ts";

const rows: readonly (readonly [string, (of: WorldFigures) => number])[] = [
  ["triangles violated, %", (of) => 100 * of.triangleViolationShare],
  ["severely, %", (of) => 100 * of.severeViolationShare],
  ["best crawler's RTT, first quartile, ms", (of) => of.bestMs.p25],
  ["best crawler's RTT, median, ms", (of) => of.bestMs.median],
  ["best crawler's RTT, third quartile, ms", (of) => of.bestMs.p75],
  ["to the runner-up, first quartile, ms", (of) => of.gapMs.p25],
  ["to the runner-up, median, ms", (of) => of.gapMs.median],
  ["to the runner-up, third quartile, ms", (of) => of.gapMs.p75],
  ["best is nearest to the second best, %", (of) => 100 * of.bestIsNextToSecond],
  ["place of the best by one random answer, % of the fleet", (of) => 100 * of.fitRankOfBest],
  ["best within the first tenth by that, %", (of) => 100 * of.fitFindsBest],
  ["crawlers left open by the best's answer", (of) => of.openAfterBest],
  ["best's distances beside the site's, error %", (of) => 100 * of.bestStandsInError],
  ["growth dimension", (of) => of.growthDimension],
  ["crawlers within 5 ms of the best, %", (of) => 100 * of.randomWithin5Ms],
  ["mean RTT of all by the best's", (of) => of.randomToBest],
  ["country predicts the best, %", (of) => 100 * of.countryPredictsBest],
  ["holder predicts the best, %", (of) => 100 * of.holderPredictsBest],
  ["sites whose holder has others, %", (of) => 100 * of.holderHasOthers],
  ["sites per leaf", (of) => of.sitesPerLeaf],
];

/** Those above the country need a registry, which the matrices lack. */
const rowsWithoutRegistry = rows.length - 4;

export function printHardness(of: {
  readonly crawlers: number;
  readonly sites: number;
  readonly seeds: readonly number[];
}): void {
  const { crawlers, sites, seeds } = of;
  const generated = seeds.map((seed) => worldFigures(generateWorld({ seed, sites, crawlers })));
  const measured = hasMatrices ? measuredFleets(crawlers, 6).map((fleet) => instanceFigures(fleet)) : [];
  const lines = rows.map(([name, figure], index) => {
    const beside = index < rowsWithoutRegistry && measured.length > 0 ? spread(measured.map(figure)) : "–";
    return `| ${name} | ${spread(generated.map(figure))} | ${beside} |`;
  });
  const range = `${seeds.length} seeds from ${seeds[0]}`;
  process.stdout.write(
    `\n| ${crawlers} crawlers | ${sites} sites, ${range} | measured, ${measured.length} fleets |\n|---|---|---|\n${lines.join("\n")}\n`,
  );
}

/** Median, and the tenth and ninetieth of a hundred. */
function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(2);
  return `${at(0.5)} (${at(0.1)} to ${at(0.9)})`;
}

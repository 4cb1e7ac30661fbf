/** `nearcrawl simulate recrawl`: section 4 of the paper on scale-adaptable recrawl strategies, and "optimal" beside it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "#core/errors";
import { drawRecrawl } from "../../evaluate/figures/recrawl.ts";
import { recrawlWorld } from "../../simulate/recrawl/recrawl-world.ts";
import {
  type CaseName,
  cases,
  defaultScenario,
  paperChannels,
  type RecrawlScenario,
  type StrategyName,
  scenarioFaults,
  strategyNames,
} from "../../simulate/recrawl/scenario.ts";
import { simulateRecrawl } from "../../simulate/recrawl/simulate-recrawl.ts";
import { boundedInteger, listOf } from "../bounded-number.ts";
import { printAnswer } from "../output.ts";
import { type CaseReport, recrawlTables } from "./recrawl-report.ts";
import { workProgress } from "./work-progress.ts";

interface RecrawlOptions {
  readonly case: readonly CaseName[];
  readonly strategy: readonly StrategyName[];
  readonly seed: number;
  readonly steps: number;
  readonly channels: number;
  readonly encourageRate: number;
  readonly smallestMultiple: number;
  readonly biggestMultiple: number;
  readonly pictures?: string;
  readonly json?: boolean;
}

/** Larger ones would take hours, or more memory than there is. */
const most = { channels: 64_000, steps: 1_000_000 } as const;

const help = `
Channels are recrawled by crawlers of partners that come and go; a step is a minute. Under REC the change rates
ask for more than the crawlers can do, under RUC for less. "fixed" recrawls each channel at its change interval,
"iir" and "icr" adapt the intervals to the updates that succeed, "optimal" shares out the task threads so that
weighted freshness is greatest. Tables 1 to 4 of Xu et al. (NPC 2010), whose figures stand in brackets.

Examples:
  nearcrawl simulate recrawl --case REC --strategy fixed,iir,icr
  nearcrawl simulate recrawl --channels 1600              a tenth of the paper's size, in seconds
  nearcrawl simulate recrawl --case RUC --strategy iir --encourage-rate 0.7 --json

Exit codes: 0 done, 2 wrong usage, or settings that contradict each other.
`;

export function recrawlCommand(): Command {
  const whole = (flags: string, words: string, [value, least, largest]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, largest));
  const decimal = (flags: string, words: string, value: number) =>
    new Option(flags, words).default(value).argParser(finite);
  const caseNames = Object.keys(cases) as CaseName[];
  const { seed, steps, encourageRate, smallestMultiple, biggestMultiple } = defaultScenario;
  return new Command("recrawl")
    .description(
      "recrawl channels with crawlers that come and go, and compare strategies with the paper's tables",
    )
    .addOption(
      new Option("--case <names>", `${caseNames.join(", ")}, or both separated by a comma`)
        .default(caseNames, caseNames.join(","))
        .argParser(listOf(caseNames)),
    )
    .addOption(
      new Option("--strategy <names>", `${strategyNames.join(", ")}; several separated by commas`)
        .default(strategyNames, strategyNames.join(","))
        .argParser(listOf(strategyNames)),
    )
    .addOption(whole("--seed <number>", "which world", [seed, 0, 0xffff_fff0]))
    .addOption(whole("--steps <n>", "minutes", [steps, 1, most.steps]))
    .addOption(whole("--channels <n>", "hosts; crawlers in proportion", [paperChannels, 1, most.channels]))
    .addOption(
      decimal("--encourage-rate <δ>", "iir, icr: a group that does better is tried at", encourageRate),
    )
    .addOption(decimal("--smallest-multiple <σ>", "of the interval of the group before", smallestMultiple))
    .addOption(decimal("--biggest-multiple <μ>", "of the interval of the group before", biggestMultiple))
    .option("--pictures <folder>", "write figures 4 and 5 there, as SVG files")
    .option("--json", "print JSON: a list with one object per case")
    .addHelpText("after", help)
    .action(runRecrawl);
}

function runRecrawl(options: RecrawlOptions): void {
  const scenarios = options.case.map((name) => ({ name, scenario: scenarioOf(name, options) }));
  const faults = scenarioFaults(scenarios[0]!.scenario);
  if (faults.length > 0) throw new UsageError(faults.join("\n"));
  const reports = scenarios.map(({ name, scenario }) => simulateCase(name, scenario, options.strategy));
  if (options.pictures !== undefined) writePictures(options.pictures, reports);
  printAnswer(options, reports, reports.map(recrawlTables).join("\n\n\n"));
}

/** Everything that is not asked for as in the paper, with its ratio of crawlers to channels. */
function scenarioOf(name: CaseName, options: RecrawlOptions): RecrawlScenario {
  const { seed, steps, channels, encourageRate, smallestMultiple, biggestMultiple } = options;
  return {
    ...defaultScenario,
    ...{ seed, steps, channels, encourageRate, smallestMultiple, biggestMultiple },
    crawlers: Math.max(1, Math.round((cases[name] * channels) / paperChannels)),
  };
}

function simulateCase(
  name: CaseName,
  scenario: RecrawlScenario,
  strategies: readonly StrategyName[],
): CaseReport {
  const progress = workProgress("steps");
  try {
    const world = recrawlWorld(scenario);
    const figures = strategies.map((strategy) =>
      simulateRecrawl({
        strategy,
        scenario,
        world,
        onProgress: (step) => progress.show(`${name}, ${strategy}`, step, scenario.steps),
      }),
    );
    return { case: name, scenario, figures };
  } finally {
    progress.done();
  }
}

function writePictures(folder: string, reports: readonly CaseReport[]): void {
  mkdirSync(folder, { recursive: true });
  for (const report of reports)
    writeFileSync(
      join(folder, `sarss-${report.case.toLowerCase()}.svg`),
      drawRecrawl(report.case, report.figures),
    );
}

function finite(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("a number is expected");
  return value;
}

/** `npm run lab -- recrawl`: section 4 of the paper on scale-adaptable recrawl strategies, with "optimal" beside it. */
import { Command, Option } from "commander";
import { boundedInteger, listOf } from "#ops/cli/options";
import { printAnswer } from "#ops/cli/output";
import { workProgress } from "../work-progress.ts";
import { type CaseReport, recrawlTables } from "./recrawl-report.ts";
import { recrawlWorld } from "./recrawl-world.ts";
import {
  type CaseName,
  cases,
  defaultScenario,
  paperChannels,
  type RecrawlScenario,
  type StrategyName,
  strategyNames,
} from "./scenario.ts";
import { simulateRecrawl } from "./simulate-recrawl.ts";

interface RecrawlOptions {
  readonly case: readonly CaseName[];
  readonly strategy: readonly StrategyName[];
  readonly seed: number;
  readonly steps: number;
  readonly channels: number;
  readonly json?: boolean;
}

/** Larger ones would take hours or too much memory. */
const most = { channels: 64_000, steps: 1_000_000 } as const;

const help = `
Channels are recrawled by crawlers of partners that come and go; a step is a minute. Under REC the change rates
ask for more than the crawlers can do, under RUC for less. "fixed" recrawls each channel at its change interval,
"iir" and "icr" adapt the intervals to the updates that succeed, "optimal" shares out the task threads so that
weighted freshness is greatest. Tables 1 to 4 of Xu et al. (NPC 2010), whose figures stand in brackets.

  npm run lab -- recrawl --case REC --strategy fixed,iir,icr
  npm run lab -- recrawl --channels 1600              a tenth of the paper's size, in seconds
`;

export function recrawlCommand(): Command {
  const whole = (flags: string, words: string, [value, least, largest]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, largest));
  const caseNames = Object.keys(cases) as CaseName[];
  const { seed, steps } = defaultScenario;
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
        .default(strategyNames, "all")
        .argParser(listOf(strategyNames)),
    )
    .addOption(whole("--seed <number>", "which world", [seed, 0, 0xffff_fff0]))
    .addOption(whole("--steps <n>", "minutes", [steps, 1, most.steps]))
    .addOption(whole("--channels <n>", "hosts; crawlers in proportion", [paperChannels, 1, most.channels]))
    .option("--json", "print JSON: a list with one object per case")
    .addHelpText("after", help)
    .action(runRecrawl);
}

function runRecrawl(options: RecrawlOptions): void {
  const scenarios = options.case.map((name) => ({ name, scenario: scenarioOf(name, options) }));
  const reports = scenarios.map(({ name, scenario }) => simulateCase(name, scenario, options.strategy));
  printAnswer(options, reports, reports.map(recrawlTables).join("\n\n\n"));
}

/** Unset options are as in the paper, with its ratio of crawlers to channels. */
function scenarioOf(name: CaseName, options: RecrawlOptions): RecrawlScenario {
  const { seed, steps, channels } = options;
  return {
    ...defaultScenario,
    ...{ seed, steps, channels },
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

/**
 * `nearcrawl simulate recrawl`: section 4 of the paper on scale-adaptable recrawl strategies, and "optimal" beside it; with
 * `--signals` single pages whose changes are signalled, and "ncis".
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "#core/errors";
import { drawRecrawl } from "../../evaluate/figures/recrawl.ts";
import { drawSignals } from "../../evaluate/figures/recrawl-signals.ts";
import type { SignalQuality } from "../../simulate/recrawl/crawl-value.ts";
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
import {
  compareSignals,
  defaultSignalScenario,
  type SignalComparison,
  type SignalStrategy,
  signalQualities,
  signalStrategies,
} from "../../simulate/recrawl/signalled-pages.ts";
import { simulateRecrawl } from "../../simulate/recrawl/simulate-recrawl.ts";
import { boundedInteger, listOf } from "../bounded-number.ts";
import { printAnswer } from "../output.ts";
import { type CaseReport, recrawlTables, signalTables } from "./recrawl-report.ts";
import { workProgress } from "./work-progress.ts";

interface RecrawlOptions {
  readonly case: readonly CaseName[];
  /** Left out: all that there are of the kind. */
  readonly strategy?: readonly (StrategyName | SignalStrategy)[];
  /** True: the usual ones. */
  readonly signals?: true | readonly SignalQuality[];
  readonly pages: number;
  readonly fetches: number;
  readonly seeds: number;
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
const most = { channels: 64_000, steps: 1_000_000, pages: 10_000, fetches: 1_000_000, seeds: 100 } as const;

const help = `
Channels are recrawled by crawlers of partners that come and go; a step is a minute. Under REC the change rates
ask for more than the crawlers can do, under RUC for less. "fixed" recrawls each channel at its change interval,
"iir" and "icr" adapt the intervals to the updates that succeed, "optimal" shares out the task threads so that
weighted freshness is greatest. Tables 1 to 4 of Xu et al. (NPC 2010), whose figures stand in brackets.

--signals fetches single pages whose changes are signalled, one at a time, so that every strategy has the same total:
fixed, groups (intervals as pages change, what iir and icr begin with), optimal, greedy and ncis (GREEDY-NCIS, arXiv
2502.02430: by value, deaf to signals and with them), optimal-learnt and ncis-learnt (the live rules, with rates and
the quality of signals learnt from visits). A quality is the share of changes that is signalled, a slash, and the
share of signals that is of no change; without one, nine of them. --case, --steps, --channels and the multiples do not
count here, nor do --pages, --fetches and --seeds without --signals.

Examples:
  nearcrawl simulate recrawl --case REC --strategy fixed,iir,icr
  nearcrawl simulate recrawl --channels 1600              a tenth of the paper's size, in seconds
  nearcrawl simulate recrawl --case RUC --strategy iir --encourage-rate 0.7 --json
  nearcrawl simulate recrawl --signals                    ncis and the others, with signals of nine qualities
  nearcrawl simulate recrawl --signals 0.8/0.2 --strategy optimal,ncis --seeds 5

Exit codes: 0 done, 2 wrong usage, or settings that contradict each other.
`;

export function recrawlCommand(): Command {
  const whole = (flags: string, words: string, [value, least, largest]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, largest));
  const decimal = (flags: string, words: string, value: number) =>
    new Option(flags, words).default(value).argParser(finite);
  const caseNames = Object.keys(cases) as CaseName[];
  const every = [...new Set([...strategyNames, ...signalStrategies])];
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
      new Option(
        "--strategy <names>",
        `${strategyNames.join(", ")} (with --signals ${signalStrategies.join(", ")}); several separated by commas, all when left out`,
      ).argParser(listOf(every)),
    )
    .addOption(
      new Option(
        "--signals [recall/false,…]",
        "pages whose changes are signalled: how many of them, and how many signals are false, from 0 to 1",
      ).argParser(qualities),
    )
    .addOption(whole("--pages <n>", "with --signals", [defaultSignalScenario.pages, 2, most.pages]))
    .addOption(whole("--fetches <n>", "with --signals", [defaultSignalScenario.turns, 100, most.fetches]))
    .addOption(whole("--seeds <n>", "with --signals: worlds of seeds in a row", [3, 1, most.seeds]))
    .addOption(whole("--seed <number>", "which world", [seed, 0, 0xffff_fff0]))
    .addOption(whole("--steps <n>", "minutes", [steps, 1, most.steps]))
    .addOption(whole("--channels <n>", "hosts; crawlers in proportion", [paperChannels, 1, most.channels]))
    .addOption(
      decimal("--encourage-rate <δ>", "iir, icr: a group that does better is tried at", encourageRate),
    )
    .addOption(decimal("--smallest-multiple <σ>", "of the interval of the group before", smallestMultiple))
    .addOption(decimal("--biggest-multiple <μ>", "of the interval of the group before", biggestMultiple))
    .option("--pictures <folder>", "write figures 4 and 5 there (with --signals, freshness), as SVG")
    .option("--json", "print JSON: a list with one object per case, or quality")
    .addHelpText("after", help)
    .action(runRecrawl);
}

function runRecrawl(options: RecrawlOptions): void {
  if (options.signals !== undefined) {
    runSignals(options, options.signals === true ? signalQualities : options.signals);
    return;
  }
  const strategies = chosen(options.strategy, strategyNames, "without --signals");
  const scenarios = options.case.map((name) => ({ name, scenario: scenarioOf(name, options) }));
  const faults = scenarioFaults(scenarios[0]!.scenario);
  if (faults.length > 0) throw new UsageError(faults.join("\n"));
  const reports = scenarios.map(({ name, scenario }) => simulateCase(name, scenario, strategies));
  if (options.pictures !== undefined) writePictures(options.pictures, reports);
  printAnswer(options, reports, reports.map(recrawlTables).join("\n\n\n"));
}

function runSignals(options: RecrawlOptions, asked: readonly SignalQuality[]): void {
  const { pages, fetches: turns, seed, seeds } = options;
  const strategies = chosen(options.strategy, signalStrategies, "with --signals");
  const progress = workProgress("qualities");
  const comparisons: SignalComparison[] = [];
  try {
    for (const [at, quality] of asked.entries()) {
      progress.show(qualityText(quality), at, asked.length);
      const scenario = { ...defaultSignalScenario, pages, turns, seed, quality };
      comparisons.push(compareSignals(scenario, { strategies, seeds }));
    }
  } finally {
    progress.done();
  }
  if (options.pictures !== undefined) {
    mkdirSync(options.pictures, { recursive: true });
    writeFileSync(join(options.pictures, "recrawl-signals.svg"), drawSignals(comparisons));
  }
  printAnswer(options, comparisons, signalTables(comparisons, { pages, seed, seeds }));
}

const qualityText = ({ recall, falseShare }: SignalQuality) => `${recall}/${falseShare}`;

/** UsageError: one of them is of the other kind of simulation. */
function chosen<Name extends string>(
  asked: readonly string[] | undefined,
  known: readonly Name[],
  when: string,
): readonly Name[] {
  if (asked === undefined) return known;
  return asked.map((name) => {
    const found = known.find((one) => one === name);
    if (found !== undefined) return found;
    throw new UsageError(`--strategy ${name}: ${when} there are ${known.join(", ")}.`);
  });
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

function qualities(text: string): SignalQuality[] {
  return text.split(",").map((part) => {
    const [recall = Number.NaN, falseShare = Number.NaN, ...rest] = part.split("/").map((one) => {
      return one.trim() === "" ? Number.NaN : Number(one);
    });
    if (recall >= 0 && recall <= 1 && falseShare >= 0 && falseShare < 1 && rest.length === 0)
      return { recall, falseShare };
    throw new InvalidArgumentError(
      `"${part.trim().slice(0, 40)}" is no quality: two numbers from 0 to 1 with a slash between them, as in 0.8/0.2, the second below 1.`,
    );
  });
}

function finite(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("a number is expected");
  return value;
}

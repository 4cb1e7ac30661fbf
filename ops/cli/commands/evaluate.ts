/**
 * `nearcrawl evaluate`, which `npm run evaluate` runs: the paper's figures and ours side by side, as pictures and
 * a page.
 */
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { figures } from "../../evaluate/all-figures.ts";
import type { Figure } from "../../evaluate/figure.ts";
import { fullPlan, quickPlan } from "../../evaluate/plan.ts";
import { boundedInteger } from "../bounded-integer.ts";
import { type ContextOptions, exitCodes } from "../command-context.ts";
import { computeFigures, type EvaluatedFigure } from "../evaluate/compute-figures.ts";
import { compareLive } from "../evaluate/live-figure.ts";
import { measuredFiles, readMeasured } from "../evaluate/measured-files.ts";
import { evaluationFolder, writeEvaluation } from "../evaluate/write-evaluation.ts";
import { printJson } from "../output.ts";
import { worldParameters } from "../up/run-parameters.ts";

interface EvaluateOptions extends ContextOptions {
  readonly only?: string;
  readonly quick?: boolean;
  readonly out?: string;
  readonly measured?: readonly string[];
  readonly live?: boolean;
  readonly liveSites: number;
  readonly liveCrawlers: number;
  readonly json?: boolean;
}

const help = `
Figures: ${figures.map(({ name }) => name).join(", ")}.

Examples:
  npm run evaluate                        everything that is computed; 15 to 20 minutes on one core
  npm run evaluate -- --quick             small worlds, a few seconds, into a new folder
  npm run evaluate -- --only thresholds,learning
  npm run evaluate -- --live              the policies on sockets, one after the other; about 15 minutes

Sections of the page that are not made anew stay as they are. Measured instances are PL12.json and PL50.json
in latency/ of the folder NEARCRAWL_DATA (default ../shared/data), or the files named by --measured; without
them those parts are left out.
Exit codes: 0 done, 1 failed, 2 wrong usage or a file that is no fixture, 130 interrupted.
`;

export function evaluateCommand(): Command {
  return new Command("evaluate")
    .description(
      "reproduce the paper's figures beside ours: accuracy, probes, download time, as pictures and a page",
    )
    .option("--only <names>", "figures to make, separated by commas (default all)")
    .option("--quick", "small worlds, for a look or a test")
    .option("--out <folder>", "where delegation.md and the pictures go (default test/bench/results)")
    .option("--measured <file...>", "instances from measured round-trip times, as for simulate delegation")
    .option("--live", "run every policy on sockets in the emulated Internet, instead of computing")
    .option("--live-sites <n>", "with --live: sites", boundedInteger(1, 100_000), 1000)
    .option("--live-crawlers <n>", "with --live: crawlers", boundedInteger(1, 200), 12)
    .option("--json", "print the numbers for programs; progress goes to standard error")
    .option("--home <folder>", "with --live: where everything is kept")
    .option("--database-url <url>", "with --live: a Postgres server in place of the embedded one")
    .addHelpText("after", help)
    .action(runEvaluate);
}

async function runEvaluate(options: EvaluateOptions): Promise<void> {
  const { quick = false, live = false } = options;
  const chosen = chosenFigures(options.only ?? (live ? "" : null));
  const folder = evaluationFolder(options.out ?? null, quick);
  const measured = chosen.length === 0 ? [] : await readMeasured(options.measured ?? measuredFiles());
  const evaluated: EvaluatedFigure[] = computeFigures(chosen, {
    plan: quick ? quickPlan : fullPlan,
    measured,
  });
  if (live) {
    const { liveSites: sites, liveCrawlers: crawlers } = options;
    const figure = await compareLive(worldParameters({ sites, crawlers }), options);
    if (figure) evaluated.push(figure);
    else process.exitCode = exitCodes.interrupted;
  }
  const written = writeEvaluation(evaluated, { folder, quick });
  if (options.json) printJson(Object.fromEntries(evaluated.map(({ name, section }) => [name, section.data])));
  else process.stdout.write(`${written.map((file) => `written: ${file}`).join("\n")}\n`);
}

/** Null: all of them; an empty text: none. */
function chosenFigures(only: string | null): readonly Figure[] {
  if (only === null) return figures;
  const names = only.split(",").filter((name) => name !== "");
  return names.map((name) => {
    const figure = figures.find((one) => one.name === name.trim());
    if (figure) return figure;
    const known = figures.map((one) => one.name).join(", ");
    throw new UsageError(`--only: "${name.slice(0, 40)}" is not a figure: ${known} are`);
  });
}

/**
 * `nearcrawl evaluate`, which `npm run evaluate` runs: the paper's figures and ours side by side, as pictures and
 * a page.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Command } from "commander";
import { UsageError } from "#core/errors";
import {
  type EvaluationContext,
  type Figure,
  fullPlan,
  type MeasuredInstance,
  markdownTable,
  quickPlan,
  type Section,
} from "../../evaluate/figure.ts";
import { downloadTimeFigure } from "../../evaluate/figures/download-time.ts";
import { frontierFigure } from "../../evaluate/figures/frontier.ts";
import { largeFleetFigure } from "../../evaluate/figures/large-fleet.ts";
import { learningFigure } from "../../evaluate/figures/learning.ts";
import { noiseFigure } from "../../evaluate/figures/noise.ts";
import { riskFigure } from "../../evaluate/figures/risk.ts";
import { scaleFigure } from "../../evaluate/figures/scale.ts";
import { thresholdsFigure } from "../../evaluate/figures/thresholds.ts";
import { untunedFigure } from "../../evaluate/figures/untuned.ts";
import { worldsFigure } from "../../evaluate/figures/worlds.ts";
import type { LatencyMatrix } from "../../simulate/instances/drawn-fleet.ts";
import { readLatencyMatrix } from "../../simulate/instances/latency-matrix.ts";
import { type MatrixSlice, matrixFile, matrixSlices } from "../../simulate/instances/named-instance.ts";
import { tuningOfFixture } from "../../simulate/repeat-policies.ts";
import { worldFromFixture } from "../../world/fixture-world.ts";
import { readFixture } from "../../world/read-fixture.ts";
import { boundedInteger } from "../bounded-number.ts";
import { type ContextOptions, commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printJson } from "../output.ts";
import { secondsText } from "../rir/progress-text.ts";
import { sharedFile } from "../shared-data.ts";
import { workProgress } from "../simulate/work-progress.ts";
import { untilAskedToStop } from "../until-asked-to-stop.ts";
import { comparePoliciesLive } from "../up/live-comparison.ts";
import { type PolicyRow, type WorldParameters, worldParameters } from "../up/policy-comparison.ts";
import { createRunVoice } from "../up/run-voice.ts";

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

// Every figure that is computed, in the order of the page.

export const figures: readonly Figure[] = [
  downloadTimeFigure,
  thresholdsFigure,
  learningFigure,
  frontierFigure,
  riskFigure,
  scaleFigure,
  largeFleetFigure,
  untunedFigure,
  noiseFigure,
  worldsFigure,
];

const help = `
Figures: ${figures.map(({ name }) => name).join(", ")}.

Examples:
  npm run evaluate                        everything that is computed; 20 to 25 minutes on one core
  npm run evaluate -- --quick             small worlds, a few seconds, into a new folder
  npm run evaluate -- --only thresholds,learning
  npm run evaluate -- --live              the policies on sockets, one after the other; about 15 minutes

Sections of the page that are not regenerated stay as they are. Measured instances are PL12.json and PL50.json
in latency/ of the folder NEARCRAWL_DATA (default ../shared/data), or the files named by --measured; "large" draws
fleets from the matrices PlanetLabData_1.gz, _9.gz and _18.gz there. Without them those parts are left out.
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
    matrices: chosen.some(({ usesMatrices }) => usesMatrices) ? await readMatrices() : new Map(),
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

// The instances from measured round-trip times that an evaluation uses, where they are at hand.

/** Sites of a fixture's world are bounded by its targets. */
const allSites = 1_000_000;

/** Those in the folder of shared data; says so when they are not there. */
function measuredFiles(): string[] {
  return ["latency/PL12.json", "latency/PL50.json"].flatMap(whereThere);
}

/** The path of a shared file; none, said on standard error, where it is not there. */
function whereThere(file: string): string[] {
  const { path, isThere, absence } = sharedFile(file);
  if (!isThere) process.stderr.write(`left out: ${absence}\n`);
  return isThere ? [path] : [];
}

async function readMatrices(): Promise<Map<MatrixSlice, LatencyMatrix>> {
  const matrices = new Map<MatrixSlice, LatencyMatrix>();
  for (const slice of matrixSlices)
    for (const path of whereThere(matrixFile(slice))) matrices.set(slice, await readLatencyMatrix(path));
  return matrices;
}

async function readMeasured(files: readonly string[]): Promise<MeasuredInstance[]> {
  return await Promise.all(
    files.map(async (file) => {
      const instance = await readFixture(file);
      const sites = Math.min(allSites, instance.targets.length);
      const world = worldFromFixture({ json: instance, seed: 1, sites });
      const tuning = tuningOfFixture(instance.name);
      return { name: basename(file, ".json"), tuning, instance, world };
    }),
  );
}

// The comparison on sockets: coordinator, crawlers and sites of the emulated Internet, each policy in turn, and
// beside each live row what the simulator computes for the same world.

/** Null: a person stopped it before its end. */
async function compareLive(
  parameters: WorldParameters,
  options: ContextOptions,
): Promise<EvaluatedFigure | null> {
  const run = await comparePoliciesLive({
    context: commandContext(options),
    parameters,
    port: 0,
    fresh: true,
    // Standard output is the evaluation's own.
    voice: createRunVoice({ json: true }),
    stopRequested: untilAskedToStop(),
  });
  await run.stop();
  if (!run.outcome.finished) return null;
  const { policies } = run;
  const section = { text: textOf(policies, parameters), pictures: [], data: { parameters, policies } };
  return { name: "live", title: "Live: the same policies on sockets", section };
}

function textOf(policies: readonly PolicyRow[], { sites, crawlers, seed }: WorldParameters): string {
  const rows = policies.map((row) => [
    row.policy,
    row.source,
    String(row.subnets),
    row.bestPct.toFixed(1),
    row.within5msPct.toFixed(1),
    row.probesPerUrl.toFixed(2),
    row.meanRttMs.toFixed(1),
    row.meanDownloadMs === null ? "–" : row.meanDownloadMs.toFixed(0),
  ]);
  return [
    `${crawlers} crawler processes, ${sites} sites, seed ${seed}: coordinator, crawlers and sites on this machine, the emulated Internet between them; each policy from an empty database. Beside each, the simulator on the same world. Shares are of subnets; the best crawler of one has the least mean RTT over its sites.`,
    "",
    markdownTable(
      [
        "policy",
        "figures",
        "subnets",
        "the best, %",
        "within 5 ms, %",
        "probes per URL",
        "mean RTT, ms",
        "a page, ms",
      ],
      rows,
    ),
    "",
    "Live rounds run several at a time, the simulator's one after the other: a live round knows less when it begins, and probes more. Downloads are measured live; the computed rows model those of the last run's pages.",
  ].join("\n");
}

// Puts what an evaluation found into its folder: pictures, and sections of the page.

const pageFile = "delegation.md";
const resultsFolder = "test/bench/results";

/**
 * Where it goes, settled before anything is computed. Null for `out`: the project's results, or a new folder when the worlds
 * are small. UsageError where the project is not around.
 */
function evaluationFolder(out: string | null, quick: boolean): string {
  if (out !== null) mkdirSync(out, { recursive: true });
  else if (!quick && !existsSync(resultsFolder)) {
    throw new UsageError(`there is no ${resultsFolder} here: say --out <folder>`);
  }
  return out ?? (quick ? mkdtempSync(join(tmpdir(), "nearcrawl-evaluate-")) : resultsFolder);
}

/** Returns the files. */
function writeEvaluation(
  evaluated: readonly EvaluatedFigure[],
  { folder, quick }: { readonly folder: string; readonly quick: boolean },
): string[] {
  const pictures = evaluated.flatMap(({ section }) => section.pictures);
  for (const { file, svg } of pictures) writeFileSync(join(folder, file), svg);
  const page = join(folder, pageFile);
  const before = existsSync(page) ? readFileSync(page, "utf8") : "";
  const measured = provenance(new Date());
  const how = quick ? " (small worlds: for a look, not for conclusions)" : "";
  const sections = evaluated.map(
    ({ name, title, section }): PageSection => ({
      name,
      title,
      text: section.text,
      provenance: `${measured}${how} \`npm run evaluate -- ${name === "live" ? "--live" : `--only ${name}`}\``,
    }),
  );
  writeFileSync(page, withSections(before, sections));
  return [page, ...pictures.map(({ file }) => join(folder, file))];
}

// When, at which commit and on which machine something was measured, for the pages of results.

function provenance(now: Date): string {
  const processors = cpus();
  const machine = `${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}`;
  const date = now.toISOString().slice(0, 10);
  return `Measured on ${date} at ${commit()}, ${machine}, Node ${process.versions.node}.`;
}

/** `commit 1a2b3c4`, or that it is not known, as in an installed package. */
function commit(): string {
  const git = (...words: string[]) =>
    execFileSync("git", words, {
      encoding: "utf8",
      timeout: 10_000,
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
    return `commit ${git("rev-parse", "--short", "HEAD")}${changed ? " with changes" : ""}`;
  } catch {
    return "an unknown commit";
  }
}

/**
 * The page that an evaluation writes: each section stands between two markers, so that one of them can be made
 * anew and whatever people wrote around them stays.
 */
interface PageSection {
  readonly name: string;
  readonly title: string;
  readonly text: string;
  /** When, at which commit and on which machine it was measured. */
  readonly provenance: string;
}

const headline = "# Delegation";

/** The page with these sections in place of the earlier ones of the same name; new ones come at the end. */
export function withSections(page: string, sections: readonly PageSection[]): string {
  return sections.reduce(withSection, page.trim() === "" ? `${headline}\n` : page);
}

function withSection(page: string, section: PageSection): string {
  const [begin, end] = [`<!-- evaluate ${section.name}: begin -->`, `<!-- evaluate ${section.name}: end -->`];
  const block = `${begin}\n## ${section.title}\n${section.text}\n\n${section.provenance}\n${end}`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) return `${page.trimEnd()}\n\n${block}\n`;
  return `${page.slice(0, from)}${block}${page.slice(to + end.length)}`;
}

// Makes the figures that are computed, one after the other, and says how far it is.

interface EvaluatedFigure {
  readonly name: string;
  readonly title: string;
  readonly section: Section;
}

function computeFigures(
  figures: readonly Figure[],
  context: Omit<EvaluationContext, "onProgress">,
): EvaluatedFigure[] {
  return figures.map((figure, index) => {
    const before = process.cpuUsage();
    const progress = workProgress("targets");
    const onProgress = (what: string, done: number, total: number) =>
      progress.show(`${index + 1}/${figures.length} ${figure.name}: ${what}`, done, total);
    const section = figure.measure({ ...context, onProgress });
    progress.done();
    const { user, system } = process.cpuUsage(before);
    const seconds = secondsText((user + system) / 1e6);
    process.stderr.write(`${figure.name}: ${seconds} of CPU time\n`);
    return { name: figure.name, title: figure.title, section };
  });
}

/** `nearcrawl simulate delegation`: how well policies do where every RTT is known, without a network. */
import { Command, InvalidArgumentError, Option } from "commander";
import { type PolicyName, policyNames } from "#coordinator/delegation/policies/policies";
import { defaultParameters } from "#coordinator/delegation/policies/round";
import type { Figures, PolicyVariant } from "#coordinator/delegation/simulation/run";
import { defaultSeed } from "#coordinator/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { readLatencyMatrix } from "../../simulate/instances/latency-matrix.ts";
import {
  type InstanceName,
  instanceFamilies,
  matrixFile,
  parseInstanceName,
} from "../../simulate/instances/named-instance.ts";
import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  isQuiet,
  noNoise,
  type ProbeNoise,
  type RepeatedResult,
  repeatPolicies,
  type Spread,
  seedsFrom,
  spreadText,
  type Tuning,
  tuningOfFixture,
  tuningWords,
} from "../../simulate/repeat-policies.ts";
import { worldLimits } from "../../world/generate-world.ts";
import { readFixture } from "../../world/read-fixture.ts";
import { boundedInteger, milliseconds, share } from "../bounded-number.ts";
import { formatTable, printJson } from "../output.ts";
import { sharedFile } from "../shared-data.ts";
import { workProgress } from "./work-progress.ts";

const help = `
Examples:
  nearcrawl simulate delegation --fixture measured.json --policy nearest,ipmicra
  nearcrawl simulate delegation --world --crawlers 12 --sites 1000 --seeds 5 --policy random,ipmicra,nearest
  nearcrawl simulate delegation --world --policy nearest --noise-ms 4 --spike-share 0.05 --loss 0.02
  nearcrawl simulate delegation --instance cities:50:7 delay-space:50:7 --seeds 3 --policy ipmicra,nearest

Families of --instance:
${instanceFamilies.map(({ name, words, tuning }) => `  ${name.padEnd(19)} ${words}; ${tuningWords[tuning]}`).join("\n")}
"Tuned on": constants of "nearest" were chosen on it (test/bench/results/delegation.md). The measured matrices are in
latency/ of the folder NEARCRAWL_DATA (default ../shared/data).

Choices are judged by the undisturbed round-trip times; under noise the row of "exhaustive" says what the
same disturbed probes allow at best.
Exit codes: 0 done, 2 wrong usage, or a file that is missing or not what it should be.
`;

export function delegationCommand(): Command {
  const command = new Command("delegation").description(
    "delegate every target of a fixture or of a generated world, and compare each choice with the best",
  );
  return addDelegationOptions(command).addHelpText("after", help).action(runDelegation);
}

async function runDelegation(options: DelegationOptions): Promise<void> {
  refuseContradictions(options);
  const reports: DelegationReport[] = [];
  const tables: string[] = [];
  const sources = await sourcesOf(options);
  const named = sources.length > 1;
  for (const one of sources) {
    const { name, source } = one;
    const results = simulate(one, options);
    tables.push(
      delegationTable(results, {
        title: named ? `${name}: ` : "",
        tuning: source.tuning === "unknown" ? "" : `; ${tuningWords[source.tuning]}`,
        seeds: seedsText(one, options),
      }),
    );
    reports.push(...reportsOf(results, options, { instance: named ? name : null, tuning: source.tuning }));
  }
  if (options.json) printJson(reports.length === 1 ? reports[0] : reports);
  else process.stdout.write(`${tables.join("\n\n")}\n`);
}

interface NamedSource {
  readonly name: string;
  readonly source: InstanceSource;
  readonly firstSeed: number;
}

async function sourcesOf(options: DelegationOptions): Promise<NamedSource[]> {
  const { fixture, instance, crawlers, sites, seed: firstSeed } = options;
  if (fixture) return await Promise.all(fixture.map((file) => fixtureSource(file, firstSeed)));
  if (instance) {
    const names = instance.map((text) => ({ text, name: parseInstanceName(text) }));
    return await Promise.all(names.map(({ text, name }) => familySource(text, name, options)));
  }
  return [{ name: "generated", source: generatedSource({ crawlers, sites }), firstSeed }];
}

async function fixtureSource(file: string, firstSeed: number): Promise<NamedSource> {
  const fixture = await readFixture(file);
  return { name: file, source: fixedSource(fixture, tuningOfFixture(fixture.name)), firstSeed };
}

async function familySource(
  text: string,
  { family, crawlers, seed }: InstanceName,
  options: DelegationOptions,
): Promise<NamedSource> {
  const file = family.matrix === null ? null : sharedFile(matrixFile(family.matrix));
  if (file !== null && !file.isThere) throw new UsageError(`--instance "${text}": ${file.absence}`);
  const matrix = file === null ? null : await readLatencyMatrix(file.path);
  return {
    name: text,
    source: family.source({ crawlers, sites: options.sites }, matrix),
    firstSeed: seed ?? options.seed,
  };
}

function simulate({ name, source, firstSeed }: NamedSource, options: DelegationOptions): RepeatedResult[] {
  const progress = workProgress("targets");
  try {
    return repeatPolicies({
      source,
      variants: variantsOf(options),
      seeds: seedsFrom(firstSeed, options.seeds),
      noise: noiseOf(options),
      onProgress: ({ run, runs, doneTargets, targets }) =>
        progress.show(name, (run - 1) * targets + doneTargets, runs * targets),
    });
  } finally {
    progress.done();
  }
}

/** The policies that were asked for; a yardstick that was not is within each report instead. */
function reportsOf(
  results: readonly RepeatedResult[],
  options: DelegationOptions,
  of: Pick<ReportContext, "instance" | "tuning">,
): DelegationReport[] {
  const noise = isQuiet(noiseOf(options)) ? null : noiseOf(options);
  const yardstick = hasYardstick(options)
    ? (results.find(({ variant }) => variant.policy === "exhaustive") ?? null)
    : null;
  return results
    .slice(0, options.policy.length)
    .map((result) => reportOf(result, { ...of, noise, yardstick }));
}

function seedsText({ source, firstSeed }: NamedSource, { seeds }: DelegationOptions): string {
  if (seeds === 1) return "";
  const what = source.seedChanges === "world" ? "worlds" : "orders";
  return `; mean (least to most) over ${seeds} ${what}, seeds from ${firstSeed}`;
}

// What `simulate delegation` prints: one report per policy, as JSON and as a table.

/** Figures are means over the seeds. */
interface DelegationReport extends Figures {
  /** Present when several instances were asked for. */
  readonly instance?: string;
  /** Whether constants of the policies were chosen on it. */
  readonly tuning: Tuning;
  readonly policy: PolicyName;
  readonly crawlers: number;
  readonly targets: number;
  /** Present when there was more than one run. */
  readonly seeds?: number;
  readonly spread?: Readonly<Record<keyof Figures, Spread>>;
  /** Present when probes were disturbed; `exhaustive` is the yardstick under the same noise. */
  readonly noise?: ProbeNoise;
  readonly exhaustive?: Pick<Figures, "optimalPct" | "within5msPct" | "meanExcessMs">;
}

interface ReportContext {
  /** Null: the only one. */
  readonly instance: string | null;
  readonly tuning: Tuning;
  /** Null: no noise. */
  readonly noise: ProbeNoise | null;
  readonly yardstick: RepeatedResult | null;
}

function reportOf({ variant, results, figures }: RepeatedResult, of: ReportContext): DelegationReport {
  const [first] = results;
  const { yardstick } = of;
  return {
    ...(of.instance === null ? {} : { instance: of.instance }),
    tuning: of.tuning,
    policy: variant.policy,
    crawlers: first!.crawlers,
    targets: first!.targets,
    ...meansOf(figures),
    ...(results.length > 1 ? { seeds: results.length, spread: figures } : {}),
    ...(of.noise === null ? {} : { noise: of.noise }),
    ...(yardstick === null ? {} : { exhaustive: yardstickOf(meansOf(yardstick.figures)) }),
  };
}

function meansOf(figures: RepeatedResult["figures"]): Figures {
  return {
    optimalPct: figures.optimalPct.mean,
    within2msPct: figures.within2msPct.mean,
    within5msPct: figures.within5msPct.mean,
    meanExcessMs: figures.meanExcessMs.mean,
    p95ExcessMs: figures.p95ExcessMs.mean,
    probesPerUrl: figures.probesPerUrl.mean,
    p95ProbesPerUrl: figures.p95ProbesPerUrl.mean,
    probesPerUrlLast50: figures.probesPerUrlLast50.mean,
  };
}

function yardstickOf({ optimalPct, within5msPct, meanExcessMs }: Figures) {
  return { optimalPct, within5msPct, meanExcessMs };
}

/** The results of one instance, under a line that says what it is. */
function delegationTable(
  results: readonly RepeatedResult[],
  of: { readonly title: string; readonly tuning: string; readonly seeds: string },
): string {
  const [first] = results;
  const columns = [
    { title: "policy" },
    ...[
      ...["best %", "within 2 ms %", "within 5 ms %", "mean excess ms", "p95 excess ms"],
      ...["probes/URL", "p95", "last 50"],
    ].map((title) => ({ title, align: "right" as const })),
  ];
  const rows = results.map(({ variant, figures }) => [
    variant.policy,
    spreadText(figures.optimalPct, 1),
    spreadText(figures.within2msPct, 1),
    spreadText(figures.within5msPct, 1),
    spreadText(figures.meanExcessMs, 2),
    spreadText(figures.p95ExcessMs, 2),
    spreadText(figures.probesPerUrl, 2),
    spreadText(figures.p95ProbesPerUrl, 0),
    spreadText(figures.probesPerUrlLast50, 2),
  ]);
  const size = first?.results[0];
  const head = `${of.title}${size?.crawlers} crawlers, ${size?.targets} targets${of.tuning}${of.seeds}`;
  return `${head}\n\n${formatTable(columns, rows)}`;
}

// What `simulate delegation` is asked for: its options, and what they mean together.

interface DelegationOptions {
  readonly fixture?: readonly string[];
  readonly world?: boolean;
  readonly instance?: readonly string[];
  readonly crawlers: number;
  readonly sites: number;
  readonly policy: readonly PolicyName[];
  readonly thresholdMs: number;
  readonly lambdaMs: number;
  readonly getFirst?: boolean;
  readonly seed: number;
  readonly seeds: number;
  readonly noiseMs: number;
  readonly spikeShare: number;
  readonly spikeMs: number;
  readonly loss: number;
  readonly tries: number;
  readonly yardstick: boolean;
  readonly json?: boolean;
}

/** Most runs of one call. */
const maxSeeds = 1000;

function addDelegationOptions(command: Command): Command {
  return command
    .option("--fixture <file...>", "JSON files with crawlers, targets and the RTTs between them")
    .option("--world", "a generated world in place of a file")
    .option(
      "--instance <name...>",
      "in place of both: family:crawlers or family:crawlers:seed (families below)",
    )
    .addOption(
      whole("--crawlers <n>", "with --world: crawlers", { default: 12, from: 1, to: worldLimits.crawlers }),
    )
    .addOption(
      whole("--sites <n>", "with --world and --instance: sites", {
        default: 1000,
        from: 1,
        to: worldLimits.sites,
      }),
    )
    .requiredOption(
      "--policy <names>",
      `${policyNames.join(", ")}, or several separated by commas`,
      parsePolicies,
    )
    .addOption(
      new Option("--threshold-ms <ms>", "ipmicra: an answer below this is good enough")
        .default(defaultParameters.thresholdMs)
        .argParser(milliseconds),
    )
    .addOption(
      new Option("--lambda-ms <ms>", "nearest: what a probe has to be expected to save")
        .default(defaultParameters.lambdaMs)
        .argParser(milliseconds),
    )
    .option("--get-first", "the first observation is the crawl's own GET and costs no probe")
    .addOption(
      whole("--seed <number>", "orders the targets; with --world and --instance, which one", {
        default: defaultSeed,
        from: 0,
        to: 0xffff_ffff,
      }),
    )
    .addOption(
      whole("--seeds <n>", "number of runs, from --seed on: mean and spread over worlds, or over orders", {
        default: 1,
        from: 1,
        to: maxSeeds,
      }),
    )
    .addOption(
      new Option("--noise-ms <mean>", "exponential delay on each try of a probe")
        .default(noNoise.noiseMs)
        .argParser(milliseconds),
    )
    .addOption(
      new Option("--spike-share <p>", "share of tries with a spike")
        .default(noNoise.spikeShare)
        .argParser(share),
    )
    .addOption(
      new Option("--spike-ms <mean>", "exponential height of a spike")
        .default(noNoise.spikeMs)
        .argParser(milliseconds),
    )
    .addOption(
      new Option("--loss <p>", "share of tries without an answer")
        .default(noNoise.lossShare)
        .argParser(share),
    )
    .addOption(
      whole("--tries <n>", "most tries of a probe; the smallest counts, and two that agree end it", {
        default: noNoise.tries,
        from: 1,
        to: 20,
      }),
    )
    .option(
      "--no-yardstick",
      "with noise: leave out what probing with every crawler comes to (slow with hundreds)",
    )
    .option("--json", "print JSON: an object, or a list of them for several policies or files");
}

function noiseOf(options: DelegationOptions): ProbeNoise {
  const { noiseMs, spikeShare, spikeMs, loss, tries } = options;
  return { noiseMs, spikeShare, spikeMs, lossShare: loss, tries };
}

/** The policies asked for; under noise also `exhaustive`, which all are held against. */
function variantsOf(options: DelegationOptions): PolicyVariant[] {
  const { policy, thresholdMs, lambdaMs, getFirst = false } = options;
  const needsYardstick = hasYardstick(options) && !policy.includes("exhaustive");
  const names: readonly PolicyName[] = needsYardstick ? [...policy, "exhaustive"] : policy;
  return names.map((name) => ({ policy: name, parameters: { thresholdMs, lambdaMs, getFirst } }));
}

function hasYardstick(options: DelegationOptions): boolean {
  return options.yardstick && !isQuiet(noiseOf(options));
}

function refuseContradictions({ fixture, world, instance }: DelegationOptions): void {
  const given = [fixture && "--fixture", world && "--world", instance && "--instance"].filter(Boolean);
  if (given.length > 1) throw new UsageError(`${given.join(" and ")} exclude each other`);
  if (given.length === 0) throw new UsageError("--fixture <file>, --world or --instance <name> is needed");
}

function whole(
  flags: string,
  words: string,
  bounds: { readonly default: number; readonly from: number; readonly to: number },
): Option {
  return new Option(flags, words).default(bounds.default).argParser(boundedInteger(bounds.from, bounds.to));
}

function parsePolicies(text: string): PolicyName[] {
  const names = text.split(",").map((name) => name.trim());
  return names.map((name) => {
    const known = policyNames.find((policy) => policy === name);
    if (known === undefined) {
      throw new InvalidArgumentError(
        `"${name.slice(0, 40)}" is not a policy: ${policyNames.join(", ")} are.`,
      );
    }
    return known;
  });
}

/** `npm run lab -- simulate`: how well policies choose where every RTT is known, without a network. */
import { Command, Option } from "commander";
import { policyNames } from "#coordinator/place/delegation/policies/policies";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import { UsageError } from "#core/errors";
import { boundedInteger, listOf, milliseconds, share } from "#ops/cli/options";
import { formatTable, printJson } from "#ops/cli/output";
import { worldLimits } from "#ops/world/generate-world";
import {
  familySource,
  fixtureSource,
  type InstanceSource,
  instanceFamilies,
  parseInstanceName,
  tuningWords,
} from "./instances.ts";
import { readFixture } from "./measured.ts";
import { noNoise, type RepeatedResult, repeatPolicies, seedsFrom, spreadText } from "./repeat-policies.ts";
import { workProgress } from "./work-progress.ts";

const help = `
  npm run lab -- simulate --fixture measured.json --policy nearest,ipmicra
  npm run lab -- simulate --instance world:12 --seeds 5 --policy random,ipmicra,nearest
  npm run lab -- simulate --instance delay-space:50:7 --policy nearest,exhaustive --noise-ms 4 --loss 0.02

Families of --instance:
${instanceFamilies.map(({ name, words, tuning }) => `  ${name.padEnd(19)} ${words}; ${tuningWords[tuning]}`).join("\n")}
"Tuned on": constants of "nearest" were chosen on it (test/bench/results/delegation.md).

Choices are judged by the undisturbed round-trip times; under noise the row of "exhaustive" says what the
same disturbed probes allow at best.
`;

interface DelegationOptions {
  readonly fixture: readonly string[];
  readonly instance: readonly string[];
  readonly sites: number;
  readonly policy: readonly (typeof policyNames)[number][];
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
  readonly json?: boolean;
}

export function delegationCommand(): Command {
  const option = (flags: string, words: string, value: number, parse: (text: string) => number) =>
    new Option(flags, words).default(value).argParser(parse);
  return new Command("simulate")
    .description(
      "delegate every target of a fixture or of a generated world, and compare each choice with the best",
    )
    .option("--fixture <file...>", "JSON files with crawlers, targets and the RTTs between them", [])
    .option("--instance <name...>", "family:crawlers or family:crawlers:seed (families below)", [])
    .addOption(option("--sites <n>", "with --instance", 1000, boundedInteger(1, worldLimits.sites)))
    .requiredOption("--policy <names>", `of ${policyNames.join(", ")}, comma between`, listOf(policyNames))
    .addOption(
      option(
        "--threshold-ms <ms>",
        "ipmicra: below is good enough",
        defaultParameters.thresholdMs,
        milliseconds,
      ),
    )
    .addOption(
      option(
        "--lambda-ms <ms>",
        "nearest: what a probe has to save",
        defaultParameters.lambdaMs,
        milliseconds,
      ),
    )
    .option("--get-first", "the first observation is the crawl's own GET and costs no probe")
    .addOption(
      option(
        "--seed <number>",
        "orders the targets, and makes the instance",
        1,
        boundedInteger(0, 0xffff_ffff),
      ),
    )
    .addOption(option("--seeds <n>", "runs, from --seed on: mean and spread", 1, boundedInteger(1, 1000)))
    .addOption(option("--noise-ms <mean>", "exponential delay on each try", noNoise.noiseMs, milliseconds))
    .addOption(option("--spike-share <p>", "share of tries with a spike", noNoise.spikeShare, share))
    .addOption(option("--spike-ms <mean>", "exponential height of a spike", noNoise.spikeMs, milliseconds))
    .addOption(option("--loss <p>", "share of tries without an answer", noNoise.lossShare, share))
    .addOption(
      option(
        "--tries <n>",
        "most tries of a probe; the smallest counts",
        noNoise.tries,
        boundedInteger(1, 20),
      ),
    )
    .option("--json", "print JSON: an object for each policy and instance")
    .addHelpText("after", help)
    .action(runDelegation);
}

async function runDelegation(options: DelegationOptions): Promise<void> {
  const sources = await sourcesOf(options);
  if (sources.length === 0) throw new UsageError("--fixture <file> or --instance <name> is needed");
  const reports = sources.map((one) => ({ ...one, results: simulate(one, options) }));
  if (options.json)
    printJson(
      reports.flatMap(({ name, results }) =>
        results.map(({ variant, tuning, figures }) => ({
          instance: name,
          policy: variant.policy,
          tuning,
          figures,
        })),
      ),
    );
  else process.stdout.write(`${reports.map(tableOf).join("\n\n")}\n`);
}

interface NamedSource {
  readonly name: string;
  readonly source: InstanceSource;
  readonly firstSeed: number;
}

async function sourcesOf({
  fixture,
  instance,
  sites,
  seed: firstSeed,
}: DelegationOptions): Promise<NamedSource[]> {
  const files = fixture.map(async (name) => {
    return { name, source: fixtureSource(await readFixture(name)), firstSeed };
  });
  const families = instance.map((name) => {
    const { family, crawlers, seed } = parseInstanceName(name);
    return { name, source: familySource(family, { crawlers, sites }), firstSeed: seed ?? firstSeed };
  });
  return await Promise.all([...files, ...families]);
}

function simulate({ name, source, firstSeed }: NamedSource, options: DelegationOptions): RepeatedResult[] {
  const {
    policy,
    thresholdMs,
    lambdaMs,
    getFirst = false,
    noiseMs,
    spikeShare,
    spikeMs,
    loss,
    tries,
  } = options;
  const progress = workProgress("targets");
  try {
    return repeatPolicies({
      source,
      variants: policy.map((one) => ({ policy: one, parameters: { thresholdMs, lambdaMs, getFirst } })),
      seeds: seedsFrom(firstSeed, options.seeds),
      noise: { noiseMs, spikeShare, spikeMs, lossShare: loss, tries },
      onProgress: (done, total) => progress.show(name, done, total),
    });
  } finally {
    progress.done();
  }
}

/** Means over the seeds (smallest to largest), below a line about the instance. */
function tableOf({
  name,
  source,
  results,
}: NamedSource & { readonly results: readonly RepeatedResult[] }): string {
  const titles = ["best %", "within 2 ms %", "within 5 ms %", "mean excess ms", "p95 excess ms"];
  const columns = [
    { title: "policy" },
    ...[...titles, "probes/URL", "p95", "last 50"].map((title) => ({ title, align: "right" as const })),
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
  const { crawlers, targets } = results[0]!.results[0]!;
  const tuning = source.tuning === "unknown" ? "" : `; ${tuningWords[source.tuning]}`;
  return `${name}: ${crawlers} crawlers, ${targets} targets${tuning}\n\n${formatTable(columns, rows)}`;
}

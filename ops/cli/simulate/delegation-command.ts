/** `nearcrawl simulate delegation`: how well policies do where every RTT is known, without a network. */
import { Command } from "commander";
import { isQuiet } from "../../simulate/probe-noise.ts";
import { readFixture } from "../../simulate/read-fixture.ts";
import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  type RepeatedResult,
  repeatPolicies,
} from "../../simulate/repeat-policies.ts";
import { printJson } from "../output.ts";
import {
  addDelegationOptions,
  type DelegationOptions,
  hasYardstick,
  noiseOf,
  refuseContradictions,
  seedsOf,
  variantsOf,
} from "./delegation-options.ts";
import { type DelegationReport, delegationTable, reportOf } from "./delegation-report.ts";
import { workProgress } from "./work-progress.ts";

const help = `
Examples:
  nearcrawl simulate delegation --fixture measured.json --policy nearest,ipmicra
  nearcrawl simulate delegation --world --crawlers 12 --sites 1000 --seeds 5 --policy random,ipmicra,nearest
  nearcrawl simulate delegation --world --policy nearest --noise-ms 4 --spike-share 0.05 --loss 0.02

Choices are judged by the undisturbed round-trip times; under noise the row of "exhaustive" says what the
same disturbed probes allow at best.
Exit codes: 0 done, 2 wrong usage or a file that is no fixture.
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
  const named = (options.fixture ?? []).length > 1;
  for (const { name, source } of await sourcesOf(options)) {
    const results = simulate(name, source, options);
    tables.push(
      delegationTable(results, {
        title: named ? `${name}: ` : "",
        seeds: seedsText(options, source),
      }),
    );
    reports.push(...reportsOf(results, options, named ? name : null));
  }
  if (options.json) printJson(reports.length === 1 ? reports[0] : reports);
  else process.stdout.write(`${tables.join("\n\n")}\n`);
}

interface NamedSource {
  readonly name: string;
  readonly source: InstanceSource;
}

async function sourcesOf(options: DelegationOptions): Promise<NamedSource[]> {
  const { fixture, crawlers, sites } = options;
  if (!fixture) return [{ name: "generated", source: generatedSource({ crawlers, sites }) }];
  return await Promise.all(
    fixture.map(async (file) => ({ name: file, source: fixedSource(await readFixture(file)) })),
  );
}

function simulate(name: string, source: InstanceSource, options: DelegationOptions): RepeatedResult[] {
  const progress = workProgress("targets");
  try {
    return repeatPolicies({
      source,
      variants: variantsOf(options),
      seeds: seedsOf(options),
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
  instance: string | null,
): DelegationReport[] {
  const noise = isQuiet(noiseOf(options)) ? null : noiseOf(options);
  const yardstick = hasYardstick(options)
    ? (results.find(({ variant }) => variant.policy === "exhaustive") ?? null)
    : null;
  return results
    .slice(0, options.policy.length)
    .map((result) => reportOf(result, { instance, noise, yardstick }));
}

function seedsText({ seed, seeds }: DelegationOptions, source: InstanceSource): string {
  if (seeds === 1) return "";
  const what = source.seedChanges === "world" ? "worlds" : "orders";
  return `; mean (least to most) over ${seeds} ${what}, seeds from ${seed}`;
}

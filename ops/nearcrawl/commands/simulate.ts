/** `nearcrawl simulate delegation`: how well a policy does on a fixture of known RTTs, without a network. */
import { Command, InvalidArgumentError, Option } from "commander";
import { type PolicyName, policyNames } from "#core/delegation/round";
import { defaultSeed, type SimulationResult, simulateDelegation } from "#core/delegation/simulation";
import { readFixture } from "#ops/simulate/read-fixture";
import { boundedInteger } from "../bounded-integer.ts";
import { formatTable, printJson } from "../output.ts";

export function simulateCommand(): Command {
  return new Command("simulate")
    .description("Try out how the crawler decides, on recorded or generated figures, without a network.")
    .addCommand(delegationCommand());
}

interface DelegationOptions {
  readonly fixture: string;
  readonly policy: readonly PolicyName[];
  readonly thresholdMs: number;
  readonly lambdaMs: number;
  readonly getFirst?: boolean;
  readonly seed: number;
  readonly json?: boolean;
}

function delegationCommand(): Command {
  return new Command("delegation")
    .description("Delegate every target of a fixture with a policy, and compare each choice with the best.")
    .requiredOption("--fixture <file>", "JSON file with crawlers, targets and the RTTs between them")
    .requiredOption(
      "--policy <names>",
      `${policyNames.join(", ")}, or several separated by commas`,
      parsePolicies,
    )
    .addOption(
      new Option("--threshold-ms <ms>", "ipmicra: an answer below this is good enough")
        .default(50)
        .argParser(parseMs),
    )
    .addOption(
      new Option("--lambda-ms <ms>", "nearest: what a probe has to be expected to save")
        .default(0.1)
        .argParser(parseMs),
    )
    .option("--get-first", "the first observation is the crawl's own GET and costs no probe")
    .addOption(
      new Option("--seed <number>", "shuffles the order of the targets")
        .default(defaultSeed)
        .argParser(boundedInteger(0, 0xffff_ffff)),
    )
    .option("--json", "print JSON: an object, or a list of them for several policies")
    .action(runDelegation);
}

async function runDelegation(options: DelegationOptions): Promise<void> {
  const fixture = await readFixture(options.fixture);
  const { thresholdMs, lambdaMs, seed, getFirst = false } = options;
  const reports = options.policy.map((policy) =>
    reportOf(simulateDelegation(fixture, { policy, parameters: { thresholdMs, lambdaMs, getFirst }, seed })),
  );
  if (options.json) printJson(reports.length === 1 ? reports[0] : reports);
  else process.stdout.write(`${tableOf(reports)}\n`);
}

type Report = Omit<SimulationResult, "chosen" | "probes" | "arrival">;

function reportOf({
  chosen: _chosen,
  probes: _probes,
  arrival: _arrival,
  ...report
}: SimulationResult): Report {
  return report;
}

function tableOf(reports: readonly Report[]): string {
  const columns = [
    { title: "policy" },
    ...["best %", "within 5 ms %", "mean excess ms", "p95 excess ms", "probes/URL", "last 50"].map(
      (title) => ({
        title,
        align: "right" as const,
      }),
    ),
  ];
  const rows = reports.map((report) => [
    report.policy,
    report.optimalPct.toFixed(1),
    report.within5msPct.toFixed(1),
    report.meanExcessMs.toFixed(2),
    report.p95ExcessMs.toFixed(2),
    report.probesPerUrl.toFixed(2),
    report.probesPerUrlLast50.toFixed(2),
  ]);
  const [first] = reports;
  return `${first?.crawlers} crawlers, ${first?.targets} targets\n\n${formatTable(columns, rows)}`;
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

function parseMs(text: string): number {
  const ms = Number(text);
  if (text.trim() === "" || !(ms >= 0) || ms > 3_600_000) {
    throw new InvalidArgumentError("A number of milliseconds, 0 or more, is expected.");
  }
  return ms;
}

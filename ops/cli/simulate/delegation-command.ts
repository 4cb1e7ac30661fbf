/** `nearcrawl simulate delegation`: how well policies do where every RTT is known, without a network. */
import { Command } from "commander";
import type { PolicyName } from "#coordinator/delegation/policies/policies";
import type { Figures } from "#coordinator/delegation/simulation/run";
import { isQuiet, type ProbeNoise } from "../../simulate/probe-noise.ts";
import { readFixture } from "../../simulate/read-fixture.ts";
import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  type RepeatedResult,
  repeatPolicies,
} from "../../simulate/repeat-policies.ts";
import { type Spread, spreadText } from "../../simulate/spread.ts";
import { formatTable, printJson } from "../output.ts";
import {
  addDelegationOptions,
  type DelegationOptions,
  hasYardstick,
  noiseOf,
  refuseContradictions,
  seedsOf,
  variantsOf,
} from "./delegation-options.ts";
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

// What `simulate delegation` prints: one report per policy, as JSON and as a table.

/** Figures are means over the seeds. */
interface DelegationReport extends Figures {
  /** Present when several instances were asked for. */
  readonly instance?: string;
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
  /** Null: no noise. */
  readonly noise: ProbeNoise | null;
  readonly yardstick: RepeatedResult | null;
}

function reportOf({ variant, results, figures }: RepeatedResult, of: ReportContext): DelegationReport {
  const [first] = results;
  const { yardstick } = of;
  return {
    ...(of.instance === null ? {} : { instance: of.instance }),
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
    within5msPct: figures.within5msPct.mean,
    meanExcessMs: figures.meanExcessMs.mean,
    p95ExcessMs: figures.p95ExcessMs.mean,
    probesPerUrl: figures.probesPerUrl.mean,
    probesPerUrlLast50: figures.probesPerUrlLast50.mean,
  };
}

function yardstickOf({ optimalPct, within5msPct, meanExcessMs }: Figures) {
  return { optimalPct, within5msPct, meanExcessMs };
}

/** The results of one instance, under a line that says what it is. */
function delegationTable(
  results: readonly RepeatedResult[],
  of: { readonly title: string; readonly seeds: string },
): string {
  const [first] = results;
  const columns = [
    { title: "policy" },
    ...["best %", "within 5 ms %", "mean excess ms", "p95 excess ms", "probes/URL", "last 50"].map(
      (title) => ({ title, align: "right" as const }),
    ),
  ];
  const rows = results.map(({ variant, figures }) => [
    variant.policy,
    spreadText(figures.optimalPct, 1),
    spreadText(figures.within5msPct, 1),
    spreadText(figures.meanExcessMs, 2),
    spreadText(figures.p95ExcessMs, 2),
    spreadText(figures.probesPerUrl, 2),
    spreadText(figures.probesPerUrlLast50, 2),
  ]);
  const size = first?.results[0];
  const head = `${of.title}${size?.crawlers} crawlers, ${size?.targets} targets${of.seeds}`;
  return `${head}\n\n${formatTable(columns, rows)}`;
}

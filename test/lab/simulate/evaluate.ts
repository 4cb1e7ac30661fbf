/**
 * IPMicra's figures beside ours, as tables in Markdown: accuracy and probes by policy, threshold and λ (figure 4), what is
 * learned during a run (figure 5), from 6 crawlers to 1,000, worlds that nothing was tuned on, and download time (figure 3).
 * They are kept in test/bench/results/delegation.md.
 */
import { Command } from "commander";
import { type PolicyVariant, simulatePolicies } from "#coordinator/place/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { downloadTimeMs, worldInstance } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import type { World } from "#ops/world/model";
import { sharedData } from "../../support/shared-data.ts";
import { familySource, fixtureSource, type InstanceSource, tuningWords } from "./instances.ts";
import { measuredWorld, readFixture } from "./measured.ts";
import { noNoise, repeatPolicies, spreadText } from "./repeat-policies.ts";
import { workProgress } from "./work-progress.ts";

interface NamedVariant {
  readonly name: string;
  readonly variant: PolicyVariant;
}

const ipmicra = (thresholdMs: number): NamedVariant => ({
  name: `ipmicra ${thresholdMs} ms`,
  variant: { policy: "ipmicra", parameters: { thresholdMs } },
});
const nearestAt = (lambdaMs: number, getFirst: boolean): NamedVariant => ({
  name: `nearest${getFirst ? ", get-first" : ""}, λ ${lambdaMs} ms`,
  variant: { policy: "nearest", parameters: { lambdaMs, getFirst } },
});
const random: NamedVariant = { name: "random", variant: { policy: "random" } };
const nearest: NamedVariant = { name: "nearest", variant: { policy: "nearest" } };
const exhaustive: NamedVariant = { name: "exhaustive", variant: { policy: "exhaustive" } };
const usual = [random, ipmicra(50), ipmicra(25), nearest];

/** Values from the paper's text (section 4.5) for twelve crawlers; its figures have no other legible numbers. */
const paper: Readonly<Record<string, string>> = {
  "ipmicra 25 ms": "90 %, 6.5 probes",
  "ipmicra 50 ms": "75 %, 3 probes (last 50: 2.66)",
};

/** One world or measured instance, and the policies compared on it. */
interface Run {
  readonly name: string;
  readonly source: InstanceSource;
  readonly compared: readonly NamedVariant[];
  readonly seeds: readonly number[];
}

/** Small worlds take seconds and show little. */
interface Plan {
  readonly sites: number;
  readonly seeds: readonly number[];
  readonly fleets: readonly number[];
  readonly measured: readonly Measured[];
}

interface Measured {
  readonly name: string;
  readonly source: InstanceSource;
  readonly world: World;
}

const worldRun = (plan: Plan, crawlers: number, compared: readonly NamedVariant[]): Run => ({
  name: `${crawlers} crawlers, ${plan.sites} sites, generated`,
  source: familySource("world", { crawlers, sites: plan.sites }),
  compared,
  // Only few worlds with fifty crawlers and more: these take longer than all others.
  seeds: crawlers < 50 ? plan.seeds : plan.seeds.slice(0, 1),
});

const knobs = [
  ...[125, 75, 50, 25, 15, 10].map(ipmicra),
  ...[false, true].flatMap((getFirst) => [8, 4, 2, 1, 0.5, 0.2].map((ms) => nearestAt(ms, getFirst))),
];

const tables: Readonly<Record<string, (plan: Plan) => readonly Run[]>> = {
  thresholds: (plan) => {
    const compared = [random, ...[25, 50, 75, 100, 125].map(ipmicra), nearest, exhaustive];
    const measured = plan.measured.map(({ name, source }) => ({ name, source, compared, seeds: plan.seeds }));
    return [worldRun(plan, 12, compared), ...measured];
  },
  learning: (plan) => [6, 12].map((crawlers) => worldRun(plan, crawlers, [ipmicra(50), nearest])),
  frontier: (plan) => plan.fleets.slice(0, 2).map((crawlers) => worldRun(plan, crawlers, knobs)),
  scale: (plan) =>
    // In the exhaustive policy every crawler probes every subnet; with 1,000 crawlers that takes too long to compute.
    plan.fleets.map((crawlers) => worldRun(plan, crawlers, crawlers > 200 ? usual : [...usual, exhaustive])),
  untuned: (plan) =>
    ["delay-space", "world"].flatMap((family) =>
      plan.fleets.map((crawlers) => ({
        ...worldRun(plan, crawlers, usual),
        name: `${family}, ${crawlers} crawlers`,
        source: familySource(family, { crawlers, sites: plan.sites }),
      })),
    ),
};
const figureNames = [...Object.keys(tables), "download"];

export function evaluateCommand(): Command {
  return new Command("evaluate")
    .description("the paper's figures on delegation beside ours, as tables in Markdown")
    .argument("[names...]", `which: ${figureNames.join(", ")}; all when left out`)
    .option("--quick", "small worlds, for a look or a test")
    .addHelpText(
      "after",
      "\nPL12.json and PL50.json in latency/ of the folder NEARCRAWL_DATA are used where they are there.",
    )
    .action(async (names: string[], { quick = false }: { quick?: boolean }) => {
      const unknown = names.find((name) => !figureNames.includes(name));
      if (unknown !== undefined)
        throw new UsageError(`"${unknown.slice(0, 40)}" is not a figure: ${figureNames.join(", ")} are`);
      const plan: Plan = quick
        ? { sites: 120, seeds: [1, 2], fleets: [6, 12], measured: [] }
        : {
            sites: 1000,
            seeds: [1, 2, 3, 4, 5],
            fleets: [12, 50, 200, 1000],
            measured: await readMeasured(),
          };
      for (const name of names.length === 0 ? figureNames : names)
        process.stdout.write(
          `## ${name}\n\n${name === "download" ? downloadTable(plan) : table(name, plan)}\n\n`,
        );
    });
}

async function readMeasured(): Promise<Measured[]> {
  const files = ["latency/PL12.json", "latency/PL50.json"].flatMap((file) => sharedData(file) ?? []);
  return await Promise.all(
    files.map(async (path) => {
      const json = await readFixture(path);
      return { name: json.name, source: fixtureSource(json), world: measuredWorld(json) };
    }),
  );
}

function table(figure: string, plan: Plan): string {
  const progress = workProgress("targets");
  const rows = tables[figure]!(plan).flatMap(({ name, source, compared, seeds }) => {
    const results = repeatPolicies({
      source,
      variants: compared.map(({ variant }) => variant),
      seeds,
      noise: noNoise,
      onProgress: (done, total) => progress.show(`${figure}: ${name}`, done, total),
    });
    return results.map(({ figures, results: runs, tuning }, at) => [
      name,
      tuningWords[tuning],
      compared[at]!.name,
      spreadText(figures.optimalPct, 1),
      spreadText(figures.within5msPct, 1),
      spreadText(figures.meanExcessMs, 2),
      spreadText(figures.probesPerUrl, 2),
      mean(runs.map(({ arrival, probes }) => mean(arrival.slice(0, 50).map((one) => probes[one]!)))).toFixed(
        2,
      ),
      spreadText(figures.probesPerUrlLast50, 2),
      runs[0]!.crawlers === 12 ? (paper[compared[at]!.name] ?? "–") : "–",
    ]);
  });
  progress.done();
  const titles = ["world", "tuning", "policy", "the best, %", "within 5 ms, %", "mean excess, ms"];
  return markdownTable([...titles, "probes per URL", "first 50", "last 50", "the paper"], rows);
}

/** Mean size of the emulated sites' pages on the wire, with headers. */
const pageBytes = 12_800;

/** In the paper the nearest of 4 crawlers takes a tenth of a random one's time. */
function downloadTable(plan: Plan): string {
  const worlds = [
    ...[4, 12].map((crawlers) => {
      const world = generateWorld({ crawlers, sites: plan.sites, seed: 1 });
      return { world, instance: worldInstance(world) };
    }),
    ...plan.measured.map(({ world, source }) => ({ world, instance: source.instance(1) })),
  ];
  const rows = worlds.flatMap(({ world, instance }) => {
    const compared = [...usual, exhaustive];
    const results = simulatePolicies(
      instance,
      compared.map(({ variant }) => variant),
    );
    const times = results.map(({ chosen }) => downloadsOf(world, chosen));
    const best = times.at(-1)!;
    return times.map(({ rttMs, pageMs }, at) => [
      `${world.crawlers.length} crawlers, ${world.name}`,
      compared[at]!.name,
      rttMs.toFixed(1),
      pageMs.toFixed(0),
      (pageMs / best.pageMs).toFixed(2),
      (rttMs / best.rttMs).toFixed(2),
    ]);
  });
  const titles = ["world", "policy", "mean RTT, ms", "a page, ms", "times exhaustive", "its RTT"];
  return markdownTable(titles, rows);
}

/** Over a new connection: two round trips, the server's own time, and the bytes at the site's bandwidth. */
function downloadsOf(world: World, chosen: readonly number[]): { rttMs: number; pageMs: number } {
  const rtts = world.sites.map(({ address }, site) => world.rttMs(chosen[site]!, address) ?? 0);
  const times = world.sites.map(({ bandwidthKbps, serverDelayMs }, site) =>
    downloadTimeMs({ rttMs: rtts[site]!, bodyBytes: pageBytes, bandwidthKbps, serverDelayMs }),
  );
  return { rttMs: mean(rtts), pageMs: mean(times) };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(titles), `|${"---|".repeat(titles.length)}`, ...rows.map(line)].join("\n");
}

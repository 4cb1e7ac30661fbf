/** `nearcrawl simulate balance`: what load balancing costs in RTT, by which policy and with which knowledge. */
import { Command, InvalidArgumentError, Option } from "commander";
import { overloads } from "#coordinator/balance/plan";
import { UsageError } from "#core/errors";
import type { CrawlerId, SubnetId } from "#core/ids";
import {
  type BalanceWorld,
  balanceWorld,
  type Knowledge,
  knowledgeKinds,
  type LoadKind,
  loadKinds,
} from "../../simulate/balance-fortnight.ts";
import {
  type BalancePlanning,
  balancePlanning,
  type SimulatedPolicy,
  simulatedPolicyNames,
} from "../../simulate/balance-planning.ts";
import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  type Spread,
  seedsFrom,
  spreadOf,
  spreadText,
} from "../../simulate/repeat-policies.ts";
import { worldLimits } from "../../world/generate-world.ts";
import { readFixture } from "../../world/read-fixture.ts";
import { boundedInteger, boundedNumber } from "../bounded-number.ts";
import { formatTable, printJson } from "../output.ts";
import { workProgress } from "./work-progress.ts";

interface BalanceOptions {
  readonly fixture?: string;
  readonly world?: boolean;
  readonly crawlers: number;
  readonly sites: number;
  readonly policy: readonly SimulatedPolicy[];
  readonly headroom: number;
  readonly knowledge: readonly Knowledge[];
  readonly loads: LoadKind;
  readonly rounds: number;
  readonly seed: number;
  readonly seeds: number;
  readonly json?: boolean;
}

const help = `
Every target is a subnet, delegated by the policy "nearest". "exact" knows every RTT; "probed" knows what the
delegation measured, predicts the rest, and probes what it would rely on before it moves anything. "extra" is
what pages are slower than from their nearest crawler, "added" what balancing alone added; the last column
compares "extra" with the exact plan of the same world.

Examples:
  nearcrawl simulate balance --fixture measured.json
  nearcrawl simulate balance --world --crawlers 50 --sites 2000 --seeds 3 --loads heavy-tailed
  nearcrawl simulate balance --fixture measured.json --policy min-cost-flow --knowledge probed --json

Exit codes: 0 done, 2 wrong usage or a file that is no fixture.
`;

export function balanceCommand(): Command {
  const whole = (flags: string, words: string, [value, least, most]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, most));
  return new Command("balance")
    .description("move subnets from overloaded crawlers, and compare what that costs by policy")
    .option("--fixture <file>", "JSON file with crawlers, targets and the RTTs between them")
    .option("--world", "instead: a world that is generated")
    .addOption(whole("--crawlers <n>", "with --world", [12, 2, worldLimits.crawlers]))
    .addOption(whole("--sites <n>", "with --world", [1000, 1, worldLimits.sites]))
    .addOption(
      new Option("--policy <names>", `${simulatedPolicyNames.join(", ")}; several separated by commas`)
        .default([...simulatedPolicyNames], simulatedPolicyNames.join(","))
        .argParser(listOf(simulatedPolicyNames)),
    )
    .addOption(
      new Option("--headroom <factor>", "what the fleet may carry, by its load")
        .default(1.25)
        .argParser(boundedNumber(1, 1000)),
    )
    .addOption(
      new Option("--knowledge <kinds>", `${knowledgeKinds.join(", ")}, or both separated by a comma`)
        .default([...knowledgeKinds], knowledgeKinds.join(","))
        .argParser(listOf(knowledgeKinds)),
    )
    .addOption(new Option("--loads <kind>", "pages of the subnets").choices([...loadKinds]).default("equal"))
    .addOption(whole("--rounds <n>", "most plans; between them what was asked for is probed", [20, 1, 100]))
    .addOption(whole("--seed <number>", "the order of the targets, or which world", [1, 0, 0xffff_ffff]))
    .addOption(whole("--seeds <n>", "number of runs, from --seed on: mean and spread", [1, 1, 1000]))
    .option("--json", "print JSON: a list with one object per policy and knowledge")
    .addHelpText("after", help)
    .action(runBalance);
}

async function runBalance(options: BalanceOptions): Promise<void> {
  const source = await sourceOf(options);
  const variants = options.knowledge.flatMap((knowledge) =>
    options.policy.map((policy) => ({ knowledge, policy, runs: [] as BalanceFigures[] })),
  );
  const exact: number[] = [];
  const progress = workProgress("runs");
  const total = options.seeds * (variants.length + 1);
  const seeds = seedsFrom(options.seed, options.seeds);
  for (const [index, seed] of seeds.entries()) {
    const before = index * (variants.length + 1);
    const instance = source.instance(seed);
    const worlds = new Map(
      knowledgeKinds.map((knowledge) => [knowledge, balanceWorld(instance, { ...options, knowledge, seed })]),
    );
    progress.show(`seed ${seed}, the exact plan`, before, total);
    exact.push(simulateBalance(worlds.get("exact")!, { policy: "min-cost-flow", seed }).extraMs);
    for (const [at, { knowledge, policy, runs }] of variants.entries()) {
      const show = (round: number) =>
        progress.show(`seed ${seed}, ${policy} (${knowledge}), plan ${round}`, before + at + 1, total);
      show(1);
      const { rounds } = options;
      runs.push(simulateBalance(worlds.get(knowledge)!, { policy, seed, rounds, onRound: show }));
    }
  }
  progress.done();
  const reports = variants.map(({ runs, ...variant }) => ({ ...variant, ...reportOf(runs, exact) }));
  if (options.json) printJson(reports);
  else process.stdout.write(`${tableOf(reports, options)}\n`);
}

async function sourceOf({ fixture, world, crawlers, sites }: BalanceOptions): Promise<InstanceSource> {
  if ((fixture === undefined) === (world !== true))
    throw new UsageError("one of --fixture <file> and --world is needed");
  if (fixture !== undefined) return fixedSource(await readFixture(fixture), "unknown");
  return generatedSource({ crawlers, sites });
}

type Report = Readonly<Record<keyof BalanceFigures | "timesExact", Spread>> & {
  readonly policy: SimulatedPolicy;
  readonly knowledge: Knowledge;
};

function reportOf(
  runs: readonly BalanceFigures[],
  exact: readonly number[],
): Omit<Report, "policy" | "knowledge"> {
  const of = (field: keyof BalanceFigures) => spreadOf(runs.map((run) => run[field]));
  return {
    extraMs: of("extraMs"),
    p95ExtraMs: of("p95ExtraMs"),
    addedMs: of("addedMs"),
    timesExact: spreadOf(runs.map(({ extraMs }, index) => (exact[index]! > 0 ? extraMs / exact[index]! : 1))),
    moves: of("moves"),
    probes: of("probes"),
    rounds: of("rounds"),
    overloadsLeft: of("overloadsLeft"),
    planSeconds: of("planSeconds"),
  };
}

function tableOf(reports: readonly Report[], options: BalanceOptions): string {
  const columns = [
    { title: "policy" },
    { title: "knowledge" },
    ...["extra ms", "p95", "added ms", "moves", "probes", "plans", "overloads left", "CPU s", "× exact"].map(
      (title) => ({ title, align: "right" as const }),
    ),
  ];
  const rows = reports.map((report) => [
    report.policy,
    report.knowledge,
    spreadText(report.extraMs, 2),
    report.p95ExtraMs.mean.toFixed(1),
    report.addedMs.mean.toFixed(2),
    report.moves.mean.toFixed(0),
    report.probes.mean.toFixed(0),
    report.rounds.mean.toFixed(1),
    report.overloadsLeft.mean.toFixed(1),
    report.planSeconds.mean.toFixed(2),
    report.timesExact.mean.toFixed(3),
  ]);
  const { headroom, loads, seeds } = options;
  const runs = seeds === 1 ? "" : `, mean (least to most) over ${seeds} seeds`;
  return `capacity ${headroom} times the load, ${loads} loads${runs}\n\n${formatTable(columns, rows)}`;
}

function listOf<Name extends string>(names: readonly Name[]): (text: string) => Name[] {
  return (text) =>
    text.split(",").map((part) => {
      const known = names.find((name) => name === part.trim());
      if (known !== undefined) return known;
      throw new InvalidArgumentError(`"${part.trim().slice(0, 40)}" is none of ${names.join(", ")}.`);
    });
}

// Balances a world whose every RTT is known, with a policy that may not know them: plan, measure what it asks for,
// plan again, until it asks for nothing (or the rounds are used up), and make the moves that rely on nothing unmeasured.

interface BalanceFigures {
  /** Mean over all pages of what their crawler is slower than the nearest, in ms. */
  readonly extraMs: number;
  /** The same of the slowest twentieth of the pages, at least. */
  readonly p95ExtraMs: number;
  /** Mean over all pages of what balancing added, in ms: the delegation's own error is not in it. */
  readonly addedMs: number;
  readonly moves: number;
  readonly probes: number;
  /** Plans until nothing was asked for any more. */
  readonly rounds: number;
  /** Crawlers over their capacity afterwards. */
  readonly overloadsLeft: number;
  /** CPU time of planning, in seconds. */
  readonly planSeconds: number;
}

interface BalanceRunOptions {
  readonly policy: SimulatedPolicy;
  readonly seed: number;
  /** Most plans. The last one's moves are made where what they rely on was measured. */
  readonly rounds?: number;
  /** Called before each plan. */
  readonly onRound?: (round: number) => void;
}

const defaultRounds = 20;

export function simulateBalance(world: BalanceWorld, options: BalanceRunOptions): BalanceFigures {
  const { policy, seed, rounds = defaultRounds, onRound } = options;
  const start = cpuSeconds();
  const planning = balancePlanning(policy, world.input, seed);
  const run = { probes: 0, rounds: 0 };
  let plan = planning.plan();
  for (run.rounds = 1; plan.probes.length > 0 && run.rounds < rounds; run.rounds++) {
    onRound?.(run.rounds);
    run.probes += measure(world, planning, plan.probes);
    plan = planning.plan();
  }
  const moves = planning.finalMoves();
  const planSeconds = cpuSeconds() - start;
  const placed = new Map(moves.map(({ subnetId, to }) => [subnetId, to]));
  return { ...figuresOf(world, placed), ...run, moves: moves.length, planSeconds };
}

function measure(
  world: BalanceWorld,
  planning: BalancePlanning,
  probes: readonly { readonly subnetId: SubnetId; readonly crawlerId: CrawlerId }[],
): number {
  planning.note(
    probes.map(({ subnetId, crawlerId }) => ({
      subnetId,
      crawlerId,
      rttMs: world.rttMs(subnetId, crawlerId),
    })),
  );
  return probes.length;
}

/** What the pages of a world suffer where its subnets lie; those that are not named are where they were. */
function figuresOf(
  world: BalanceWorld,
  placed: ReadonlyMap<SubnetId, CrawlerId>,
): Pick<BalanceFigures, "extraMs" | "p95ExtraMs" | "addedMs" | "overloadsLeft"> {
  const subnets = world.input.subnets.map((subnet) => ({
    ...subnet,
    crawlerId: placed.get(subnet.subnetId) ?? subnet.crawlerId,
  }));
  const extras = subnets.map(({ subnetId, crawlerId, loadPagesPerDay }) => ({
    ms: world.rttMs(subnetId, crawlerId) - least(world.rttsOf(subnetId)),
    pages: loadPagesPerDay,
  }));
  const pages = extras.reduce((sum, extra) => sum + extra.pages, 0);
  const added = subnets.reduce(
    (sum, { subnetId, crawlerId, loadPagesPerDay }, index) =>
      sum +
      loadPagesPerDay *
        (world.rttMs(subnetId, crawlerId) - world.rttMs(subnetId, world.input.subnets[index]!.crawlerId)),
    0,
  );
  return {
    extraMs: extras.reduce((sum, extra) => sum + extra.ms * extra.pages, 0) / pages,
    p95ExtraMs: percentile(extras, 0.95),
    addedMs: added / pages,
    overloadsLeft: overloads({ crawlers: world.input.crawlers, subnets }).length,
  };
}

/** Nearest rank, by pages. */
function percentile(
  values: readonly { readonly ms: number; readonly pages: number }[],
  share: number,
): number {
  const sorted = values.toSorted((a, b) => a.ms - b.ms);
  let left = share * sorted.reduce((sum, value) => sum + value.pages, 0);
  for (const { ms, pages } of sorted) {
    left -= pages;
    if (left <= 1e-9) return ms;
  }
  return sorted.at(-1)?.ms ?? 0;
}

function least(values: ArrayLike<number>): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) smallest = Math.min(smallest, values[index]!);
  return smallest;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

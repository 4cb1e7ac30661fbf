/**
 * 1,300 crawlers, as many as the probers of TinyG (CNSM 2023), which chooses whom to ask so that few probes find
 * one within 2 ms of a target. Fleets are drawn from measured matrices, where they are at hand, and from every model.
 */
import type { SimulationResult } from "#coordinator/delegation/simulation/simulation";
import { type InstanceFamily, instanceFamilies } from "../../simulate/instances/named-instance.ts";
import {
  type InstanceSource,
  type Spread,
  spreadOf,
  spreadText,
  tuningWords,
} from "../../simulate/repeat-policies.ts";
import {
  count,
  type EvaluationContext,
  type Figure,
  markdownTable,
  type NamedVariant,
  type Section,
  tinyG,
  variants,
} from "../figure.ts";
import { dataOf, keptSource, type NamedResult, runVariants } from "../run-variants.ts";

export const largeFleetFigure: Figure = {
  name: "large",
  title: "1,300 crawlers, beside TinyG",
  measure,
  usesMatrices: true,
};

/** The default, and its knob turned towards TinyG's number of probes and its reach. */
const timed: readonly NamedVariant[] = [
  variants.nearest,
  ...[1, 0.5].map(
    (lambdaMs): NamedVariant => ({
      name: `nearest, λ ${lambdaMs} ms`,
      variant: { policy: "nearest", parameters: { lambdaMs } },
    }),
  ),
];
const others: readonly NamedVariant[] = [variants.ipmicra(25)];

interface LargeResult extends NamedResult {
  /** Null: not timed. */
  readonly cpuMsPerDecision: Spread | null;
  readonly near: NearTargets;
}

export interface NearTargets {
  /** Targets with a crawler within 2 ms, of all. */
  readonly coverablePct: Spread;
  /** Of those, the ones whose crawler is within 2 ms. */
  readonly foundPct: Spread;
}

interface LargeGroup {
  readonly name: string;
  readonly results: readonly LargeResult[];
}

function measure(context: EvaluationContext): Section {
  const groups = instanceFamilies
    .filter(({ matrix }) => matrix === null || context.matrices.has(matrix))
    .map((family) => groupOf(family, context));
  const data = groups.map(({ name, results }) => ({
    name,
    policies: dataOf(results).map((figures, index) => ({
      ...figures,
      ...results[index]!.near,
      cpuMsPerDecision: results[index]!.cpuMsPerDecision,
    })),
  }));
  return { text: textOf(groups, context), pictures: [], data: { tinyG, groups: data } };
}

function groupOf(family: InstanceFamily, context: EvaluationContext): LargeGroup {
  const { plan, matrices } = context;
  const matrix = family.matrix === null ? null : matrices.get(family.matrix)!;
  const source = keptSource(family.source({ crawlers: plan.crawlers.large, sites: plan.sites }, matrix));
  // The matrices are three, and tell nearly the same.
  const seeds = matrix === null ? plan.fewSeeds : plan.fewSeeds.slice(0, 1);
  const results = timed.map((of) => timedResult(family.name, { source, of, seeds }, context));
  const untimed = runVariants({ what: family.name, source, compared: others, seeds }, context);
  return {
    name: family.name,
    results: [
      ...results,
      ...untimed.map((result) => ({
        ...result,
        near: nearTargets(result.results),
        cpuMsPerDecision: null,
      })),
    ],
  };
}

/** Alone, each seed by itself: from the end of the first target to that of the last, so that setting up is not in it. */
function timedResult(
  what: string,
  { source, of, seeds }: { source: InstanceSource; of: NamedVariant; seeds: readonly number[] },
  context: EvaluationContext,
): LargeResult {
  const startsUs: number[] = [];
  const endsUs: number[] = [];
  const onProgress: EvaluationContext["onProgress"] = (name, done, total) => {
    const perSeed = total / seeds.length;
    const [seed, at] = [Math.floor((done - 1) / perSeed), ((done - 1) % perSeed) + 1];
    if (at === 1) startsUs[seed] = cpuUs();
    if (at === perSeed) endsUs[seed] = cpuUs();
    context.onProgress(name, done, total);
  };
  const [result] = runVariants(
    { what: `${what}, ${of.name}`, source, compared: [of], seeds },
    { ...context, onProgress },
  );
  const perDecision = result!.results.map(({ probes, arrival }, seed) => {
    const decisions = arrival.slice(1).filter((target) => probes[target]! > 0).length;
    return (endsUs[seed]! - startsUs[seed]!) / 1000 / Math.max(1, decisions);
  });
  return { ...result!, near: nearTargets(result!.results), cpuMsPerDecision: spreadOf(perDecision) };
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** TinyG's measure: how many of the targets that somebody is near to got one who is. */
export function nearTargets(
  results: readonly Pick<SimulationResult, "rttsMs" | "bestRttsMs">[],
  withinMs = tinyG.withinMs,
): NearTargets {
  const perSeed = results.map(({ rttsMs, bestRttsMs }) => {
    const coverable = bestRttsMs.flatMap((bestMs, target) => (bestMs <= withinMs ? [rttsMs[target]!] : []));
    const found = coverable.filter((rttMs) => rttMs <= withinMs).length;
    return { coverable: coverable.length, found, targets: bestRttsMs.length };
  });
  return {
    coverablePct: spreadOf(perSeed.map(({ coverable, targets }) => (100 * coverable) / Math.max(1, targets))),
    foundPct: spreadOf(
      perSeed.flatMap(({ coverable, found }) => (coverable === 0 ? [] : [(100 * found) / coverable])),
    ),
  };
}

function textOf(groups: readonly LargeGroup[], { plan }: EvaluationContext): string {
  const rows = groups.flatMap(({ name, results }) =>
    results.map(({ name: policy, tuning, figures, near, cpuMsPerDecision }) => [
      name,
      tuningWords[tuning],
      policy,
      spreadText(figures.optimalPct, 1),
      spreadText(figures.within2msPct, 1),
      spreadText(figures.within5msPct, 1),
      spreadText(figures.meanExcessMs, 2),
      spreadText(figures.probesPerUrl, 2),
      spreadText(figures.p95ProbesPerUrl, 0),
      spreadText(near.coverablePct, 1),
      spreadText(near.foundPct, 1),
      cpuMsPerDecision === null ? "–" : spreadText(cpuMsPerDecision, 2),
    ]),
  );
  const published = [
    `more than ${count(tinyG.probers)} probers, as published`,
    "–",
    "TinyG",
    ...["–", "–", "–", "–"],
    String(tinyG.probesPerTarget),
    ...["–", "–"],
    String(100 - tinyG.lostPct),
    "–",
  ];
  return [
    `${count(plan.crawlers.large)} crawlers, ${count(plan.sites)} sites, mean over ${plan.fewSeeds.length} seeds (least to most), one for each matrix. "planetlab": crawlers and sites drawn with replacement from a measured 490 × 490 matrix, each copy with a last mile and a stretch of its own (ops/simulate/instances/drawn-fleet.ts), with a tree of the nodes, a fifth of the hosts misfiled, or a loose one that tells region and area of seven in ten. Probes are not disturbed. A URL whose leaf is delegated already costs no probe and counts.`,
    "",
    `TinyG's measure is absolute: of the targets that some crawler is within ${tinyG.withinMs} ms of, for how many such a one was found. It loses ${tinyG.lostPct} % of them at ${tinyG.probesPerTarget} probes a target. Its probers and targets are real hosts that are not at hand here, so its row and ours do not measure the same targets. CPU is that of the policy, with everything learned on the way, on a machine that others share.`,
    "",
    markdownTable(
      [
        "instance",
        "tuning",
        "policy",
        "the best, %",
        "within 2 ms of it, %",
        "within 5 ms, %",
        "mean excess, ms",
        "probes per URL",
        "95 %",
        "targets with a crawler at ≤ 2 ms, %",
        "of those, got one, %",
        "CPU per decision, ms",
      ],
      [...rows, published],
    ),
  ].join("\n");
}

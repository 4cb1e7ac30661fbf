/**
 * λ against the bound of risk. What a policy is for is a crawler that is hardly slower than the best, for few probes:
 * mean excess plus λ for each probe, as λ says what a probe costs. Beside `nearest`, whose λ it is: rules that
 * are told afterwards what was best, none of which can be had, and rules that ask for more than they need.
 */
import type { AskingOrder } from "#coordinator/delegation/simulation/run";
import type { SimulationInstance, SimulationResult } from "#coordinator/delegation/simulation/simulation";
import { familyOf } from "../../simulate/instances/named-instance.ts";
import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  type Tuning,
  tuningWords,
} from "../../simulate/repeat-policies.ts";
import {
  bestFixedStop,
  canStillPay,
  type FixedStop,
  hindsightStop,
  independentSearch,
  ownStop,
  type Risk,
  riskOf,
} from "../../simulate/stopping-rules.ts";
import {
  type EvaluationContext,
  type Figure,
  image,
  markdownTable,
  type NamedVariant,
  type Section,
  variants,
} from "../figure.ts";
import { axisFor } from "../pictures/document.ts";
import { drawLines, type Line, type LinePanel } from "../pictures/line-picture.ts";
import { keptSource, runVariants } from "../run-variants.ts";

export const riskFigure: Figure = { name: "risk", title: "λ against the bound of risk", measure };

const lambdasMs = [0.25, 0.5, 1, 2, 4, 8, 16] as const;
const thresholds = [125, 75, 50, 25, 15, 10].map(variants.ipmicra);
/** Fixed numbers of probes that are tried: 1 to so many. */
const mostFixed = 12;

interface RiskAt {
  readonly lambdaMs: number;
  readonly nearest: Risk;
  readonly hindsight: Risk;
  readonly fixed: FixedStop;
  readonly independent: Risk;
  /** At its best threshold. */
  readonly ipmicra: Risk & { readonly policy: string };
  readonly exhaustive: Risk;
}

interface RiskGroup {
  readonly name: string;
  readonly tuning: Tuning;
  /** Over all seeds together. */
  readonly rounds: number;
  readonly risks: readonly RiskAt[];
}

function measure(context: EvaluationContext): Section {
  const groups = groupsOf(context);
  const file = "delegation-risk.svg";
  return { text: textOf(groups, context, file), pictures: [{ file, svg: pictureOf(groups) }], data: groups };
}

function groupsOf(context: EvaluationContext): RiskGroup[] {
  const { plan, measured } = context;
  const { sites } = plan;
  const most = Math.max(...plan.crawlers.risk);
  const modelled = ["cities", "delay-space"].map((name) => ({
    name: `${most} crawlers, ${name}`,
    source: familyOf(name)!.source({ crawlers: most, sites }, null),
  }));
  const sources = [
    ...plan.crawlers.risk.map((crawlers) => ({
      name: `${crawlers} crawlers, generated`,
      source: generatedSource({ crawlers, sites }),
    })),
    ...measured.map(({ name, tuning, instance }) => ({
      name: `${instance.crawlers.length} crawlers, ${name}`,
      source: fixedSource(instance, tuning),
    })),
    ...modelled,
  ];
  return sources.map(({ name, source }) => groupOf(name, keptSource(source), context));
}

function groupOf(name: string, source: InstanceSource, context: EvaluationContext): RiskGroup {
  const { seeds } = context.plan;
  const run = (what: string, compared: readonly NamedVariant[], lambdaMs?: number) =>
    runVariants(
      {
        what: `${name}, ${what}`,
        source,
        compared,
        seeds,
        ...(lambdaMs === undefined
          ? {}
          : { asksFurther: (order: AskingOrder) => canStillPay(order, { lambdaMs, mostFixed }) }),
      },
      context,
    );
  const ipmicra = run("ipmicra", thresholds);
  const instances = seeds.map(source.instance);
  let rounds = 0;
  const risks = lambdasMs.map((lambdaMs): RiskAt => {
    const variant = { policy: "nearest", parameters: { lambdaMs } } as const;
    const [nearest] = run(`λ ${lambdaMs} ms`, [{ name: variants.nearest.name, variant }], lambdaMs);
    const decided = nearest!.results.map(decidedTargets);
    const orders = nearest!.results.flatMap((result) => result.orders.filter((order) => order !== null));
    rounds = orders.length;
    const risk = (ended: Parameters<typeof riskOf>[0]) => riskOf(ended, lambdaMs);
    const independent = instances.flatMap((instance, seed) =>
      independentSearch(rowsOf(instance, decided[seed]!), lambdaMs),
    );
    return {
      lambdaMs,
      nearest: risk(orders.map(ownStop)),
      hindsight: risk(orders.map((order) => hindsightStop(order, lambdaMs))),
      fixed: bestFixedStop(orders, { lambdaMs, most: mostFixed }),
      independent: risk(independent),
      ipmicra: ipmicra
        .map((one) => ({
          ...risk(one.results.flatMap((result, seed) => endedRounds(result, decided[seed]!))),
          policy: one.name,
        }))
        .reduce((best, one) => (one.riskMs < best.riskMs ? one : best)),
      exhaustive: risk(orders.map(() => ({ excessMs: 0, probes: instances[0]!.crawlers.length }))),
    };
  });
  return { name, tuning: source.tuning, rounds, risks };
}

/** Positions of the targets whose leaf was not delegated yet: the same for every policy where no probe fails. */
function decidedTargets({ orders }: SimulationResult): number[] {
  return orders.flatMap((order, target) => (order === null ? [] : [target]));
}

function rowsOf({ targets }: SimulationInstance, decided: readonly number[]): ArrayLike<number>[] {
  return decided.map((target) => targets[target]!.rtt);
}

function endedRounds({ rttsMs, bestRttsMs, probes }: SimulationResult, decided: readonly number[]) {
  return decided.map((target) => ({
    excessMs: rttsMs[target]! - bestRttsMs[target]!,
    probes: probes[target]!,
  }));
}

/** Lines end where they pass so many times the risk in hindsight. */
const mostTimes = 4;

const drawn = [
  { name: "ipmicra, its best threshold", role: "ipmicra", of: ({ ipmicra }: RiskAt) => ipmicra },
  { name: "independent crawlers", role: "ipmicra-strict", of: ({ independent }: RiskAt) => independent },
  { name: "the best fixed number of probes", role: "get-first", of: ({ fixed }: RiskAt) => fixed },
  { name: "nearest", role: "nearest", of: ({ nearest }: RiskAt) => nearest },
] as const;

function pictureOf(groups: readonly RiskGroup[]): string {
  const x = {
    label: "λ, ms",
    from: lambdasMs[0] * 0.8,
    to: lambdasMs.at(-1)! * 1.25,
    ticks: lambdasMs,
    scale: "logarithmic",
  } as const;
  const y = axisFor("risk, times that in hindsight", [], { from: 1, to: mostTimes });
  const panels = groups.map(
    ({ name, tuning, risks }): LinePanel => ({
      title: `${name} (${tuningWords[tuning]})`,
      x,
      y,
      lines: drawn.map(
        ({ name: line, role, of }): Line => ({
          name: line,
          role,
          style: "line-with-marks",
          points: risks
            .map((risk) => ({ x: risk.lambdaMs, y: of(risk).riskMs / risk.hindsight.riskMs }))
            .filter((point) => point.y <= mostTimes),
        }),
      ),
    }),
  );
  return drawLines({
    title: "Risk against λ, by that of the best stop in hindsight",
    description: "Mean excess plus λ for each probe, relative to the least that the order of asking allows.",
    panels,
  });
}

function textOf(groups: readonly RiskGroup[], { plan }: EvaluationContext, file: string): string {
  const rows = groups.flatMap(({ name, tuning, risks }) =>
    risks.map((at) => [
      name,
      tuningWords[tuning],
      String(at.lambdaMs),
      riskCell(at.nearest),
      riskCell(at.hindsight),
      (at.nearest.riskMs / at.hindsight.riskMs).toFixed(2),
      `${at.fixed.riskMs.toFixed(2)} (${at.fixed.stopAfter})`,
      riskCell(at.independent),
      `${at.ipmicra.riskMs.toFixed(2)} (${at.ipmicra.policy.replace("ipmicra ", "")})`,
      at.exhaustive.riskMs.toFixed(1),
    ]),
  );
  const rounds = groups.map(({ name, rounds: count }) => `${name}: ${count}`).join("; ");
  return [
    image(file, "Risk against λ for nearest, a fixed number of probes, ipmicra and independent crawlers"),
    "",
    "Risk of a round: how much slower the chosen crawler is than the best, in ms, plus λ for each probe; in brackets both parts, excess and probes. It is the functional that DBCARE minimises (Harding and Kandasamy, arXiv 2505.20583: simple regret plus a cost per sample). Rounds only: a URL whose leaf is delegated already costs every policy the same.",
    "",
    "- **in hindsight**: `nearest`'s order of asking, stopped where the risk was least. Whoever asks in this order, and at least one crawler, cannot have less. It knows the best crawler, so no rule reaches it.",
    `- **fixed**: the same order, stopped after 1 to ${mostFixed} probes, the number (in brackets) that was best for all rounds.`,
    "- **independent**: the optimal search for who knows how far each crawler is from the targets altogether and takes crawlers for independent (Weitzman 1979): what can be had without the tree, the RTTs between crawlers and what was measured before. Its distributions are those of these very targets.",
    "- **ipmicra**: with the threshold (in brackets) that was best for this λ. It asks nobody where one crawler has the holder's other ranges, so that it can come below what is least for a measured delegation. **exhaustive**: λ by the fleet.",
    "",
    "DBCARE's own lower bounds are not drawn. They are for arms that must be sampled again and again because each sample is noisy, with nothing known of one arm from another; here a probe tells the RTT, and one arm tells of others. The counterpart for probes without noise is `independent`: no bound, but the optimum itself, where crawlers are independent. The constants of the paper's bounds are not quoted: its abstract alone could be read.",
    "",
    `Mean over ${plan.seeds.length} seeds. Rounds: ${rounds}.`,
    "",
    verdict(groups),
    "",
    markdownTable(
      [
        "instance",
        "tuning",
        "λ, ms",
        "nearest",
        "in hindsight",
        "nearest : hindsight",
        "fixed",
        "independent",
        "ipmicra",
        "exhaustive",
      ],
      rows,
    ),
  ].join("\n");
}

/** Where `nearest` is not the best of the rules that can be had. */
function verdict(groups: readonly RiskGroup[]): string {
  const times = groups.flatMap(({ risks }) =>
    risks.map(({ nearest, hindsight }) => nearest.riskMs / hindsight.riskMs),
  );
  const others = [
    { name: "a fixed number of probes", of: ({ fixed }: RiskAt) => fixed },
    { name: "`independent`", of: ({ independent }: RiskAt) => independent },
    { name: "`ipmicra`", of: ({ ipmicra }: RiskAt) => ipmicra },
    { name: "`exhaustive`", of: ({ exhaustive }: RiskAt) => exhaustive },
  ];
  const better = others.flatMap(({ name, of }) =>
    groups.flatMap((group) => {
      const lambdas = group.risks.filter((at) => of(at).riskMs < at.nearest.riskMs);
      const listed = lambdas.map(({ lambdaMs }) => lambdaMs).join(", ");
      return lambdas.length === 0 ? [] : [`${name} with ${group.name} at λ ${listed} ms`];
    }),
  );
  return [
    `**\`nearest\` has ${Math.min(...times).toFixed(2)} to ${Math.max(...times).toFixed(2)} times the risk in hindsight.**`,
    better.length === 0
      ? "No other rule in the table has less risk."
      : `Rules with less risk than \`nearest\`: ${better.join("; ")}.`,
  ].join(" ");
}

function riskCell({ riskMs, excessMs, probes }: Risk): string {
  return `${riskMs.toFixed(2)} (${excessMs.toFixed(2)}, ${probes.toFixed(2)})`;
}

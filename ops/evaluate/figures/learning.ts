/**
 * Figure 5 of the paper: probes per URL in the order in which the URLs arrive, with 6 and 12 crawlers and a linear
 * trend. What was decided helps to decide the next.
 */

import { generatedSource, type Tuning, tuningWords } from "../../simulate/repeat-policies.ts";
import {
  count,
  type EvaluationContext,
  type Figure,
  image,
  markdownTable,
  type NamedVariant,
  paper,
  type Section,
  variants,
} from "../figure.ts";
import { axisFor, type Role } from "../pictures/document.ts";
import { drawLines, type Line, type LinePanel } from "../pictures/line-picture.ts";
import { runVariants } from "../run-variants.ts";

export const learningFigure: Figure = {
  name: "learning",
  title: "Probes per URL over time (figure 5 of the paper)",
  measure,
};

/** URLs that one point of a line is the mean of. */
const windowUrls = 50;

const compared: readonly { readonly role: Role; readonly of: NamedVariant }[] = [
  { role: "ipmicra", of: variants.ipmicra(50) },
  { role: "nearest", of: variants.nearest },
];

export interface Trend {
  readonly atFirst: number;
  /** Change over the whole run. */
  readonly change: number;
}

interface Curve {
  readonly crawlers: number;
  readonly policy: string;
  readonly tuning: Tuning;
  readonly role: Role;
  /** Mean over the seeds of the probes of the first, second … URL to arrive. */
  readonly probes: readonly number[];
  readonly trend: Trend;
}

function measure(context: EvaluationContext): Section {
  const curves = context.plan.crawlers.learning.flatMap((crawlers) => curvesOf(crawlers, context));
  const file = "delegation-learning.svg";
  return {
    text: textOf(curves, context, file),
    pictures: [{ file, svg: pictureOf(curves, context) }],
    data: curves.map(({ probes, ...curve }) => ({ ...curve, windows: windowsOf(probes) })),
  };
}

function curvesOf(crawlers: number, context: EvaluationContext): Curve[] {
  const results = runVariants(
    {
      what: `${crawlers} crawlers`,
      source: generatedSource({ crawlers, sites: context.plan.sites }),
      compared: compared.map(({ of }) => of),
    },
    context,
  );
  return results.map((result, index) => {
    const runs = result.results.map(({ arrival, probes }) => arrival.map((target) => probes[target]!));
    const probes = runs[0]!.map((_, at) => runs.reduce((sum, run) => sum + run[at]!, 0) / runs.length);
    const { name: policy, tuning } = result;
    return { crawlers, policy, tuning, role: compared[index]!.role, probes, trend: linearTrend(probes) };
  });
}

/** Least squares over the position in the run. */
export function linearTrend(values: readonly number[]): Trend {
  const last = Math.max(1, values.length - 1);
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  let products = 0;
  let squares = 0;
  values.forEach((value, index) => {
    products += (index - middle) * (value - mean);
    squares += (index - middle) ** 2;
  });
  const slope = squares === 0 ? 0 : products / squares;
  return { atFirst: mean - slope * middle, change: slope * last };
}

function windowsOf(probes: readonly number[]): { x: number; y: number }[] {
  const starts = Array.from(
    { length: Math.floor(probes.length / windowUrls) },
    (_, index) => index * windowUrls,
  );
  return starts.map((start) => ({
    x: start + windowUrls / 2,
    y: mean(probes.slice(start, start + windowUrls)),
  }));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function pictureOf(curves: readonly Curve[], { plan }: EvaluationContext): string {
  const y = axisFor(
    `probes per URL, mean of ${windowUrls}`,
    curves.flatMap(({ probes }) => windowsOf(probes).map((point) => point.y)),
  );
  const panels = plan.crawlers.learning.map(
    (crawlers): LinePanel => ({
      title: `${crawlers} crawlers (dashed: linear trend)`,
      x: axisFor("URLs in the order of their arrival", [plan.sites]),
      y,
      lines: curves.filter((curve) => curve.crawlers === crawlers).flatMap(linesOf),
    }),
  );
  return drawLines({
    title: "Probes per URL over time",
    description: "Probes per URL in the order of arrival with linear trends, ipmicra at 50 ms and nearest.",
    panels,
  });
}

function linesOf({ policy, role, probes, trend }: Curve): Line[] {
  const last = probes.length;
  return [
    { name: policy, role, style: "line", points: windowsOf(probes) },
    {
      name: `${policy}, linear trend`,
      named: false,
      role,
      style: "dashed",
      points: [
        { x: 0, y: trend.atFirst },
        { x: last, y: trend.atFirst + trend.change },
      ],
    },
  ];
}

function textOf(curves: readonly Curve[], { plan }: EvaluationContext, file: string): string {
  const rows = curves.map(({ crawlers, policy, tuning, probes, trend }) => [
    String(crawlers),
    tuningWords[tuning],
    policy,
    mean(probes).toFixed(2),
    mean(probes.slice(0, windowUrls)).toFixed(2),
    mean(probes.slice(-windowUrls)).toFixed(2),
    `${trend.atFirst.toFixed(2)} → ${(trend.atFirst + trend.change).toFixed(2)}`,
  ]);
  return [
    image(file, "Probes per URL over time with linear trends, for two fleets and two policies"),
    "",
    `Generated worlds of ${count(plan.sites)} sites, mean over ${plan.seeds.length} of them. The paper, 12 crawlers at 50 ms: 3 probes per URL, ${paper.probesPerUrlLast50} over the last 50, falling trend lines for both fleets.`,
    "",
    markdownTable(
      ["crawlers", "tuning", "policy", "probes per URL", "first 50", "last 50", "linear trend"],
      rows,
    ),
  ].join("\n");
}

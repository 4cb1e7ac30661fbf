/**
 * Accuracy against probes: what each policy reaches as its one knob is turned (ipmicra's threshold, λ of nearest).
 * The curve that lies above and to the left is the better policy, whatever the knob stands at.
 */

import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  tuningWords,
} from "../../simulate/repeat-policies.ts";
import {
  count,
  type EvaluationContext,
  type Figure,
  image,
  markdownTable,
  type NamedVariant,
  type Section,
  variants,
} from "../figure.ts";
import { type Axis, axisFor } from "../pictures/document.ts";
import { drawLines, type Line, type LinePanel } from "../pictures/line-picture.ts";
import { dataOf, type NamedResult, runVariants } from "../run-variants.ts";

export const frontierFigure: Figure = { name: "frontier", title: "Accuracy against probes", measure };

const lambdasMs = [8, 4, 2, 1, 0.5, 0.2] as const;
const thresholdsMs = [125, 75, 50, 25, 15, 10] as const;

const nearestAt = (lambdaMs: number, getFirst: boolean): NamedVariant => ({
  name: `${getFirst ? variants.getFirst.name : variants.nearest.name}, λ ${lambdaMs} ms`,
  variant: { policy: "nearest", parameters: { lambdaMs, getFirst } },
});

const ipmicraKnobs = thresholdsMs.map(variants.ipmicra);
const nearestKnobs = lambdasMs.map((ms) => nearestAt(ms, false));
const getFirstKnobs = lambdasMs.map((ms) => nearestAt(ms, true));
const compared = [...ipmicraKnobs, ...nearestKnobs, ...getFirstKnobs];

interface FrontierGroup {
  readonly name: string;
  readonly results: readonly NamedResult[];
}

function measure(context: EvaluationContext): Section {
  const groups = groupsOf(context);
  const file = "delegation-frontier.svg";
  const data = groups.map(({ name, results }) => ({ name, policies: dataOf(results) }));
  return { text: textOf(groups, file), pictures: [{ file, svg: pictureOf(groups) }], data };
}

function groupsOf(context: EvaluationContext): FrontierGroup[] {
  const { plan, measured } = context;
  const run = (name: string, source: InstanceSource): FrontierGroup => ({
    name,
    results: runVariants({ what: name, source, compared }, context),
  });
  const { sites } = plan;
  return [
    ...plan.crawlers.frontier.map((crawlers) =>
      run(`${crawlers} crawlers, generated`, generatedSource({ crawlers, sites })),
    ),
    ...measured.map(({ name, tuning, instance }) =>
      run(`${instance.crawlers.length} crawlers, ${name}`, fixedSource(instance, tuning)),
    ),
  ];
}

/** Beyond this many probes a knob's position is in the table, not in the picture. */
const mostProbesShown = 8;

function pictureOf(groups: readonly FrontierGroup[]): string {
  const shares = groups.flatMap(({ results }) => results.map(({ figures }) => figures.within5msPct.mean));
  const least = Math.floor(Math.min(...shares.filter((share) => share > 0), 90) / 10) * 10;
  const y = axisFor("URLs within 5 ms of the best, %", [], { from: least, to: 100 });
  const x = axisFor("probes per URL", [], { from: 0, to: mostProbesShown });
  const panels = groups.map((group) => panelOf(group, { ...x, ticks: [0, 2, 4, 6, 8] }, y));
  return drawLines({
    title: "Accuracy against probes, as each policy's knob is turned",
    description: "Share of URLs within 5 ms of the best crawler against probes per URL.",
    panels,
  });
}

function panelOf({ name, results }: FrontierGroup, x: Axis, y: Axis): LinePanel {
  const point = (index: number, label?: string) => {
    const { probesPerUrl, within5msPct } = results[index]!.figures;
    return { x: probesPerUrl.mean, y: within5msPct.mean, ...(label === undefined ? {} : { label }) };
  };
  const shown = (points: readonly { x: number; y: number; label?: string }[]) =>
    points.filter((one) => one.x <= mostProbesShown);
  const [ours, free] = [ipmicraKnobs.length, ipmicraKnobs.length + nearestKnobs.length] as const;
  const lines: Line[] = [
    {
      name: "ipmicra, threshold 125 to 10 ms",
      role: "ipmicra",
      style: "line-with-marks",
      points: shown(
        thresholdsMs.map((ms, index) => point(index, ms === 50 || ms === 25 ? `${ms} ms` : undefined)),
      ),
    },
    {
      name: `nearest, λ ${lambdasMs[0]} to ${lambdasMs.at(-1)} ms`,
      role: "nearest",
      style: "line-with-marks",
      points: shown(lambdasMs.map((_, index) => point(ours + index))),
    },
    {
      name: "nearest, get-first",
      role: "get-first",
      style: "line-with-marks",
      points: shown(lambdasMs.map((_, index) => point(free + index))),
    },
  ];
  return { title: name, x, y, lines };
}

function textOf(groups: readonly FrontierGroup[], file: string): string {
  const rows = groups.flatMap(({ name, results }) =>
    results.map(({ name: policy, tuning, figures }) => [
      name,
      tuningWords[tuning],
      policy,
      figures.optimalPct.mean.toFixed(1),
      figures.within5msPct.mean.toFixed(1),
      figures.probesPerUrl.mean.toFixed(2),
    ]),
  );
  return [
    image(
      file,
      "Share of URLs within 5 ms of the best crawler against probes per URL, for ipmicra and nearest",
    ),
    "",
    `Further up and further left is better. Positions beyond ${count(mostProbesShown)} probes are in the table alone.`,
    "",
    "<details><summary>The numbers</summary>",
    "",
    markdownTable(["instance", "tuning", "policy", "the best, %", "within 5 ms, %", "probes per URL"], rows),
    "",
    "</details>",
  ].join("\n");
}

/**
 * Figure 4 of the paper: accuracy and probes of ipmicra at thresholds of 25 to 125 ms with 12 crawlers and 1,000
 * URLs, beside nearest and exhaustive on the same worlds.
 */

import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  spreadText,
  tuningWords,
} from "../../simulate/repeat-policies.ts";
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
import { axisFor } from "../pictures/document.ts";
import { drawLines, type Line } from "../pictures/line-picture.ts";
import { dataOf, type NamedResult, runVariants } from "../run-variants.ts";

export const thresholdsFigure: Figure = {
  name: "thresholds",
  title: "Accuracy and probes against the threshold (figure 4 of the paper)",
  measure,
};

const thresholdsMs = [25, 50, 75, 100, 125] as const;

const compared = [
  variants.random,
  ...thresholdsMs.map(variants.ipmicra),
  variants.nearest,
  variants.getFirst,
  variants.exhaustive,
];

interface ThresholdGroup {
  readonly name: string;
  readonly crawlers: number;
  readonly results: readonly NamedResult[];
}

function measure(context: EvaluationContext): Section {
  const groups = groupsOf(context);
  const file = "delegation-thresholds.svg";
  const svg = pictureOf(groups[0]!);
  const data = groups.map(({ name, results }) => ({ name, policies: dataOf(results) }));
  return { text: textOf(groups, file), pictures: [{ file, svg }], data };
}

function groupsOf(context: EvaluationContext): ThresholdGroup[] {
  const { plan, measured } = context;
  const { sites } = plan;
  const crawlers = plan.crawlers.thresholds;
  const run = (name: string, source: InstanceSource): ThresholdGroup => {
    const results = runVariants({ what: name, source, compared }, context);
    return { name, crawlers: results[0]!.results[0]!.crawlers, results };
  };
  return [
    run(`${crawlers} crawlers, ${count(sites)} sites, generated`, generatedSource({ crawlers, sites })),
    ...measured.map(({ name, tuning, instance }) => run(name, fixedSource(instance, tuning))),
  ];
}

function pictureOf({ name, results }: ThresholdGroup): string {
  const figuresOf = (of: NamedVariant) => results.find((result) => result.name === of.name)!.figures;
  const accuracy = (of: NamedVariant) => figuresOf(of).optimalPct.mean;
  const probes = (of: NamedVariant) => figuresOf(of).probesPerUrl.mean;
  const x = { ...axisFor("threshold, ms", [], { from: 0, to: 125 }), ticks: [0, ...thresholdsMs] };
  const lines = (
    value: (of: NamedVariant) => number,
    theirs: (one: (typeof paper.thresholds)[number]) => number,
  ) => {
    const level = (of: NamedVariant) => [0, 125].map((at) => ({ x: at, y: value(of) }));
    return [
      { name: "exhaustive", role: "exhaustive", style: "dashed", points: level(variants.exhaustive) },
      { name: "nearest, get-first", role: "get-first", style: "dashed", points: level(variants.getFirst) },
      { name: "nearest", role: "nearest", style: "line", points: level(variants.nearest) },
      {
        name: "ipmicra",
        role: "ipmicra",
        style: "line-with-marks",
        points: thresholdsMs.map((ms) => ({ x: ms, y: value(variants.ipmicra(ms)) })),
      },
      {
        name: "ipmicra as the paper reports it",
        role: "paper",
        style: "hollow",
        points: paper.thresholds.map((one) => ({ x: one.thresholdMs, y: theirs(one) })),
      },
    ] satisfies Line[];
  };
  return drawLines({
    title: `Accuracy and probes against the threshold: ${name}`,
    description:
      "Share of URLs at the best crawler and probes per URL, for ipmicra by threshold, nearest and exhaustive.",
    panels: [
      {
        title: "Accuracy: the best crawler",
        x,
        y: axisFor("URLs at the best crawler, %", [], { from: 0, to: 100 }),
        lines: lines(accuracy, (one) => one.optimalPct),
      },
      {
        title: "Cost",
        x,
        y: axisFor("probes per URL", [...compared.map(probes), 7]),
        lines: lines(probes, (one) => one.probesPerUrl),
      },
    ],
  });
}

function textOf(groups: readonly ThresholdGroup[], file: string): string {
  const rows = groups.flatMap(({ name, crawlers, results }) =>
    results.map(({ name: policy, tuning, figures }) => [
      name,
      tuningWords[tuning],
      policy,
      spreadText(figures.optimalPct, 1),
      spreadText(figures.within5msPct, 1),
      spreadText(figures.meanExcessMs, 2),
      spreadText(figures.probesPerUrl, 2),
      spreadText(figures.probesPerUrlLast50, 2),
      crawlers === paper.crawlers ? paperCell(policy) : "–",
    ]),
  );
  return [
    image(
      file,
      "Accuracy and probes per URL against ipmicra's threshold, with nearest and exhaustive as levels",
    ),
    "",
    "Means over the seeds (least to most): other worlds where they are generated, other orders where they were measured. A URL whose leaf is delegated already costs no probe and counts.",
    "",
    markdownTable(
      [
        "instance",
        "tuning",
        "policy",
        "the best, %",
        "within 5 ms, %",
        "mean excess, ms",
        "probes per URL",
        "last 50",
        "the paper: the best, probes",
      ],
      rows,
    ),
  ].join("\n");
}

function paperCell(policy: string): string {
  const stated = paper.thresholds.find(({ thresholdMs }) => variants.ipmicra(thresholdMs).name === policy);
  if (!stated) return "–";
  const last = stated.thresholdMs === 50 ? ` (last 50: ${paper.probesPerUrlLast50})` : "";
  return `${stated.optimalPct} %, ${stated.probesPerUrl}${last}`;
}

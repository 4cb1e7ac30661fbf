/**
 * From 6 crawlers to 1,000 and from 1,000 sites to 100,000: accuracy and probes of every policy. The paper expects
 * its approach to react better with more crawlers; here it can be seen what each does.
 */
import { generatedSource, spreadText, tuningWords } from "../../simulate/repeat-policies.ts";
import {
  count,
  type EvaluationContext,
  type Figure,
  image,
  markdownTable,
  type NamedVariant,
  type ScaleStep,
  type Section,
  variants,
} from "../figure.ts";
import { axisFor, type Role } from "../pictures/document.ts";
import { drawLines, type Line } from "../pictures/line-picture.ts";
import { dataOf, type NamedResult, runVariants } from "../run-variants.ts";

export const scaleFigure: Figure = { name: "scale", title: "From 6 crawlers to 1,000", measure };

const drawn: readonly { readonly of: NamedVariant; readonly role: Role }[] = [
  { of: variants.random, role: "random" },
  { of: variants.ipmicra(50), role: "ipmicra" },
  { of: variants.ipmicra(25), role: "ipmicra-strict" },
  { of: variants.nearest, role: "nearest" },
  { of: variants.getFirst, role: "get-first" },
  { of: variants.exhaustive, role: "exhaustive" },
];
const compared = drawn.map(({ of }) => of);

interface ScaleRow {
  readonly step: ScaleStep;
  readonly policies: readonly NamedResult[];
  readonly cpuSeconds: number;
}

function measure(context: EvaluationContext): Section {
  const rows = context.plan.scale.map((step) => rowOf(step, context));
  const file = "delegation-scale.svg";
  const data = rows.map(({ step, policies, cpuSeconds }) => ({
    ...step,
    cpuSeconds,
    policies: dataOf(policies),
  }));
  return { text: textOf(rows, file), pictures: [{ file, svg: pictureOf(rows) }], data };
}

function rowOf(step: ScaleStep, context: EvaluationContext): ScaleRow {
  const before = process.cpuUsage();
  const policies = runVariants(
    {
      what: `${count(step.crawlers)} crawlers, ${count(step.sites)} sites`,
      source: generatedSource(step),
      compared: step.exhaustive ? compared : compared.filter(({ name }) => name !== variants.exhaustive.name),
      seeds: step.seeds,
    },
    context,
  );
  const { user, system } = process.cpuUsage(before);
  return { step, policies, cpuSeconds: (user + system) / 1e6 };
}

/** The middle number of sites, where every fleet was computed. */
function pictureOf(rows: readonly ScaleRow[]): string {
  const sites = rows.map(({ step }) => step.sites).toSorted((a, b) => a - b)[rows.length >> 1] ?? 0;
  const shown = rows.filter(({ step }) => step.sites === sites);
  const fleets = shown.map(({ step }) => step.crawlers);
  const x = {
    label: "crawlers",
    from: Math.min(...fleets) * 0.8,
    to: Math.max(...fleets) * 1.25,
    ticks: fleets,
    scale: "logarithmic",
  } as const;
  const lines = (figureOf: (result: NamedResult) => number, most: number) =>
    drawn.map(
      ({ of, role }): Line => ({
        name: of.name,
        role,
        style: role === "exhaustive" || role === "random" ? "dashed" : "line-with-marks",
        points: shown.flatMap(({ step, policies }) =>
          policies
            .filter((policy) => policy.name === of.name && figureOf(policy) <= most)
            .map((policy) => ({ x: step.crawlers, y: figureOf(policy) })),
        ),
      }),
    );
  return drawLines({
    title: `Accuracy and probes as the fleet grows, ${count(sites)} sites`,
    description:
      "Share of URLs within 5 ms of the best crawler, and probes per URL, against the number of crawlers.",
    panels: [
      {
        title: "Accuracy",
        x,
        y: axisFor("URLs within 5 ms of the best, %", [], { from: 0, to: 100 }),
        lines: lines(({ figures }) => figures.within5msPct.mean, 100),
      },
      {
        title: "Cost",
        x,
        y: axisFor("probes per URL", [], { from: 0, to: mostProbesDrawn }),
        lines: lines(({ figures }) => figures.probesPerUrl.mean, mostProbesDrawn),
      },
    ],
  });
}

/** `exhaustive` asks far more than the other lines need room for. */
const mostProbesDrawn = 10;

function textOf(rows: readonly ScaleRow[], file: string): string {
  const cells = rows.flatMap(({ step, policies }) =>
    policies.map(({ name, tuning, figures }) => [
      count(step.crawlers),
      count(step.sites),
      tuningWords[tuning],
      name,
      spreadText(figures.optimalPct, 1),
      spreadText(figures.within5msPct, 1),
      spreadText(figures.meanExcessMs, 2),
      spreadText(figures.p95ExcessMs, 1),
      spreadText(figures.probesPerUrl, 2),
      spreadText(figures.probesPerUrlLast50, 2),
    ]),
  );
  const seeds = Math.max(...rows.map(({ step }) => step.seeds.length));
  const seconds = rows.reduce((sum, row) => sum + row.cpuSeconds, 0);
  return [
    image(file, "Accuracy and probes per URL against the number of crawlers"),
    "",
    `Generated worlds; mean over up to ${seeds} of them (least to most), one where it is large. ${leftOut(rows)} ${seconds.toFixed(0)} s of CPU time in all; the RTTs of a target are made when it arrives, for all policies at once, and are not kept. In the picture a line ends where it passes ${mostProbesDrawn} probes.`,
    "",
    markdownTable(
      [
        "crawlers",
        "sites",
        "tuning",
        "policy",
        "the best, %",
        "within 5 ms, %",
        "mean excess, ms",
        "95 %, ms",
        "probes per URL",
        "last 50",
      ],
      cells,
    ),
  ].join("\n");
}

function leftOut(rows: readonly ScaleRow[]): string {
  const without = rows.filter(({ step }) => !step.exhaustive);
  if (without.length === 0) return "";
  const sizes = without.map(({ step }) => `${count(step.crawlers)} × ${count(step.sites)}`);
  return `Left out: \`exhaustive\` for ${sizes.join(", ")}, where rounds of every crawler are too much to compute; without noise they find the best crawler.`;
}

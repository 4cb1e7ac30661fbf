/**
 * Probes on a real network: delays that differ from try to try, spikes, answers that never come. What is seen is
 * disturbed, what counts is the undisturbed RTT; the exhaustive policy under the same disturbance is the yardstick.
 */
import {
  fixedSource,
  generatedSource,
  type InstanceSource,
  noNoise,
  type ProbeNoise,
  spreadText,
  tuningWords,
} from "../../simulate/repeat-policies.ts";
import {
  type EvaluationContext,
  type Figure,
  image,
  markdownTable,
  type Section,
  variants,
} from "../figure.ts";
import { axisFor, type Role } from "../pictures/document.ts";
import { drawLines, type Line } from "../pictures/line-picture.ts";
import { dataOf, type NamedResult, runVariants } from "../run-variants.ts";

export const noiseFigure: Figure = { name: "noise", title: "Noise, spikes and loss", measure };

const compared = [variants.ipmicra(50), variants.nearest, variants.getFirst, variants.exhaustive] as const;
const roles: readonly Role[] = ["ipmicra", "nearest", "get-first", "exhaustive"];

/** Exponential delays of these means are drawn in the picture, with one try and with the live crawler's. */
const noisesMs = [0, 1, 2, 4, 8, 16] as const;

interface NoiseCase {
  readonly name: string;
  readonly noise: ProbeNoise;
}

const exponentialCase = (noiseMs: number, tries: number): NoiseCase => ({
  name: `${noiseMs} ms exponential, ${tries === 1 ? "one try" : `up to ${tries} tries`}`,
  noise: { ...noNoise, noiseMs, tries },
});

const cases: readonly NoiseCase[] = [
  ...noisesMs.flatMap((ms) => [exponentialCase(ms, 1), exponentialCase(ms, noNoise.tries)]),
  {
    name: "1 ms, and 5 % of the tries 50 ms late",
    noise: { ...noNoise, noiseMs: 1, spikeShare: 0.05, spikeMs: 50 },
  },
  {
    name: "4 ms, and 20 % of the tries 100 ms late",
    noise: { ...noNoise, noiseMs: 4, spikeShare: 0.2, spikeMs: 100 },
  },
  { name: "4 ms, and 10 % of the tries lost", noise: { ...noNoise, noiseMs: 4, lossShare: 0.1 } },
  { name: "4 ms, one try, and 20 % lost", noise: { ...noNoise, noiseMs: 4, lossShare: 0.2, tries: 1 } },
];

/** What the measured instances are run under. */
const casesOfMeasured = [exponentialCase(4, 1), exponentialCase(4, noNoise.tries)];

interface NoiseRow {
  readonly instance: string;
  readonly of: NoiseCase;
  readonly results: readonly NamedResult[];
}

function measure(context: EvaluationContext): Section {
  const { sites, crawlers } = context.plan;
  const run = (instance: string, source: InstanceSource, of: NoiseCase): NoiseRow => {
    const what = `${instance}, ${of.name}`;
    return { instance, of, results: runVariants({ what, source, compared, noise: of.noise }, context) };
  };
  const source = generatedSource({ crawlers: crawlers.noise, sites });
  const generated = cases.map((of) => run("generated", source, of));
  const fromMatrices = context.measured.flatMap(({ name, tuning, instance }) =>
    casesOfMeasured.map((of) => run(name, fixedSource(instance, tuning), of)),
  );
  const rows = [...generated, ...fromMatrices];
  const file = "delegation-noise.svg";
  const data = rows.map(({ instance, of, results }) => ({ instance, ...of, policies: dataOf(results) }));
  return { text: textOf(rows, context, file), pictures: [{ file, svg: pictureOf(generated) }], data };
}

function pictureOf(rows: readonly NoiseRow[]): string {
  const shares = rows.flatMap(({ results }) => results.map(({ figures }) => figures.within5msPct.mean));
  const least = Math.max(0, Math.floor((Math.min(...shares) - 5) / 10) * 10);
  const panel = (title: string, tries: number) => ({
    title,
    x: { ...axisFor("mean delay of a try, ms", [], { from: 0, to: 16 }), ticks: noisesMs },
    y: axisFor("URLs within 5 ms of the best, %", [], { from: least, to: 100 }),
    lines: compared.map(
      ({ name }, index): Line => ({
        name,
        role: roles[index]!,
        style: name === variants.exhaustive.name ? "dashed" : "line-with-marks",
        points: noisesMs.map((ms) => {
          const row = rows.find(({ of }) => of.name === exponentialCase(ms, tries).name)!;
          return { x: ms, y: row.results[index]!.figures.within5msPct.mean };
        }),
      }),
    ),
  });
  return drawLines({
    title: "Accuracy under noise",
    description: "Share of URLs within 5 ms of the best crawler against the mean delay of a try.",
    panels: [
      panel("A probe is one try", 1),
      panel(`A probe is the least of up to ${noNoise.tries} tries, as live`, noNoise.tries),
    ],
  });
}

function textOf(rows: readonly NoiseRow[], { plan }: EvaluationContext, file: string): string {
  const cells = rows.flatMap(({ instance, of, results }) => {
    const yardstick = results.at(-1)!.figures.within5msPct.mean;
    return results.map(({ name, tuning, figures }) => [
      instance,
      tuningWords[tuning],
      of.name,
      name,
      spreadText(figures.optimalPct, 1),
      spreadText(figures.within5msPct, 1),
      (figures.within5msPct.mean - yardstick).toFixed(1),
      spreadText(figures.probesPerUrl, 2),
    ]);
  });
  return [
    image(file, "Accuracy against noise, with one try and with several, nearest beside exhaustive"),
    "",
    `"generated": ${plan.crawlers.noise} crawlers, ${plan.sites} sites, mean over ${plan.seeds.length} worlds (least to most); the measured instances over as many orders. Every policy meets the same delays. The crawl's own GET (get-first) is always one try. RTTs between crawlers are not disturbed.`,
    "",
    markdownTable(
      [
        "instance",
        "tuning",
        "noise",
        "policy",
        "the best, %",
        "within 5 ms, %",
        "points from exhaustive",
        "probes per URL",
      ],
      cells,
    ),
  ].join("\n");
}

/** How hard the worlds are, beside the measured instances: a world that flatters a policy is a defect. */

import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import { generatedSource, type Tuning, tuningWords } from "../../simulate/repeat-policies.ts";
import { instanceFigures, type Quartiles, type WorldFigures } from "../../world/figures.ts";
import { count, type EvaluationContext, type Figure, markdownTable, type Section } from "../figure.ts";

export const worldsFigure: Figure = { name: "worlds", title: "How hard the worlds are", measure };

interface Described {
  readonly name: string;
  readonly tuning: Tuning;
  readonly figures: WorldFigures;
}

/** RTTs looked at in larger worlds: those of the first sites, which the generator draws as it draws all. */
const mostRtts = 4_000_000;

function measure({ plan, measured, onProgress }: EvaluationContext): Section {
  const sizes = new Map(
    plan.scale.map(({ crawlers, sites, seeds }) => {
      const looked = Math.min(sites, 10_000, Math.floor(mostRtts / crawlers));
      return [`${crawlers}×${looked}`, { crawlers, sites: looked, seed: seeds[0] ?? 1 }];
    }),
  );
  const generated = [...sizes.values()].map((size, index): Described => {
    onProgress(`${size.crawlers} crawlers`, index * size.sites, sizes.size * size.sites);
    const name = `generated, seed ${size.seed}`;
    const { tuning, instance } = generatedSource(size);
    return { name, tuning, figures: hardness(instance(size.seed), size.seed) };
  });
  const described = [
    ...measured.map(
      ({ name, tuning, instance }): Described => ({ name, tuning, figures: hardness(instance, 1) }),
    ),
    ...generated,
  ];
  return { text: textOf(described), pictures: [], data: described };
}

function hardness({ crawlers, crawlerRtt, targets }: SimulationInstance, seed: number): WorldFigures {
  const kept = targets.map(({ path, org, cc, rtt }) => ({ path, org, cc, rtt: Array.from(rtt) }));
  return instanceFigures({ name: "", unit: "ms RTT", crawlers, crawlerRtt, targets: kept }, seed);
}

function textOf(described: readonly Described[]): string {
  const rows = described.map(({ name, tuning, figures }) => [
    name,
    tuningWords[tuning],
    count(figures.crawlers),
    count(figures.sites),
    `${percent(figures.triangleViolationShare)} (${percent(figures.severeViolationShare)})`,
    quartiles(figures.bestMs),
    quartiles(figures.gapMs),
    percent(figures.countryPredictsBest),
    `${percent(figures.holderPredictsBest)} of ${percent(figures.holderHasOthers)}`,
    figures.sitesPerLeaf.toFixed(2),
    percent(figures.fitFindsBest),
    figures.openAfterBest.toFixed(1),
    percent(figures.randomWithin5Ms),
    figures.randomToBest.toFixed(1),
  ]);
  return [
    "Triangle violations: two crawlers and a site with one side longer than the two others together (in brackets: by a fifth and 1 ms). Best and gap to the runner-up: quartiles over the sites. Country and holder: how often the other sites of the same one name a site's best crawler (of so many whose holder has others). One answer finds the best: the crawlers ranked by how well a random one's RTT fits its distances to them have the best among the first tenth. Open after the best: crawlers that may be nearer still when the best has answered.",
    "",
    markdownTable(
      [
        "world",
        "tuning",
        "crawlers",
        "sites",
        "triangle violations",
        "best, ms",
        "gap, ms",
        "country tells",
        "holder tells",
        "sites per leaf",
        "one answer finds the best",
        "open after the best",
        "random within 5 ms",
        "RTT, random : best",
      ],
      rows,
    ),
  ].join("\n");
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function quartiles({ p25, median, p75 }: Quartiles): string {
  return `${median.toFixed(1)} (${p25.toFixed(1)} to ${p75.toFixed(1)})`;
}

/**
 * Worlds that nothing was tuned on, from 12 crawlers to 1,300: two models made by other rules than the generator
 * whose worlds the constants of `nearest` were fitted to, and that generator beside them. What differs between
 * them is how far the constants carry.
 */
import { familyOf } from "../../simulate/instances/named-instance.ts";
import { spreadText, tuningWords } from "../../simulate/repeat-policies.ts";
import {
  count,
  type EvaluationContext,
  type Figure,
  markdownTable,
  type Section,
  variants,
} from "../figure.ts";
import { dataOf, keptSource, type NamedResult, runVariants } from "../run-variants.ts";

export const untunedFigure: Figure = { name: "untuned", title: "Worlds that nothing was tuned on", measure };

const families = ["cities", "delay-space", "world"].map((name) => familyOf(name)!);
const compared = [variants.random, variants.ipmicra(50), variants.ipmicra(25), variants.nearest];

interface UntunedGroup {
  readonly family: string;
  readonly crawlers: number;
  readonly seeds: number;
  readonly results: readonly NamedResult[];
}

function measure(context: EvaluationContext): Section {
  const { sites, untuned } = context.plan;
  const groups = families.flatMap((family) =>
    untuned.map(({ crawlers, seeds }): UntunedGroup => {
      const source = keptSource(family.source({ crawlers, sites }, null));
      const what = `${family.name}, ${count(crawlers)} crawlers`;
      const results = runVariants({ what, source, compared, seeds }, context);
      return { family: family.name, crawlers, seeds: seeds.length, results };
    }),
  );
  const data = groups.map(({ results, ...group }) => ({ ...group, policies: dataOf(results) }));
  return { text: textOf(groups, sites), pictures: [], data };
}

function textOf(groups: readonly UntunedGroup[], sites: number): string {
  const rows = groups.flatMap(({ family, crawlers, seeds, results }) =>
    results.map(({ name, tuning, figures }) => [
      family,
      tuningWords[tuning],
      count(crawlers),
      String(seeds),
      name,
      spreadText(figures.optimalPct, 1),
      spreadText(figures.within2msPct, 1),
      spreadText(figures.within5msPct, 1),
      spreadText(figures.meanExcessMs, 2),
      spreadText(figures.probesPerUrl, 2),
      spreadText(figures.probesPerUrlLast50, 2),
    ]),
  );
  return [
    `${count(sites)} sites; means over the seeds (least to most), each another world. Two families by other rules than ops/world, on which nothing was tuned, neither the policies nor the models themselves:`,
    "",
    "- **cities** (ops/simulate/instances/cities.ts): networks with business relations over fibre between real cities, routes without valleys, handed over early; registries whose ranges serve several cities.",
    "- **delay-space** (ops/simulate/instances/delay-space.ts): clusters at random distances, coordinates and heights within them, detours with a heavy tail; a tree whose every level is reliable by chance.",
    "- **world**: ops/world, for comparison.",
    "",
    "`exhaustive` finds the best crawler everywhere and takes as many probes as there are crawlers. The same by hand: `nearcrawl simulate delegation --instance cities:50:1 --seeds 5 --policy nearest`.",
    "",
    markdownTable(
      [
        "family",
        "tuning",
        "crawlers",
        "seeds",
        "policy",
        "the best, %",
        "within 2 ms, %",
        "within 5 ms, %",
        "mean excess, ms",
        "probes per URL",
        "last 50",
      ],
      rows,
    ),
  ].join("\n");
}

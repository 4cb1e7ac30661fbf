/**
 * Figure 3 of the paper: what location awareness does to the time that downloads take, with every URL at a random
 * crawler, at the one each policy chose, at the nearest and at the farthest. The paper states one tenth for the
 * nearest against a random one. A download is round trips, the server's own time and the time that the bytes
 * take on the site's link; only the first part knows where the crawler is.
 */

import { type SimulationInstance, simulatePolicies } from "#coordinator/delegation/simulation/simulation";
import { generatedSource, type Tuning, tuningWords, worldInstance } from "../../simulate/repeat-policies.ts";
import { downloadTimeMs } from "../../world/compare.ts";
import { generateWorld } from "../../world/generate-world.ts";
import type { World } from "../../world/model.ts";
import { SeededRandom } from "../../world/seeded-random.ts";
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
import { drawBars } from "../pictures/bar-picture.ts";

// How long pages take in one world, by who chose the crawler: round trips, the server's own time, and the bytes on
// the site's link. Only the first part knows where the crawler is.

/** What the emulated sites' pages have on the wire in the mean, headers included. */
const pageBytes = 12_800;

const compared: readonly NamedVariant[] = [
  variants.random,
  variants.ipmicra(50),
  variants.ipmicra(25),
  variants.nearest,
  variants.exhaustive,
];

const totalMs = (row: DownloadRow) => row.roundTripsMs + row.serverMs + row.bytesMs;

export const downloadTimeFigure: Figure = {
  name: "download",
  title: "Download time (figure 3 of the paper)",
  measure,
};

function measure(context: EvaluationContext): Section {
  const groups = groupsOf(context);
  const picture = {
    file: "delegation-download-time.svg",
    svg: drawBars({
      title: "Time to download a page, by who chooses the crawler",
      description: "Stacked bars: round trips, server and bytes, for six ways to choose the crawler.",
      valueLabel: "mean time of a page, ms",
      parts: [
        { name: "round trips (the crawler's distance)", role: "part-1" },
        { name: "the server's own time", role: "part-2" },
        { name: "bytes on the site's link", role: "part-3" },
      ],
      panels: groups.slice(0, 2).map(({ name, rows }) => ({
        title: name,
        bars: rows.map((row) => ({
          name: row.policy,
          values: [row.roundTripsMs, row.serverMs, row.bytesMs],
        })),
      })),
    }),
  };
  return { text: textOf(groups, picture.file), pictures: [picture], data: { pageBytes, groups } };
}

function groupsOf({ plan, measured, onProgress }: EvaluationContext): DownloadGroup[] {
  const { seeds, sites } = plan;
  const generated = plan.crawlers.download.map((crawlers): DownloadGroup => {
    const perSeed = seeds.map((seed, index) => {
      onProgress(`${crawlers} crawlers`, index * sites, seeds.length * sites);
      return downloadsOf(generateWorld({ crawlers, sites, seed }), seed);
    });
    const { tuning } = generatedSource({ crawlers, sites });
    return {
      name: `${crawlers} crawlers, ${count(sites)} sites, generated`,
      tuning,
      rows: meanRows(perSeed),
    };
  });
  const fromMatrices = measured.flatMap(({ name, tuning, world }) =>
    plan.crawlers.download.map((crawlers): DownloadGroup => {
      const perSeed = seeds.map((seed, index) => {
        onProgress(
          `${crawlers} crawlers of ${name}`,
          index * world.sites.length,
          seeds.length * world.sites.length,
        );
        return downloadsOf(subFleet(world, crawlers, seed), seed);
      });
      const sitesText = `${count(world.sites.length)} sites`;
      return { name: `${crawlers} crawlers of ${name}, ${sitesText}`, tuning, rows: meanRows(perSeed) };
    }),
  );
  return [...generated, ...fromMatrices];
}

function textOf(groups: readonly DownloadGroup[], file: string): string {
  const ratios = groups.map((group) => ({ name: group.name, ...ratiosOf(group) }));
  const ours = groups.flatMap(({ name, tuning, rows }) => {
    const best = totalMs(rows.find((row) => row.policy === variants.exhaustive.name)!);
    return rows.map((row) => [
      name,
      tuningWords[tuning],
      row.policy,
      row.rttMs.toFixed(1),
      totalMs(row).toFixed(0),
      `${row.roundTripsMs.toFixed(0)} + ${row.serverMs.toFixed(0)} + ${row.bytesMs.toFixed(0)}`,
      (totalMs(row) / best).toFixed(2),
    ]);
  });
  return [
    image(file, "Time to download a page by policy, split into round trips, server and bytes"),
    "",
    `A page of ${count(pageBytes)} bytes over a new connection: two round trips, the server's own time, and the bytes at the site's bandwidth (ops/world/compare.ts; a page of this size fits TCP's first window).`,
    "",
    markdownTable(
      [
        "world",
        "tuning",
        "policy",
        "mean RTT, ms",
        "a page, ms",
        "round trips + server + bytes",
        "times exhaustive",
      ],
      ours,
    ),
    "",
    verdict(groups),
    "",
    markdownTable(
      [
        "world",
        "RTT, random : nearest",
        "download, random : nearest",
        `RTT ratio that 1/${paper.downloadRatio} would need`,
      ],
      ratios.map((one) => [one.name, one.rtt.toFixed(2), one.download.toFixed(2), one.neededRtt.toFixed(1)]),
    ),
  ].join("\n");
}

function verdict(groups: readonly DownloadGroup[]): string {
  const ratios = groups.map(ratiosOf);
  const worst = groups.map(({ rows }) => totalMs(rows.at(-1)!) / totalMs(rows.at(-2)!));
  const claim = `It reports that the nearest of 4 crawlers needs 1/${paper.downloadRatio} of the time of a random one.`;
  if (ratios.some(({ download }) => download >= paper.downloadRatio)) {
    return `**The paper's one tenth is reached on some of these worlds.** ${claim}`;
  }
  const between = (values: readonly number[]) =>
    `${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)} times`;
  return [
    `**The paper's one tenth does not come from latency.** ${claim}`,
    "Downloads are never further apart than the RTTs, since server and link do not know who asks:",
    `on these worlds a random crawler has ${between(ratios.map(({ rtt }) => rtt))} the RTT of the nearest,`,
    `and needs ${between(ratios.map(({ download }) => download))} as long; even the farthest crawler for every URL`,
    `needs only ${between(worst)} as long. What else differed between the paper's two runs (links, load, caches on the way) it does not say.`,
  ].join(" ");
}

// A world with only some of its crawlers: how a measured instance of twelve becomes fleets of four.

/** `count` crawlers drawn by the seed, in their order; all of them where the world has no more. */
export function subFleet(world: World, count: number, seed: number): World {
  if (count >= world.crawlers.length) return world;
  const random = new SeededRandom(seed);
  const left = world.crawlers.map((_, index) => index);
  while (left.length > count) left.splice(random.integer(0, left.length - 1), 1);
  return {
    ...world,
    crawlers: left.map((index) => world.crawlers[index]!),
    rttMs: (crawler, address) => world.rttMs(left[crawler] ?? -1, address),
    rttRow: (site, into) => {
      const row = new Float64Array(world.crawlers.length);
      world.rttRow(site, row);
      left.forEach((index, position) => {
        into[position] = row[index]!;
      });
    },
    crawlerRttMs: (a, b) => world.crawlerRttMs(left[a]!, left[b]!),
  };
}

interface DownloadRow {
  readonly policy: string;
  readonly rttMs: number;
  readonly roundTripsMs: number;
  readonly serverMs: number;
  readonly bytesMs: number;
}

export interface DownloadGroup {
  readonly name: string;
  readonly tuning: Tuning;
  readonly rows: readonly DownloadRow[];
}

/** One row per policy, the farthest crawler for every site last. */
function downloadsOf(world: World, seed: number): DownloadRow[] {
  const instance = worldInstance(world);
  const results = simulatePolicies(
    instance,
    compared.map(({ variant }) => variant),
    { seed },
  );
  const rows = compared.map(({ name }, index) => rowOf(name, world, instance, results[index]!.chosen));
  return [...rows, rowOf("worst", world, instance, farthest(instance))];
}

function farthest({ targets }: SimulationInstance): number[] {
  return targets.map(({ rtt }) =>
    Array.from(rtt).reduce((worst, ms, index, all) => (ms > all[worst]! ? index : worst), 0),
  );
}

function rowOf(
  policy: string,
  world: World,
  { targets }: SimulationInstance,
  chosen: readonly number[],
): DownloadRow {
  const parts = world.sites.map((site, index) => {
    const rttMs = targets[index]!.rtt[chosen[index]!]!;
    const { bandwidthKbps, serverDelayMs } = site;
    const takesMs = (ms: number) =>
      downloadTimeMs({ rttMs: ms, bodyBytes: pageBytes, bandwidthKbps, serverDelayMs });
    const withoutDistanceMs = takesMs(0);
    return {
      policy,
      rttMs,
      roundTripsMs: takesMs(rttMs) - withoutDistanceMs,
      serverMs: serverDelayMs,
      bytesMs: withoutDistanceMs - serverDelayMs,
    };
  });
  return meanRow(parts);
}

function meanRows(runs: readonly (readonly DownloadRow[])[]): DownloadRow[] {
  return runs[0]!.map((_, index) => meanRow(runs.map((rows) => rows[index]!)));
}

function meanRow(rows: readonly DownloadRow[]): DownloadRow {
  const mean = (field: Exclude<keyof DownloadRow, "policy">) =>
    rows.reduce((sum, row) => sum + row[field], 0) / Math.max(1, rows.length);
  return {
    policy: rows[0]?.policy ?? "",
    rttMs: mean("rttMs"),
    roundTripsMs: mean("roundTripsMs"),
    serverMs: mean("serverMs"),
    bytesMs: mean("bytesMs"),
  };
}

/**
 * What random assignment costs against the best, in RTT and in whole downloads; and the ratio of RTTs at which
 * the downloads' would be the paper's, with the same servers and links.
 */
export function ratiosOf({ rows }: DownloadGroup): { rtt: number; download: number; neededRtt: number } {
  const random = rows.find((row) => row.policy === variants.random.name)!;
  const best = rows.find((row) => row.policy === variants.exhaustive.name)!;
  const fixedMs = best.serverMs + best.bytesMs;
  return {
    rtt: random.rttMs / best.rttMs,
    download: totalMs(random) / totalMs(best),
    neededRtt: (paper.downloadRatio * totalMs(best) - fixedMs) / best.roundTripsMs,
  };
}

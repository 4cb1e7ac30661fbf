/**
 * Figure 3 of the paper: what location awareness does to the time that downloads take, with every URL at a random
 * crawler, at the one each policy chose, at the nearest and at the farthest. The paper states one tenth for the
 * nearest against a random one. A download is round trips, the server's own time and the time that the bytes
 * take on the site's link; only the first part knows where the crawler is.
 */
import { generateWorld } from "../../world/generate-world.ts";
import { type EvaluationContext, type Figure, type Section, variants } from "../figure.ts";
import { count, image, markdownTable } from "../markdown.ts";
import { paper } from "../paper.ts";
import { drawBars } from "../pictures/bar-picture.ts";
import { subFleet } from "../sub-fleet.ts";
import { type DownloadGroup, downloadsOf, meanRows, pageBytes, ratiosOf, totalMs } from "./page-downloads.ts";

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
    return { name: `${crawlers} crawlers, ${count(sites)} sites, generated`, rows: meanRows(perSeed) };
  });
  const fromMatrices = measured.flatMap(({ name, world }) =>
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
      return { name: `${crawlers} crawlers of ${name}, ${sitesText}`, rows: meanRows(perSeed) };
    }),
  );
  return [...generated, ...fromMatrices];
}

function textOf(groups: readonly DownloadGroup[], file: string): string {
  const ratios = groups.map((group) => ({ name: group.name, ...ratiosOf(group) }));
  const ours = groups.flatMap(({ name, rows }) => {
    const best = totalMs(rows.find((row) => row.policy === variants.exhaustive.name)!);
    return rows.map((row) => [
      name,
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
      ["world", "policy", "mean RTT, ms", "a page, ms", "round trips + server + bytes", "times exhaustive"],
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

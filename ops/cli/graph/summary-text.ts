/** What a ranking found, for people. */

import type { SqlSummary } from "#coordinator/web-graph/sql-rank-store";
import type { Degrees, GraphSummary, RankedHost, RankedPage } from "#coordinator/web-graph/summary";
import { formatTable, printable } from "../output.ts";

export interface RankAnswer {
  readonly summary: GraphSummary | SqlSummary;
  readonly written: boolean;
  readonly mended?: number | null;
}

const beyond = "(not in the frontier)";

export function rankText({ summary, written, mended }: RankAnswer): string {
  const { ranking } = summary;
  const ending = ranking.converged
    ? `after ${ranking.iterations} iterations, the last of which changed ${ranking.residual.toExponential(1)} in all`
    : `not to the tolerance of ${ranking.tolerance}: the last of ${ranking.iterations} iterations changed ${ranking.residual.toExponential(1)}; give it more with --iterations`;
  return [
    sizesText(summary),
    `PageRank with damping ${ranking.damping}, ${ending}.`,
    "",
    pagesText("highest rank", summary.topPages),
    ...("hosts" in summary ? ["", hostsText(summary.topHosts)] : []),
    "",
    written ? writtenText(mended ?? null) : "Nothing was kept: nearcrawl rank --write does.",
  ].join("\n");
}

export function graphText(summary: GraphSummary, madeAt: Date | null): string {
  return [
    sizesText(summary),
    `${count(summary.hosts)} hosts: ${count(summary.linksBetweenHosts)} links between pages of two of them (${count(summary.hostLinks)} pairs), ${count(summary.linksWithinHosts)} within one.`,
    "",
    "Pages by the number of their links:",
    distributionText(summary.outLinks, summary.inLinks),
    "",
    pagesText("most links", summary.mostLinked),
    "",
    hostsText(summary.topHosts),
    ...(madeAt === null ? [] : ["", `As nearcrawl rank --write found it at ${madeAt.toISOString()}.`]),
  ].join("\n");
}

function sizesText(summary: GraphSummary | SqlSummary): string {
  const { nodes, links, selfLinks, visited, change } = summary;
  const known = "knownNodes" in summary ? `, ${count(summary.knownNodes)} of them in the frontier` : "";
  const own = selfLinks === 0 ? "" : ` (${count(selfLinks)} of pages to themselves are left out)`;
  const average =
    visited.averageOutLinks === null
      ? "No page has been visited."
      : `${count(visited.pages)} visited pages have ${visited.averageOutLinks.toFixed(1)} links on average.`;
  const changed =
    change.average === null
      ? "No page's links have been seen twice."
      : `From visit to visit ${(100 * change.average).toFixed(1)} % of the links change (C, over ${count(change.pages)} pages).`;
  return `${count(nodes)} pages${known}, ${count(links)} links${own}.\n${average}\n${changed}`;
}

function distributionText(outLinks: Degrees, inLinks: Degrees): string {
  const rows = Array.from({ length: Math.max(outLinks.bins.length, inLinks.bins.length) }, (_, bin) => {
    const { least, most } = (outLinks.bins[bin] ?? inLinks.bins[bin])!;
    const range = least === most ? `${least}` : `${count(least)} to ${count(most)}`;
    return [range, count(outLinks.bins[bin]?.nodes ?? 0), count(inLinks.bins[bin]?.nodes ?? 0)];
  });
  rows.push(["average", outLinks.average.toFixed(2), inLinks.average.toFixed(2)]);
  rows.push(["most", count(outLinks.most), count(inLinks.most)]);
  return formatTable(
    [
      { title: "links", align: "right" },
      { title: "from as many pages", align: "right" },
      { title: "to as many", align: "right" },
    ],
    rows,
  );
}

function pagesText(title: string, pages: readonly RankedPage[]): string {
  return formatTable(
    [
      { title },
      { title: "rank", align: "right" },
      { title: "links to it", align: "right" },
      { title: "its links", align: "right" },
    ],
    pages.map(({ url, pageRank, inLinks, outLinks }) => [
      url === null ? beyond : printable(url, 200),
      pageRank.toExponential(3),
      count(inLinks),
      count(outLinks),
    ]),
  );
}

function hostsText(hosts: readonly RankedHost[]): string {
  return formatTable(
    [
      { title: "host" },
      { title: "rank", align: "right" },
      { title: "pages", align: "right" },
      { title: "linked by hosts", align: "right" },
      { title: "links to it", align: "right" },
      { title: "its links", align: "right" },
    ],
    hosts.map(({ host, rank, pages, linkingHosts, inLinks, outLinks }) => [
      host === null ? beyond : printable(host, 100),
      rank.toExponential(3),
      ...[pages, linkingHosts, inLinks, outLinks].map(count),
    ]),
  );
}

function writtenText(mended: number | null): string {
  const counts =
    mended === null || mended === 0
      ? ""
      : ` Back-links of ${count(mended)} URLs had been counted wrongly and are right now.`;
  return `The ranks are kept.${counts}`;
}

const count = (value: number) => Math.round(value).toLocaleString("en");

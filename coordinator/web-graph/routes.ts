/** /graph: the web graph as it was last ranked; a page, JSON, and its highest pages as CSV. */

import type { WebPart } from "../web/actions.ts";
import { empty, tile } from "../web/components.ts";
import { askAbout, countText, instant, percentText } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import type { Degrees, GraphSummary, RankedHost, RankedPage } from "./summary.ts";
import { graphApi } from "./web-graph-api.ts";

interface KeptGraph {
  readonly madeAt: Date;
  readonly summary: GraphSummary;
}

interface GraphRoutePorts {
  /** Null: nobody has ranked yet. */
  readonly latest: () => Promise<KeptGraph | null>;
  /** Of the ranks that the frontier's order goes by; null: there are none. */
  readonly ranksAt: () => Promise<Date | null>;
}

export function graphRoutes({ latest, ranksAt: ranksMade }: GraphRoutePorts): WebPart {
  return ({ views }) => {
    views.describe({
      path: "/graph",
      operation: graphApi.graph,
      view: async () => {
        const [kept, made] = await Promise.all([latest(), ranksMade()]);
        const title = "Web graph";
        const ranksAt = made?.toISOString() ?? null;
        if (kept === null) {
          return { status: 200, value: { graph: null, ranksAt }, title, body: () => notRankedBody(made) };
        }
        const { madeAt, summary } = kept;
        return {
          status: 200,
          value: { graph: { madeAt: madeAt.toISOString(), ...summary }, ranksAt },
          title,
          body: () => graphBody(summary, madeAt, made),
          csv: () => graphCsv(summary),
        };
      },
    });
  };
}

/** `ranksAt`: when the ranks were made that the frontier's order goes by; null: there are none. */
function graphBody(summary: GraphSummary, madeAt: Date, ranksAt: Date | null): Html {
  const { ranking } = summary;
  return html`<h1>Web graph</h1>
<p>As <code>nearcrawl rank --write</code> found it at ${instant(madeAt)}: PageRank with damping ${ranking.damping}, ${
    ranking.converged ? "to its tolerance" : "not to its tolerance"
  } after ${countText(ranking.iterations)} iterations.</p>
${ranksAt !== null && ranksAt > madeAt ? laterRanks(ranksAt) : nothing}
${tiles(summary)}
<section><h2>Pages by the number of their links</h2>${distribution(summary.outLinks, summary.inLinks)}</section>
<section><h2>Highest pages</h2>${pages(summary.topPages)}</section>
<section><h2>Most linked pages</h2>${pages(summary.mostLinked)}</section>
<section><h2>Highest hosts</h2>${hosts(summary.topHosts)}</section>`;
}

function notRankedBody(ranksAt: Date | null): Html {
  if (ranksAt !== null) return html`<h1>Web graph</h1>${laterRanks(ranksAt)}`;
  return html`<h1>Web graph</h1>${empty(
    "The graph has not been ranked yet.",
    html`Run <code>nearcrawl rank --write</code>.`,
  )}`;
}

/** The SQL engine keeps ranks, and counts no degrees and hosts. */
function laterRanks(ranksAt: Date): Html {
  return html`<p><strong>The pages were ranked in the database at ${instant(ranksAt)}</strong>, and the frontier's order goes by that;
it counted no degrees and hosts. Run <code>nearcrawl rank --write</code> for these as of now,
or <code>nearcrawl rank --engine sql</code> to see sizes and highest pages.</p>`;
}

function graphCsv({ topPages }: GraphSummary): CsvTable {
  return {
    columns: ["url", "page_rank", "in_links", "out_links"],
    rows: topPages.map(({ url, pageRank, inLinks, outLinks }) => [url, pageRank, inLinks, outLinks]),
  };
}

function tiles(summary: GraphSummary): Html {
  const { nodes, knownNodes, links, visited, change, hosts: hostCount, linksBetweenHosts } = summary;
  const average = visited.averageOutLinks;
  return html`<dl class="tiles">
${tile("Pages", countText(nodes), `${countText(knownNodes)} of them in the frontier`)}
${tile("Links", countText(links), `${countText(linksBetweenHosts)} of them to another host`)}
${tile("Links per page", average === null ? "–" : average.toFixed(1), `of ${countText(visited.pages)} that were visited`)}
${tile("Links that change", change.average === null ? "–" : percentText(change.average), `from visit to visit, of ${countText(change.pages)} pages`)}
${tile("Hosts", countText(hostCount), `${countText(summary.hostLinks)} pairs with links`)}
</dl>`;
}

function distribution(outLinks: Degrees, inLinks: Degrees): Html {
  const bins = Math.max(outLinks.bins.length, inLinks.bins.length);
  const rows = Array.from({ length: bins }, (_, bin) => {
    const { least, most } = (outLinks.bins[bin] ?? inLinks.bins[bin])!;
    const range = least === most ? countText(least) : `${countText(least)} to ${countText(most)}`;
    return html`<tr><th scope="row">${range}</th>
<td class="number">${countText(outLinks.bins[bin]?.nodes ?? 0)}</td><td class="number">${countText(inLinks.bins[bin]?.nodes ?? 0)}</td></tr>`;
  });
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Links</th>
<th scope="col" class="number">Pages with this many</th><th scope="col" class="number">Pages with this many links to them</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function pages(list: readonly RankedPage[]): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">URL</th>
<th scope="col" class="number">Rank</th><th scope="col" class="number">Links to it</th><th scope="col" class="number">Its links</th></tr></thead>
<tbody>${list.map(
    ({ url, pageRank, inLinks, outLinks }) =>
      html`<tr><td class="break">${url === null ? "not in the frontier" : askAbout(url)}</td>
<td class="number">${pageRank.toExponential(3)}</td><td class="number">${countText(inLinks)}</td><td class="number">${countText(outLinks)}</td></tr>`,
  )}</tbody></table></div>`;
}

function hosts(list: readonly RankedHost[]): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Host</th>
<th scope="col" class="number">Rank among hosts</th><th scope="col" class="number">Pages</th>
<th scope="col" class="number">Linking hosts</th><th scope="col" class="number">Links to it</th><th scope="col" class="number">Its links</th></tr></thead>
<tbody>${list.map(
    (one) =>
      html`<tr><td class="break">${one.host === null ? "not in the frontier" : askAbout(one.host)}</td>
<td class="number">${one.rank.toExponential(3)}</td>
${[one.pages, one.linkingHosts, one.inLinks, one.outLinks].map((count) => html`<td class="number">${countText(count)}</td>`)}</tr>`,
  )}</tbody></table></div>`;
}

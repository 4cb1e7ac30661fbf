/** /graph: the web graph as it was last ranked; a page, JSON, and its highest pages as CSV. */

import type { WebPart } from "../web/actions.ts";
import { column, dataTable, empty, numberColumn, tile } from "../web/components.ts";
import { askAbout, countText, instant, percentText } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import type { Degrees, GraphSummary, RankedHost, RankedPage } from "./summary.ts";
import { graphApi } from "./web-graph-api.ts";

interface KeptGraph {
  readonly madeAt: Date;
  readonly summary: GraphSummary;
}

/** `read`: null where nobody has ranked yet; and of when the ranks are that the frontier's order goes by. */
export function graphRoutes(read: () => Promise<readonly [KeptGraph | null, Date | null]>): WebPart {
  return ({ views }) => {
    views.describe({
      path: "/graph",
      operation: graphApi.graph,
      view: async () => {
        const [kept, made] = await read();
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
<section><h2>Highest pages</h2>${pages("Highest pages", summary.topPages)}</section>
<section><h2>Most linked pages</h2>${pages("Most linked pages", summary.mostLinked)}</section>
<section><h2>Highest hosts</h2>${hosts("Highest hosts", summary.topHosts)}</section>`;
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
  const bins = (outLinks.bins.length > inLinks.bins.length ? outLinks : inLinks).bins;
  const nodesOf = ({ bins: these }: Degrees, bin: (typeof bins)[number]) =>
    countText(these[bins.indexOf(bin)]?.nodes ?? 0);
  return dataTable<Degrees["bins"][number]>(
    "Pages by the number of their links",
    [
      column("Links", ({ least, most }) =>
        least === most ? countText(least) : `${countText(least)} to ${countText(most)}`,
      ),
      numberColumn("Pages with this many", (bin) => nodesOf(outLinks, bin)),
      numberColumn("Pages with this many links to them", (bin) => nodesOf(inLinks, bin)),
    ],
    bins,
  );
}

const known = (name: string | null) => (name === null ? "not in the frontier" : askAbout(name));

const pages = (label: string, list: readonly RankedPage[]): Html =>
  dataTable<RankedPage>(
    label,
    [
      column("URL", ({ url }) => known(url), "break"),
      numberColumn("Rank", ({ pageRank }) => pageRank.toExponential(3)),
      numberColumn("Links to it", ({ inLinks }) => countText(inLinks)),
      numberColumn("Its links", ({ outLinks }) => countText(outLinks)),
    ],
    list,
  );

const hosts = (label: string, list: readonly RankedHost[]): Html =>
  dataTable<RankedHost>(
    label,
    [
      column("Host", ({ host }) => known(host), "break"),
      numberColumn("Rank among hosts", ({ rank }) => rank.toExponential(3)),
      numberColumn("Pages", (one) => countText(one.pages)),
      numberColumn("Linking hosts", ({ linkingHosts }) => countText(linkingHosts)),
      numberColumn("Links to it", ({ inLinks }) => countText(inLinks)),
      numberColumn("Its links", ({ outLinks }) => countText(outLinks)),
    ],
    list,
  );

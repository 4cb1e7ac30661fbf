/** The /graph page: the web graph as last ranked, with its sizes, degrees, top pages and top hosts. */
import { z } from "zod";
import { column, empty, member, plain, present, section, table, tiles } from "../../ask/document.ts";
import { type Column, type Document, operationsOf } from "../../ask/operation.ts";
import { dateTime, record } from "../../web/api-operation.ts";
import { askAbout, countText, instant, percentText } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import {
  type Degrees,
  type GraphSummary,
  graphSummary,
  type RankedHost,
  type RankedPage,
} from "./summary.ts";

interface KeptGraph {
  readonly madeAt: Date;
  readonly summary: GraphSummary;
}

/** Returns the last summary, or null, and when the ranks were made that the frontier orders by. */
type GraphRead = () => Promise<readonly [KeptGraph | null, Date | null]>;

interface GraphAnswer {
  readonly graph: (GraphSummary & { readonly madeAt: Date }) | null;
  readonly ranksAt: Date | null;
}

export const graphOperations = {
  graph: operationsOf<GraphRead>().get({
    ...{ path: "/api/graph", needs: "read" },
    navigation: { group: "Crawl", order: 31, entry: "Explore", tab: "Web graph" },
    alsoFound: "pagerank links",
    summary: "The web graph as it was last ranked",
    description:
      "Needs the scope read where the pages are not open to everybody. Sizes, degrees, change ratio, " +
      "the highest pages and hosts, as `nearcrawl rank --write` kept them; null before that. The " +
      "highest pages also as CSV: format=csv.",
    input: z.object({}),
    output: record("Graph", {
      graph: graphSummary.nullable(),
      ranksAt: dateTime()
        .nullable()
        .describe(
          "When the ranks were made that the order pagerank goes by. Later than madeAt: by another engine " +
            "(nearcrawl rank --from), which counts no degrees and hosts.",
        ),
    }),
    command: {
      name: "graph",
      says: "the web graph as last ranked: sizes, degrees and hosts (rank counts anew); its export",
      help: `

Examples:
  nearcrawl graph                                    nodes, links, degrees, change ratio, hosts, as last ranked
  nearcrawl graph export --format graphml web.graphml
  nearcrawl graph export --hosts --format csv - | head`,
    },
    run: async ({ ports }): Promise<GraphAnswer> => {
      const [kept, ranksAt] = await ports();
      return { graph: kept && { madeAt: kept.madeAt, ...kept.summary }, ranksAt };
    },
    view: graphDocument,
  }),
};

function graphDocument({ graph, ranksAt }: GraphAnswer): Document {
  const title = "Web graph";
  if (graph === null)
    return {
      title,
      nodes: [
        ranksAt === null
          ? empty("The graph has not been ranked yet.", html`Run <code>nearcrawl rank --write</code>.`)
          : laterRanks(ranksAt),
      ],
    };
  const { madeAt, ranking, visited, change, outLinks, inLinks } = graph;
  const end = ranking.converged ? "to its tolerance" : "not to its tolerance";
  const perPage = visited.averageOutLinks?.toFixed(1) ?? "–";
  const changing = change.average === null ? "–" : percentText(change.average);
  return {
    title,
    nodes: present([
      plain(
        html`As <code>nearcrawl rank --write</code> found it at ${instant(madeAt)}: PageRank with damping ${ranking.damping}, ${end}
after ${countText(ranking.iterations)} iterations.`,
      ),
      ranksAt !== null && ranksAt > madeAt && laterRanks(ranksAt),
      tiles([
        ["Pages", countText(graph.nodes), `${countText(graph.knownNodes)} of them in the frontier`],
        ["Links", countText(graph.links), `${countText(graph.linksBetweenHosts)} of them to another host`],
        ["Links per page", perPage, `of ${countText(visited.pages)} that were visited`],
        ["Links that change", changing, `from visit to visit, of ${countText(change.pages)} pages`],
        ["Hosts", countText(graph.hosts), `${countText(graph.hostLinks)} pairs with links`],
      ]),
      section("Pages by the number of their links", [distribution(outLinks, inLinks)]),
      section("Top pages", [pages("Top pages", graph.topPages)]),
      section("Most linked pages", [pages("Most linked pages", graph.mostLinked)]),
      section("Top hosts", [hosts(graph.topHosts)]),
    ]),
  };
}

/** Ranks from a file come without degrees and hosts. */
const laterRanks = (ranksAt: Date) =>
  plain(html`<strong>Ranks of another engine were read at ${instant(ranksAt)}</strong>, and the frontier's order goes by them;
they came without degrees and hosts. Run <code>nearcrawl rank --write</code> for these, if the graph fits into memory.`);

type Bin = Degrees["bins"][number];

function distribution(outLinks: Degrees, inLinks: Degrees) {
  const label = "Pages by the number of their links";
  const { bins } = outLinks.bins.length > inLinks.bins.length ? outLinks : inLinks;
  const links = ({ least, most }: Bin) =>
    least === most ? countText(least) : `${countText(least)} to ${countText(most)}`;
  const nodes = (title: string, { bins: these }: Degrees) =>
    column<Bin>("", title, (bin) => these[bins.indexOf(bin)]?.nodes ?? 0, { unit: "count" });
  return table<Bin>({
    ...{ label, rows: bins, empty: ["No page.", ""] },
    columns: [
      column("", "Links", links),
      nodes("Pages with this many", outLinks),
      nodes("Pages with this many links to them", inLinks),
    ],
  });
}

const named = (name: string | null) => (name === null ? "not in the frontier" : askAbout(name));
const rank = (value: number) => value.toExponential(3);

const linkColumns: readonly Column<Pick<RankedPage, "inLinks" | "outLinks">>[] = [
  member("inLinks", "Links to it", { unit: "count" }),
  member("outLinks", "Its links", { unit: "count" }),
];

const pages = (label: string, rows: readonly RankedPage[]) =>
  table<RankedPage>({
    ...{ label, rows, empty: ["No page.", ""] },
    columns: [
      member("url", "URL", { kind: "break", cell: ({ url }) => named(url) }),
      member("pageRank", "Rank", { unit: rank }),
      ...linkColumns,
    ],
  });

const hosts = (rows: readonly RankedHost[]) =>
  table<RankedHost>({
    ...{ label: "Top hosts", rows, empty: ["No host.", ""] },
    columns: [
      member("host", "Host", { kind: "break", cell: ({ host }) => named(host) }),
      member("rank", "Rank among hosts", { unit: rank }),
      member("pages", "Pages", { unit: "count" }),
      member("linkingHosts", "Linking hosts", { unit: "count" }),
      ...linkColumns,
    ],
  });

/** The web graph as text: edges, CSV, GraphML (graphml.graphdrawing.org) and WebGraph's ASCIIGraph. */

import { csvField } from "#coordinator/web/html";
import type { ExportedLink, ExportedNode, GraphRows } from "#coordinator/web-graph/graph-reads";

export const graphFormats = ["edges", "csv", "graphml", "webgraph"] as const;
export type GraphFormat = (typeof graphFormats)[number];

/** Takes text; resolves when there is room for more. */
export type Sink = (text: string) => Promise<void>;

export interface FormatOptions {
  /** Of edges: hashes instead of URLs. */
  readonly hashes: boolean;
  /** Of csv: the nodes instead of the links. */
  readonly nodes: boolean;
  /** Of webgraph: takes the list of nodes, one a line; null: it is left out. */
  readonly nodeList: Sink | null;
}

type WriteGraph = (rows: GraphRows, sink: Sink, options: FormatOptions) => Promise<void>;

export const writeGraph: Readonly<Record<GraphFormat, WriteGraph>> = {
  edges: writeEdges,
  csv: writeCsv,
  graphml: writeGraphMl,
  webgraph: writeWebGraph,
};

/** `from<tab>to`, between hosts with the number of links behind them. */
async function writeEdges(rows: GraphRows, sink: Sink, { hashes }: FormatOptions): Promise<void> {
  await rows.links(false, async (links) => {
    const lines = links.map((link) => {
      const ends = hashes
        ? [link.from, link.to]
        : [nameOf(link.fromName, link.from), nameOf(link.toName, link.to)];
      return `${[...ends, ...(isHost(link.from) ? [link.links] : [])].join("\t")}\n`;
    });
    await sink(lines.join(""));
  });
}

/** RFC 4180. */
async function writeCsv(rows: GraphRows, sink: Sink, { nodes }: FormatOptions): Promise<void> {
  if (nodes) {
    await sink("id,name,page_rank,in_links,out_links\r\n");
    await rows.nodes(
      async (some) => await sink(some.map((node) => csvLine(Object.values(inOrder(node)))).join("")),
    );
    return;
  }
  await sink("from,to,from_name,to_name,links\r\n");
  await rows.links(false, async (some) => {
    await sink(
      some
        .map(({ from, to, fromName, toName, links }) => csvLine([from, to, fromName, toName, links]))
        .join(""),
    );
  });
}

async function writeGraphMl(rows: GraphRows, sink: Sink): Promise<void> {
  await sink(
    `<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="rank" for="node" attr.name="page_rank" attr.type="double"/>
<key id="links" for="edge" attr.name="links" attr.type="long"><default>1</default></key>
<graph id="web" edgedefault="directed">
`,
  );
  await rows.nodes(async (some) => await sink(some.map(nodeElement).join("")));
  await rows.links(false, async (some) => await sink(some.map(edgeElement).join("")));
  await sink("</graph>\n</graphml>\n");
}

/**
 * WebGraph's ASCIIGraph: the number of nodes, then for each node a line with the numbers of those it links to,
 * ascending. The numbers are held in memory, the links are not.
 */
async function writeWebGraph(rows: GraphRows, sink: Sink, { nodeList }: FormatOptions): Promise<void> {
  const numbers = new Map<string, number>();
  await rows.nodes(async (some) => {
    for (const { id } of some) numbers.set(id, numbers.size);
    await nodeList?.(some.map(({ id, name }) => `${nameOf(name, id)}\n`).join(""));
  });
  await sink(`${numbers.size}\n`);
  let [node, targets] = [0, [] as number[]];
  const lines: string[] = [];
  const endLine = () => {
    lines.push(`${targets.sort((a, b) => a - b).join(" ")}\n`);
    [node, targets] = [node + 1, []];
  };
  const flush = async () => await sink(lines.splice(0).join(""));
  await rows.links(true, async (some) => {
    for (const { from, to } of some) {
      const source = numbers.get(from)!;
      while (node < source) endLine();
      targets.push(numbers.get(to)!);
    }
    await flush();
  });
  while (node < numbers.size) {
    endLine();
    if (lines.length === 10_000) await flush();
  }
  await flush();
}

const inOrder = ({ id, name, pageRank, inLinks, outLinks }: ExportedNode) => ({
  id,
  name,
  pageRank,
  inLinks,
  outLinks,
});

const isHost = (id: string) => id.length === 16;

const nameOf = (name: string | null, id: string) => name ?? `urn:nearcrawl:${id}`;

function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(csvField).join(",")}\r\n`;
}

function nodeElement({ id, name, pageRank }: ExportedNode): string {
  const rank = pageRank === null ? "" : `<data key="rank">${pageRank}</data>`;
  return `<node id="n${id}"><data key="name">${escaped(nameOf(name, id))}</data>${rank}</node>\n`;
}

function edgeElement({ from, to, links }: ExportedLink): string {
  const weight = links === 1 ? "/>" : `><data key="links">${links}</data></edge>`;
  return `<edge source="n${from}" target="n${to}"${weight}\n`;
}

/** What XML 1.0 has no place for is left out. */
function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** A summary of the web graph: sizes, degrees, top pages and hosts. */

import { z } from "zod";
import { dateTime, type ToldOf } from "../../web/api-operation.ts";
import { inDegrees, type LinkGraph, LinkList, linkGraph } from "./link-graph.ts";

export type GraphSummary = Omit<ToldOf<typeof graphSummary>, "madeAt">;

export type RankedPage = GraphSummary["topPages"][number];

export type RankedHost = GraphSummary["topHosts"][number];

export const topListLength = 20;

/** Computes the parts of the summary that need no database. */
export function shapeOf(graph: LinkGraph, hosts: HostGraph) {
  const { nodes, links, selfLinks } = graph;
  const weights = hosts.weights ?? new Float64Array(0);
  return {
    nodes,
    links,
    selfLinks,
    outLinks: degreesOf(graph.outWeights as Uint32Array),
    inLinks: degreesOf(inDegrees(graph)),
    hosts: hosts.nodes,
    hostLinks: hosts.links,
    linksBetweenHosts: weights.reduce((sum, weight) => sum + weight, 0),
    linksWithinHosts: hosts.innerLinks,
  };
}

/** Degrees: averages, and a distribution in bins that double (figure 5.2 of the Anansi thesis). */

export type Degrees = GraphSummary["outLinks"];

export function degreesOf(degrees: Uint32Array): Degrees {
  const counts: number[] = [];
  let [total, most] = [0, 0];
  for (let node = 0; node < degrees.length; node++) {
    const degree = degrees[node]!;
    // The bin is the number's bit length: 0 → 0, 1 → 1, 2 and 3 → 2.
    const bin = 32 - Math.clz32(degree);
    counts[bin] = (counts[bin] ?? 0) + 1;
    total += degree;
    most = Math.max(most, degree);
  }
  const bins = Array.from(counts, (nodes = 0, bin) => ({
    least: bin === 0 ? 0 : 2 ** (bin - 1),
    most: bin === 0 ? 0 : 2 ** bin - 1,
    nodes,
  }));
  return { average: degrees.length === 0 ? 0 : total / degrees.length, most, bins };
}

/** Returns the nodes with the `count` largest values, largest first; nodes of equal value are in order of number. */
export function largest(values: Float64Array | Uint32Array, count: number): number[] {
  const best: number[] = [];
  for (let node = 0; node < values.length; node++) {
    const value = values[node]!;
    if (best.length === count && value <= values[best[count - 1]!]!) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]!]! < value) at -= 1;
    best.splice(at, 0, node);
    if (best.length > count) best.pop();
  }
  return best;
}

export interface HostGraph extends LinkGraph {
  /** Number of links within hosts, which are not in the graph. */
  readonly innerLinks: number;
}

/** `hostOf` is the host of each node, 0 to `hosts` - 1. */
export function hostGraph(graph: LinkGraph, hostOf: Uint32Array, hosts: number): HostGraph {
  const links = new LinkList();
  const weights: number[] = [];
  const byTarget = nodesByHost(hostOf, hosts);
  // For each host, the index of its link to the current target host; below `firstLink` if there is none.
  const linkFrom = new Float64Array(hosts).fill(-1);
  let innerLinks = 0;
  for (let host = 0; host < hosts; host++) {
    const firstLink = links.count;
    for (let at = byTarget.starts[host]!; at < byTarget.starts[host + 1]!; at++) {
      const node = byTarget.nodes[at]!;
      for (let link = graph.starts[node]!; link < graph.starts[node + 1]!; link++) {
        const source = hostOf[graph.sources[link]!]!;
        if (source === host) innerLinks += 1;
        else if (linkFrom[source]! >= firstLink) weights[linkFrom[source]!]! += 1;
        else {
          linkFrom[source] = links.count;
          links.add(source, host);
          weights.push(1);
        }
      }
    }
  }
  const given = { nodes: hosts, from: links.from, to: links.to, weights: Float64Array.from(weights) };
  return { ...linkGraph(given), innerLinks };
}

function nodesByHost(hostOf: Uint32Array, hosts: number): { starts: Uint32Array; nodes: Uint32Array } {
  const starts = new Uint32Array(hosts + 1);
  for (let node = 0; node < hostOf.length; node++) starts[hostOf[node]! + 1]! += 1;
  for (let host = 0; host < hosts; host++) starts[host + 1]! += starts[host]!;
  const nodes = new Uint32Array(hostOf.length);
  const next = starts.slice(0, hosts);
  for (let node = 0; node < hostOf.length; node++) nodes[next[hostOf[node]!]!++] = node;
  return { starts, nodes };
}

const graphDegrees = z
  .strictObject({
    average: z.number(),
    most: z.int(),
    bins: z.array(z.strictObject({ least: z.int(), most: z.int(), nodes: z.int() })),
  })
  .meta({ id: "GraphDegrees" });

const rankedPage = z
  .strictObject({
    url: z.string().nullable().describe("Null: the frontier does not hold it."),
    pageRank: z.number(),
    inLinks: z.int(),
    outLinks: z.int(),
  })
  .meta({ id: "RankedPage" });

const rankedHost = z
  .strictObject({
    host: z.string().nullable().describe("Null: the frontier does not hold it."),
    rank: z.number(),
    pages: z.int(),
    linkingHosts: z.int(),
    inLinks: z.int(),
    outLinks: z.int(),
  })
  .meta({ id: "RankedHost" });

export const graphSummary = z
  .strictObject({
    madeAt: dateTime(),
    nodes: z.int().describe("URLs of the frontier, and those beyond it that pages link to."),
    knownNodes: z.int().describe("Of the frontier."),
    links: z.int().describe("Without those of pages to themselves."),
    selfLinks: z.int(),
    outLinks: graphDegrees,
    inLinks: graphDegrees,
    visited: z
      .strictObject({ pages: z.int(), averageOutLinks: z.number().nullable() })
      .describe("Pages that were visited and how many links they have (table 5.1 of the Anansi thesis)."),
    change: z.strictObject({
      pages: z.int(),
      average: z
        .number()
        .nullable()
        .describe("Mean share of a page's links that changed from one visit to the next."),
    }),
    hosts: z.int(),
    hostLinks: z.int().describe("Pairs of hosts with links from one to the other."),
    linksBetweenHosts: z.int(),
    linksWithinHosts: z.int(),
    topPages: z.array(rankedPage),
    mostLinked: z.array(rankedPage),
    topHosts: z.array(rankedHost),
    ranking: z.strictObject({
      damping: z.number(),
      tolerance: z.number(),
      iterations: z.int(),
      residual: z.number(),
      converged: z.boolean(),
    }),
  })
  .meta({ id: "GraphSummary" });

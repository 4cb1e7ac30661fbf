/** What can be said of the whole web graph in a few lines: sizes, degrees, who stands first. */
import { type Degrees, degreesOf, largest } from "./degrees.ts";
import type { HostGraph } from "./host-graph.ts";
import { inDegrees, type LinkGraph } from "./link-graph.ts";

export interface GraphSummary {
  /** URLs of the frontier and those beyond it that pages link to. */
  readonly nodes: number;
  readonly knownNodes: number;
  /** Without those of pages to themselves. */
  readonly links: number;
  readonly selfLinks: number;
  readonly outLinks: Degrees;
  readonly inLinks: Degrees;
  /** Pages that were visited and how many links they have, as the Anansi thesis' table 5.1. */
  readonly visited: { readonly pages: number; readonly averageOutLinks: number | null };
  /** Mean of Anansi's C, over pages whose links were seen twice. */
  readonly change: { readonly pages: number; readonly average: number | null };
  readonly hosts: number;
  /** Pairs of hosts, and the links between their pages and within hosts. */
  readonly hostLinks: number;
  readonly linksBetweenHosts: number;
  readonly linksWithinHosts: number;
  readonly topPages: readonly RankedPage[];
  readonly mostLinked: readonly RankedPage[];
  readonly topHosts: readonly RankedHost[];
  readonly ranking: RankingFacts;
}

export interface RankedPage {
  /** Null: the frontier does not hold it. */
  readonly url: string | null;
  readonly pageRank: number;
  readonly inLinks: number;
  readonly outLinks: number;
}

export interface RankedHost {
  /** Null: the frontier does not hold it. */
  readonly host: string | null;
  /** In the graph of hosts, by the number of links. */
  readonly rank: number;
  readonly pages: number;
  /** From and to other hosts. */
  readonly linkingHosts: number;
  readonly inLinks: number;
  readonly outLinks: number;
}

export interface RankingFacts {
  readonly engine: "local" | "sql";
  readonly damping: number;
  readonly tolerance: number;
  readonly iterations: number;
  readonly residual: number;
  readonly converged: boolean;
}

/** How many each list names. */
export const topListLength = 20;

/** What the graph itself says: the parts of the summary that need no database. */
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

/** Numbers of the nodes that the lists name. */
export function topNodes(graph: LinkGraph, ranks: Float64Array) {
  return {
    topPages: largest(ranks, topListLength),
    mostLinked: largest(inDegrees(graph), topListLength),
  };
}

/** The summary of a graph that has been read and ranked: the top lists get their names from the frontier. */
import type { Pool } from "pg";
import { largest } from "./degrees.ts";
import type { WebGraph } from "./graph-reads.ts";
import { type HostGraph, hostGraph } from "./host-graph.ts";
import { inDegrees } from "./link-graph.ts";
import { NodeIndex } from "./node-index.ts";
import { type PageRank, type PageRankSettings, pageRank } from "./page-rank.ts";
import { bigintOf, hashesOf } from "./rank-store.ts";
import {
  type GraphSummary,
  type RankedHost,
  type RankedPage,
  shapeOf,
  topListLength,
  topNodes,
} from "./summary.ts";

export interface Hosts {
  readonly graph: HostGraph;
  /** By the host's hash; the other half of the key is 0. */
  readonly index: NodeIndex;
  /** Nodes of each. */
  readonly pages: Uint32Array;
}

/** Hosts are numbered in the order of their first node. */
export function hostsOf(graph: WebGraph, seed: number): Hosts {
  const { keys } = graph.index;
  const index = new NodeIndex(seed);
  const hostOf = new Uint32Array(graph.nodes);
  for (let node = 0; node < graph.nodes; node++) {
    hostOf[node] = index.add(0, 0, keys[4 * node]!, keys[4 * node + 1]!);
  }
  const pages = new Uint32Array(index.size);
  for (const host of hostOf) pages[host]! += 1;
  return { graph: hostGraph(graph, hostOf, index.size), index, pages };
}

export interface RankedGraph {
  readonly graph: WebGraph;
  readonly hosts: Hosts;
  readonly ranking: PageRank;
  readonly settings: PageRankSettings;
}

export async function summaryOf(pool: Pool, found: RankedGraph): Promise<GraphSummary> {
  const { graph, hosts, ranking, settings } = found;
  const { ranks: _ranks, ...facts } = ranking;
  const lists = topNodes(graph, ranking.ranks);
  return {
    ...shapeOf(graph, hosts.graph),
    knownNodes: graph.knownNodes,
    ...(await readVisits(pool)),
    topPages: await pagesOf(pool, found, lists.topPages),
    mostLinked: await pagesOf(pool, found, lists.mostLinked),
    topHosts: await topHosts(pool, hosts, settings),
    ranking: { engine: "local", damping: settings.damping, tolerance: settings.tolerance, ...facts },
  };
}

/** What the frontier says of visited pages. */
export async function readVisits(
  pool: Pick<Pool, "query">,
): Promise<Pick<GraphSummary, "visited" | "change">> {
  const { rows } = await pool.query<{
    pages: number;
    out_links: number | null;
    compared: number;
    change_ratio: number | null;
  }>(
    `select count(out_links)::float8 as pages, avg(out_links)::float8 as out_links,
       count(change_ratio)::float8 as compared, avg(change_ratio)::float8 as change_ratio
     from frontier_url
     where visits > 0`,
  );
  const { pages, out_links: averageOutLinks, compared, change_ratio: average } = rows[0]!;
  return { visited: { pages, averageOutLinks }, change: { pages: compared, average } };
}

async function pagesOf(
  pool: Pool,
  { graph, ranking }: RankedGraph,
  nodes: readonly number[],
): Promise<RankedPage[]> {
  const hashes = nodes.map((node) => hashesOf(graph.index.keys, node));
  const { rows } = await pool.query<{ url: string | null }>(
    `select u.url
     from unnest($1::bigint[], $2::bigint[]) with ordinality as given (host_hash, url_hash, place)
     left join frontier_url u on u.host_hash = given.host_hash and u.url_hash = given.url_hash
     order by given.place`,
    [hashes.map(({ hostHash }) => hostHash), hashes.map(({ urlHash }) => urlHash)],
  );
  const inLinks = inDegrees(graph);
  return nodes.map((node, place) => ({
    url: rows[place]?.url ?? null,
    pageRank: ranking.ranks[node]!,
    inLinks: inLinks[node]!,
    outLinks: graph.outWeights[node]!,
  }));
}

async function topHosts(pool: Pool, hosts: Hosts, settings: PageRankSettings): Promise<RankedHost[]> {
  const { graph, index, pages } = hosts;
  const { ranks } = pageRank(graph, settings);
  const top = largest(ranks, topListLength);
  const { rows } = await pool.query<{ host: string | null }>(
    `select h.host
     from unnest($1::bigint[]) with ordinality as given (host_hash, place)
     left join frontier_host h on h.host_hash = given.host_hash
     order by given.place`,
    [top.map((host) => bigintOf(index.keys[4 * host + 2]!, index.keys[4 * host + 3]!))],
  );
  return top.map((host, place) => ({
    host: rows[place]?.host ?? null,
    rank: ranks[host]!,
    pages: pages[host]!,
    linkingHosts: graph.starts[host + 1]! - graph.starts[host]!,
    inLinks: weightOf(graph, host),
    outLinks: graph.outWeights[host]!,
  }));
}

function weightOf({ starts, weights }: HostGraph, host: number): number {
  return weights?.subarray(starts[host]!, starts[host + 1]!).reduce((sum, weight) => sum + weight, 0) ?? 0;
}

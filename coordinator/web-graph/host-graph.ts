/** The graph of hosts: one node for each host, and how many links lead from its pages to those of another. */

import { type LinkGraph, linkGraph } from "./link-graph.ts";
import { LinkList } from "./link-list.ts";

export interface HostGraph extends LinkGraph {
  /** Links within a host, which are none of the graph's. */
  readonly innerLinks: number;
}

/** `hostOf`: the host of each node, 0 to `hosts` - 1. */
export function hostGraph(graph: LinkGraph, hostOf: Uint32Array, hosts: number): HostGraph {
  const links = new LinkList();
  const weights: number[] = [];
  const byTarget = nodesByHost(hostOf, hosts);
  // The link from each host to the one whose pages are looked at, if there is one yet.
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

/**
 * A directed graph in typed arrays, by target (compressed sparse columns): for each node who links to it, which is what
 * ranking reads. Links of a node to itself are left out: nobody recommends himself.
 */

export interface LinkGraph {
  readonly nodes: number;
  /** Without those of nodes to themselves. */
  readonly links: number;
  readonly selfLinks: number;
  /** Where each node's sources start in `sources`; one entry more than nodes. */
  readonly starts: Uint32Array;
  readonly sources: Uint32Array;
  /** Beside `sources`; null: every link counts 1. */
  readonly weights: Float64Array | null;
  /** Links from each node; with weights, their sum. */
  readonly outWeights: Float64Array | Uint32Array;
}

export interface GivenLinks {
  readonly nodes: number;
  readonly from: Uint32Array;
  readonly to: Uint32Array;
  /** Positive; absent: 1 each. Links given twice count twice. */
  readonly weights?: Float64Array;
}

/** Sorts the links by their targets, in time and memory linear in them. Throws RangeError for a node that is not there. */
export function linkGraph({ nodes, from, to, weights }: GivenLinks): LinkGraph {
  const starts = new Uint32Array(nodes + 1);
  const outWeights = weights ? new Float64Array(nodes) : new Uint32Array(nodes);
  let selfLinks = 0;
  for (let link = 0; link < from.length; link++) {
    const [source, target] = [from[link]!, to[link]!];
    if (source >= nodes || target >= nodes) {
      throw new RangeError(`link ${link} is from node ${source} to ${target}, and there are ${nodes}`);
    }
    if (source === target) selfLinks += 1;
    else {
      starts[target + 1]! += 1;
      outWeights[source]! += weights ? weights[link]! : 1;
    }
  }
  for (let node = 0; node < nodes; node++) starts[node + 1]! += starts[node]!;
  const links = from.length - selfLinks;
  const sources = new Uint32Array(links);
  const sorted = weights ? new Float64Array(links) : null;
  const next = starts.slice(0, nodes);
  for (let link = 0; link < from.length; link++) {
    const target = to[link]!;
    if (from[link] === target) continue;
    const at = next[target]!++;
    sources[at] = from[link]!;
    if (sorted) sorted[at] = weights![link]!;
  }
  return { nodes, links, selfLinks, starts, sources, weights: sorted, outWeights };
}

/** Links to each node, but for its own. */
export function inDegrees({ nodes, starts }: LinkGraph): Uint32Array {
  const degrees = new Uint32Array(nodes);
  for (let node = 0; node < nodes; node++) degrees[node] = starts[node + 1]! - starts[node]!;
  return degrees;
}

/**
 * PageRank (Page, Brin, Motwani and Winograd 1999) in Float64: the stationary distribution of a surfer who follows a
 * link with probability `damping` and otherwise jumps anywhere, as from nodes without links. It is the normalised
 * solution of x = (1 - damping) + damping · Σ x[source] / links[source] (Del Corso, Gullì and Romani 2005).
 * Gauss-Seidel finds it in about half as many sweeps as power iteration. Nodes without links pass on no rank and are
 * computed once at the end; in a frontier they are the majority.
 */
import type { LinkGraph } from "./link-graph.ts";

export interface PageRankSettings {
  /** From 0 to less than 1. */
  readonly damping: number;
  /** The last sweep is the first that changes the ranks by less than this share in total (L1). */
  readonly tolerance: number;
  readonly iterations: number;
}

export const defaultPageRankSettings: PageRankSettings = { damping: 0.85, tolerance: 1e-6, iterations: 200 };

export interface PageRank {
  /** The ranks add up to 1; empty for an empty graph. */
  readonly ranks: Float64Array;
  readonly iterations: number;
  /** The share by which the last sweep changed the ranks (L1). The error is at most residual · damping / (1 - damping). */
  readonly residual: number;
  readonly converged: boolean;
}

/** `onSweep` is called after each sweep with its number and residual. */
export function pageRank(
  graph: LinkGraph,
  settings: PageRankSettings = defaultPageRankSettings,
  onSweep: (sweep: number, residual: number) => void = () => {},
): PageRank {
  const { damping, tolerance, iterations } = settings;
  if (!(damping >= 0 && damping < 1))
    throw new RangeError(`damping is ${damping}, not from 0 to less than 1`);
  const { nodes } = graph;
  const ranks = new Float64Array(nodes).fill(1);
  const [linking, others] = [nodesWhere(graph, true), nodesWhere(graph, false)];
  const shares = firstShares(graph);
  const sweep = (which: Uint32Array) => sweepOver(graph, which, { damping, ranks, shares });
  let residual = linking.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  let sweeps = 0;
  while (sweeps < iterations && residual >= tolerance) {
    residual = sweep(linking);
    sweeps += 1;
    onSweep(sweeps, residual);
  }
  sweep(others);
  normalise(ranks);
  return { ranks, iterations: sweeps, residual, converged: residual < tolerance };
}

interface State {
  readonly damping: number;
  readonly ranks: Float64Array;
  /** The rank that each node gives through a link of weight 1. */
  readonly shares: Float64Array;
}

/** The innermost loop, with one random read of `shares` per link. */
function sweepOver(graph: LinkGraph, which: Uint32Array, { damping, ranks, shares }: State): number {
  const { starts, sources, outWeights, weights } = graph;
  let [changed, total] = [0, 0];
  for (let index = 0; index < which.length; index++) {
    const node = which[index]!;
    const end = starts[node + 1]!;
    let sum = 0;
    if (weights === null) for (let at = starts[node]!; at < end; at++) sum += shares[sources[at]!]!;
    else for (let at = starts[node]!; at < end; at++) sum += shares[sources[at]!]! * weights[at]!;
    const rank = 1 - damping + damping * sum;
    changed += Math.abs(rank - ranks[node]!);
    total += rank;
    ranks[node] = rank;
    if (outWeights[node] !== 0) shares[node] = rank / outWeights[node]!;
  }
  return changed / total;
}

function nodesWhere({ nodes, outWeights }: LinkGraph, hasLinks: boolean): Uint32Array {
  const found = new Uint32Array(nodes);
  let count = 0;
  for (let node = 0; node < nodes; node++) if ((outWeights[node] !== 0) === hasLinks) found[count++] = node;
  return found.subarray(0, count);
}

function firstShares({ nodes, outWeights }: LinkGraph): Float64Array {
  const shares = new Float64Array(nodes);
  for (let node = 0; node < nodes; node++) shares[node] = outWeights[node] === 0 ? 0 : 1 / outWeights[node]!;
  return shares;
}

function normalise(ranks: Float64Array): void {
  let total = 0;
  for (let node = 0; node < ranks.length; node++) total += ranks[node]!;
  for (let node = 0; node < ranks.length; node++) ranks[node]! /= total;
}

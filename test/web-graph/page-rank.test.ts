/** PageRank against the solution of its linear system. */
import { describe, expect, it } from "vitest";
import { inDegrees, linkGraph } from "#coordinator/crawl/web-graph/link-graph";
import { pageRank } from "#coordinator/crawl/web-graph/page-rank";
import { hostGraph } from "#coordinator/crawl/web-graph/summary";
import { seededRandom } from "#core/random";
import { densePageRank } from "./dense-page-rank.ts";

type Links = readonly (readonly [number, number, number?])[];

const exact = { damping: 0.85, tolerance: 1e-14, iterations: 1000 };

function graphOf(nodes: number, links: Links, weighted = false) {
  const from = Uint32Array.from(links, ([source]) => source);
  const to = Uint32Array.from(links, ([, target]) => target);
  const weights = Float64Array.from(links, ([, , weight = 1]) => weight);
  return linkGraph({ nodes, from, to, ...(weighted ? { weights } : {}) });
}

/** Reads "0>1 1>2" as links. */
const linksIn = (text: string): Links =>
  text === "" ? [] : text.split(" ").map((link) => link.split(">").map(Number) as [number, number]);

function worstDifference(ranks: Float64Array, expected: readonly number[]): number {
  return Math.max(0, ...expected.map((rank, node) => Math.abs(rank - ranks[node]!)));
}

describe("PageRank equals the solution of its linear system to 1e-9", () => {
  const shapes: readonly (readonly [name: string, nodes: number, links: string])[] = [
    ["a ring", 3, "0>1 1>2 2>0"],
    ["two rings that do not know each other", 5, "0>1 1>0 2>3 3>4 4>2"],
    ["a chain that ends in a page without links", 4, "0>1 1>2 2>3"],
    ["pages without any links", 4, ""],
    ["one page", 1, ""],
    ["one page that links to itself", 1, "0>0"],
    ["pages that link to themselves too", 3, "0>0 0>1 1>1 1>0 2>2"],
    ["parallel links", 3, "0>1 0>1 0>2 1>0"],
    ["a star", 5, "1>0 2>0 3>0 4>0"],
    ["a trap: a ring that one page leads into", 4, "0>1 1>2 2>1 3>0"],
  ];
  it.each(shapes)("for %s", (_name, nodes, text) => {
    const links = linksIn(text);
    const { ranks, converged } = pageRank(graphOf(nodes, links), exact);

    expect(worstDifference(ranks, densePageRank(nodes, links))).toBeLessThan(1e-9);
    expect(ranks.reduce((sum, rank) => sum + rank, 0)).toBeCloseTo(1, 12);
    expect(converged).toBe(true);
  });

  it("for random graphs, other damping factors, and weights", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = seededRandom(seed);
      const nodes = 1 + Math.floor(random() * 30);
      const links = Array.from(
        { length: Math.floor(random() * 100) },
        () => [Math.floor(random() * nodes), Math.floor(random() ** 2 * nodes), 1 + random()] as const,
      );
      const plain = links.map(([from, to]) => [from, to] as const);
      const damping = seed % 3 === 0 ? 0.5 : 0.85;

      const one = pageRank(graphOf(nodes, plain), { ...exact, damping });
      const weighted = pageRank(graphOf(nodes, links, true), { ...exact, damping });

      expect(worstDifference(one.ranks, densePageRank(nodes, plain, damping)), `seed ${seed}`).toBeLessThan(
        1e-9,
      );
      expect(
        worstDifference(weighted.ranks, densePageRank(nodes, links, damping)),
        `seed ${seed}`,
      ).toBeLessThan(1e-9);
    }
  });
});

describe("PageRank", () => {
  it("of no pages is empty", () => {
    expect(pageRank(graphOf(0, []))).toEqual({
      ranks: new Float64Array(0),
      iterations: 0,
      residual: 0,
      converged: true,
    });
  });

  it("reports each sweep, and when they end before the tolerance", () => {
    const seen: number[] = [];

    const { converged, iterations } = pageRank(
      graphOf(3, linksIn("0>1 1>2 2>0 0>2")),
      { ...exact, iterations: 3 },
      (sweep) => seen.push(sweep),
    );

    expect({ converged, iterations, seen }).toEqual({ converged: false, iterations: 3, seen: [1, 2, 3] });
  });

  it("refuses a damping factor that makes ranks grow without end", () => {
    expect(() => pageRank(graphOf(1, []), { ...exact, damping: 1 })).toThrow("damping is 1");
  });
});

describe("the graph", () => {
  it("refuses links to missing nodes", () => {
    expect(() => graphOf(2, linksIn("0>1 1>2"))).toThrow("link 1 is from node 1 to 2, and there are 2");
  });

  it("counts links between hosts and those within a host separately", () => {
    const pages = graphOf(5, linksIn("0>1 0>2 1>2 1>3 2>0 3>4 4>4"));
    const hosts = hostGraph(pages, Uint32Array.of(0, 0, 1, 1, 2), 3);

    expect([...inDegrees(pages)]).toEqual([1, 1, 2, 1, 1]);
    expect(pages.selfLinks).toBe(1);
    expect(linksOf(hosts)).toEqual([
      [0, 1, 3],
      [1, 0, 1],
      [1, 2, 1],
    ]);
    expect(hosts.innerLinks).toBe(1);
  });
});

/** [from, to, weight] of each link, sorted. */
function linksOf({ starts, sources, weights }: ReturnType<typeof hostGraph>): number[][] {
  return [...sources]
    .map((from, at) => [from, starts.findLastIndex((start) => start <= at), weights![at]!])
    .sort((a, b) => a[0]! - b[0]! || a[1]! - b[1]!);
}

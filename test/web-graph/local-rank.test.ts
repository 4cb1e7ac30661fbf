/** What a ranking writes, against the definition of PageRank. */
import type { Pool } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { rankInWorker, rankLocally } from "#coordinator/crawl/web-graph/local-rank-store";
import { latestSummary } from "#coordinator/crawl/web-graph/rank-store";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { type SeededGraph, seedGraph } from "./graph-in-database.ts";

const settings = { damping: 0.85, tolerance: 1e-13, iterations: 500 };
const at = new Date("2030-01-01T12:00:00Z");

const database = await forThisFile(testDatabase());
let graph: SeededGraph;
beforeAll(async () => {
  graph = await seedGraph(database.pool, 3, settings.damping);
});

describe("a ranking", () => {
  it("writes the ranks of the frontier's URLs, a summary, and the uncounted back-links", async () => {
    const steps = new Set<string>();

    const { summary, mended } = await rankInWorker(
      database,
      { settings, write: true, at },
      { onProgress: ({ step }) => steps.add(step) },
    );

    expectClose(await writtenRanks(database.pool), knownRanks(), 1e-7);
    expect(summary).toMatchObject({
      nodes: graph.ranks.size,
      knownNodes: graph.backLinks.size,
      links: graph.links,
      selfLinks: graph.selfLinks,
      ranking: { converged: true },
    });
    expect(summary.linksBetweenHosts + summary.linksWithinHosts).toBe(graph.links);
    expect(summary.topPages[0]!.pageRank).toBeCloseTo(Math.max(...graph.ranks.values()), 12);
    expect((await latestSummary(database.pool))?.summary).toEqual(summary);
    expect(steps.size).toBeGreaterThan(0);
    expect(mended).toBe([...graph.backLinks.values()].filter((links) => links > 0).length);
    const { rows } = await database.pool.query(
      "select host_hash || '/' || url_hash as name, back_links from frontier_url",
    );
    expect(new Map(rows.map(({ name, back_links }) => [name, back_links]))).toEqual(graph.backLinks);
  });

  it("replaces the ranks that were there", async () => {
    await rankLocally(database.pool, { settings: { ...settings, damping: 0 }, write: true, at });

    const even = new Map([...knownRanks().keys()].map((name) => [name, 1 / graph.ranks.size]));
    expectClose(await writtenRanks(database.pool), even, 1e-7);
  });
});

const knownRanks = () => new Map([...graph.ranks].filter(([name]) => graph.backLinks.has(name)));

function expectClose(
  found: ReadonlyMap<string, number>,
  expected: ReadonlyMap<string, number>,
  most: number,
): void {
  expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
  const differences = [...expected].map(([name, rank]) => Math.abs(rank - found.get(name)!));
  expect(Math.max(...differences)).toBeLessThan(most);
}

async function writtenRanks(pool: Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ name: string; page_rank: number }>(
    `select host_hash || '/' || url_hash as name, page_rank from url_rank`,
  );
  return new Map(rows.map(({ name, page_rank: rank }) => [name, rank]));
}

/** /graph: before and after a ranking, as a page, JSON and CSV. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { rankLocally } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings } from "#coordinator/crawl/web-graph/page-rank";
import { graphPart } from "#coordinator/crawl/web-graph/start";
import { describeApi } from "#coordinator/open-api";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { webServer } from "../support/web-server.ts";
import { seedGraph } from "./graph-in-database.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  app = webServer(database, { parts: [graphPart(database.pool)] });
});
afterAll(async () => await app?.close());

it("says when ranks of another engine were read, and what counts the rest", async () => {
  await database.pool.query(
    "insert into url_rank (host_hash, url_hash, page_rank, ranked_at) values (1, 1, 1, '2030-01-01T11:00:00Z')",
  );

  const page = await app.inject({ url: "/graph", headers: { accept: "text/html" } });

  expect(page.body).toContain("Ranks of another engine were read at");
  expect(page.body).toContain("2030-01-01 11:00:00 UTC");
  expect((await app.inject("/api/graph")).json()).toEqual({
    graph: null,
    ranksAt: "2030-01-01T11:00:00.000Z",
  });
});

it("shows the last ranking as a page, JSON as described, and CSV", async () => {
  const seeded = await seedGraph(database.pool, 5, 0.85);
  await database.pool.query(
    "update frontier_url set url = 'http://page.example/<b>?a=1&b=2' where url like '%/1'",
  );
  const at = new Date("2030-01-01T12:00:00Z");
  await rankLocally(database.pool, { settings: defaultPageRankSettings, write: true, at });

  const page = await app.inject({ url: "/graph", headers: { accept: "text/html" } });
  const json = await app.inject("/api/graph");
  const csv = await app.inject("/graph?format=csv");

  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  expect(faultsOf(json.json(), { $ref: "#/components/schemas/Graph" }, schemas)).toEqual([]);
  expect(json.json().graph).toMatchObject({ madeAt: at.toISOString(), links: seeded.links });
  expect(page.body).toContain("2030-01-01 12:00:00 UTC");
  expect(page.body).not.toContain("<b>?");
  expect(page.body).toContain("not in the frontier");
  expect(csv.body.split("\r\n")[0]).toBe("url,page_rank,in_links,out_links");
  expect(csv.body.trim().split("\r\n")).toHaveLength(21);
  expect(page.body).not.toContain("Ranks of another engine");

  await database.pool.query("update url_rank set ranked_at = $1", [new Date(at.getTime() + 3_600_000)]);
  const later = await app.inject({ url: "/graph", headers: { accept: "text/html" } });

  expect(later.body).toMatch(/Ranks of another engine were read at .*2030-01-01 13:00:00 UTC/);
  expect(
    faultsOf((await app.inject("/api/graph")).json(), { $ref: "#/components/schemas/Graph" }, schemas),
  ).toEqual([]);
});

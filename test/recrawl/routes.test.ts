/** /fleet/recrawl and `nearcrawl recrawl`: before and after a plan, as a page, JSON, CSV and text. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { savePlan } from "#coordinator/crawl/recrawl/plan-store";
import { emptyPlan } from "#coordinator/crawl/recrawl/recrawl-settings";
import { recrawlPart } from "#coordinator/crawl/recrawl/start";
import { policySections } from "#coordinator/run/settings/schema";
import { createChartReads } from "#coordinator/tell/overview/chart-reads";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { worldNow } from "../support/seed-world.ts";
import { type SignedIn, signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let operator: SignedIn;
beforeAll(async () => {
  app = webServer(database, {
    parts: [recrawlPart(database.pool, createChartReads(database.pool).charts.bind(null, "recrawl"))],
  });
  operator = await signIn(database, "operator");
});
afterAll(async () => await app?.close());

const page = async (url: string, accept = "text/html") =>
  await app.inject({ url, headers: { ...operator.headers, accept } });

it("says what happens before any plan, and is for operators only", async () => {
  const before = await page("/fleet/recrawl");
  const stranger = await app.inject({ url: "/fleet/recrawl", headers: { accept: "text/html" } });

  expect(before.body).toContain("every page is fetched again after the same interval");
  expect([stranger.statusCode, stranger.headers.location]).toEqual([
    303,
    expect.stringContaining("/sign-in"),
  ]);
});

it("shows groups, intervals and rates of the current plan, and why each was made", async () => {
  const policies = policySections.recrawl.parse({ strategy: "icr" });
  const plan = emptyPlan({ policies, now: worldNow }, null);
  const group = { pages: 300, initialSeconds: 3600, intervalSeconds: 7200, successRate: 0.5 };
  const groups = [
    { ...group, channels: 12, changesPerDay: 24 },
    { ...group, channels: 13, changesPerDay: 1 },
  ];
  const first = { ...plan, groups, pages: 600, totalPerDay: 7200, reason: "first <b>" };
  await savePlan(database.pool, first, new Map());
  const rates = { totalPerDay: 5000, achievedPerDay: 4800, freshness: 0.75, correction: 1.04 };
  const second = { ...plan, ...rates, capacityPerDay: 9000, multiplier: 2, reason: "second" };
  await savePlan(database.pool, { ...second, strategy: "optimal" }, new Map());

  const shown = await page("/fleet/recrawl");
  const json = await page("/api/fleet/recrawl", "application/json");
  const csv = await page("/fleet/recrawl?format=csv");

  expect(json.json().plans[1].groups).toEqual(groups);
  expect(shown.body).toContain("Current plan: optimal");
  expect(shown.body).toContain("5,000 per day");
  expect(shown.body).toContain("75.0 %");
  expect(shown.body).not.toContain("<b>");
  expect(csv.body.trim().split("\r\n")).toHaveLength(3);
});

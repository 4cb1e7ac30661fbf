/** `nearcrawl fleet incidents` as people run it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { createIncidentStore } from "#coordinator/overview/incident-store";
import type { Database } from "#db/server-database";
import { fleetCommand } from "#ops/cli/commands/fleet";
import { said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => await database.close());

const fleetIncidents = (...args: readonly string[]) =>
  said(fleetCommand(), ["incidents", ...args, "--database-url", database.url, "--schema", database.schema]);

it("shows incidents as a table that no words of a crawler can break, and those of one crawler as JSON", async () => {
  const north = await createCrawlerStore(database.pool).register({ name: "north", keyHash: "0" });
  const now = Date.now();
  const flood = { crawlerId: north, kind: "flood", remoteAddress: "192.0.2.1", count: 7 };
  await createIncidentStore(database.pool).recordAll([
    { ...flood, words: "too much\u001b[31m", at: new Date(now) },
    { ...flood, words: "long ago", at: new Date(now - 30 * 86_400_000) },
    { ...flood, crawlerId: null, kind: "wrong-key", words: "as north", at: new Date(now) },
  ]);

  const [table, json] = await Promise.all([
    fleetIncidents("--since", "24h"),
    fleetIncidents("--name", "north", "--since", "60d", "--json"),
  ]);

  expect(table).toMatch(/north +flood +7 +192\.0\.2\.1 +too much/);
  expect(table).toContain("(unknown client)");
  expect(table).not.toContain("long ago");
  expect(table).not.toContain("\u001b");
  expect((JSON.parse(json) as { words: string }[]).map(({ words }) => words.slice(0, 8))).toEqual([
    "too much",
    "long ago",
  ]);
}, 60_000);

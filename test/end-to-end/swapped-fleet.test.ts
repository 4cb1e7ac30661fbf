/** A release goes out to crawlers that are at work: nothing of what they had in hand is lost. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { swapUnderLoad } from "./swapping-fleet.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase({ maxConnections: 25 });
});
afterAll(() => database.close());

it("a swap under load loses no result and no lease, fetches nothing twice and keeps every host's pace", async () => {
  const floorMs = 100;

  const size = { crawlers: 3, hostsPerCrawler: 3, pagesPerHost: 12, floorMs, requestsBefore: 12 };

  const outcome = await swapUnderLoad(size, database);

  const { urls, swapped } = outcome;
  expect(swapped).toBe(3);
  expect(urls).toBeGreaterThanOrEqual(3 * 3 * 12);
  // Each URL has one fetch, each fetch came in one result, and no number of a spool was left out.
  expect(outcome).toMatchObject({ fetches: urls, sequences: urls });
  expect(outcome).toMatchObject({ unacknowledged: 0, fetchedTwice: 0, askedTwice: 0 });
  expect(Object.keys(outcome.leases)).not.toContain("expired");
  expect(outcome.hostsOverSwap).toBeGreaterThan(0);
  // The grain of the clocks, and a round trip more or less.
  expect(outcome.shortestPauseMs).toBeGreaterThan(floorMs / 2);
}, 120_000);

/** `nearcrawl who` knows the domain sets of the coordinator that started last, whether it runs or not. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/crawlers/coordinator-presence-store";
import type { Database } from "#db/server-database";
import { whoCommand } from "#ops/cli/commands/who";
import { said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedPage, seedWorld } from "../../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await seedPage(database.pool, { url: "https://www.example.org/f", title: "Ferry", text: "The harbour." });
});
afterAll(async () => await database?.close());

const who = (url: string) =>
  said(whoCommand(), [url, "--database-url", database.url, "--schema", database.schema]);

it("says that a host is in none of the coordinator's own domain sets, until it started without any", async () => {
  const place = { webUrl: "https://search.example", certificatePin: null };
  await stateCoordinatorPlace(database.pool, { ...place, domainSets: [".gr"] }, new Date());
  const outside = await who("https://www.example.org/f");
  await stateCoordinatorPlace(database.pool, place, new Date());
  const inside = await who("https://www.example.org/f");

  expect(outside).toContain(
    "www.example.org is in none of the domain sets of this coordinator (.gr): it is not crawled from here.",
  );
  expect(inside).not.toContain("domain set");
});

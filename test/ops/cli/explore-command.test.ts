/** `nearcrawl explore` over a seeded database: a tree, a list and countries. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { exploreCommand } from "#ops/cli/commands/of-rooms";
import { inProcess, said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedWorld } from "../../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
});
afterAll(async () => await database.close());

const place = () => ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];
const explored = async (...words: string[]) => await said(await exploreCommand(), [...words, ...place()]);
const run = async (...words: string[]) => await inProcess(await exploreCommand(), [...words, ...place()]);

it("shows a subnet with what holds it and what is directly within it", async () => {
  const text = await explored("1.2.0.0/16", "--view", "tree");

  expect(text).toMatch(/above\n.*\n.*\n1\.0\.0\.0\/8 +APNIC .*none/);
  expect(text).toMatch(/children\n.*1\.2\.9\.0 - 1\.2\.9\.9 [^\n]*berlin/s);
  // A leaf is found, too.
  expect(await run("1.2.3.0/24", "--view", "tree")).toMatchObject({ code: 0 });
});

it("lists what a filter leaves, and says by its exit code that nothing is left", async () => {
  const { subnets } = JSON.parse(await explored("--state", "waiting", "--json"));

  expect(subnets.map(({ range }: { range: string }) => range)).toEqual(["1.2.3.0/24", "5.6.0.0/16"]);
  expect(await run("--country", "CY")).toMatchObject({ code: 3 });
});

it("counts the map's subnets by crawler, and countries'", async () => {
  expect(await explored()).toMatch(/legend\n.*athens +3\n.*blocks\n.*0\.0\.0\.0\/4 +6/s);
  expect(await explored("--view", "countries")).toMatch(/GR +Greece +4 +4/);
});

it("refuses what it cannot read", async () => {
  expect(await run("nowhere")).toMatchObject({
    code: 2,
    err: expect.stringContaining("at: nowhere is not an address"),
  });
});

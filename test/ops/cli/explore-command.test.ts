/** `nearcrawl explore` over a seeded database: a tree, a list and CSV. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { exploreCommand } from "#ops/cli/commands/explore";
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
const explored = (...words: string[]) => said(exploreCommand(), [...words, ...place()]);
const run = (...words: string[]) => inProcess(exploreCommand(), [...words, ...place()]);

it("shows a subnet with what holds it and what is directly within it", async () => {
  const text = await explored("1.2.0.0/16");

  expect(text).toMatch(
    /^1\.0\.0\.0\/8 APNIC {2}nobody\n {2}└ 1\.2\.0\.0\/16 EXAMPLE-NET {2}athens, 12\.5 ms/,
  );
  expect(text).toContain("2 directly within 1.2.0.0/16:");
  expect(text).toMatch(/1\.2\.9\.0 - 1\.2\.9\.9 .*berlin/);
});

it("lists what a filter leaves, and says by its exit code that nothing is left", async () => {
  expect(await explored("--state", "waiting")).toContain("2 in 0.0.0.0/0.");
  expect(await run("--country", "CY")).toMatchObject({
    code: 3,
    out: expect.stringContaining("No subnet of 0.0.0.0/0 matches."),
  });
});

it("counts by country, with a median once there is one", async () => {
  const text = await explored("--countries");
  const json = JSON.parse(await explored("--countries", "--country", "gr", "--json"));

  expect(text).toMatch(/GR +Greece .*too few yet .*athens: /);
  expect(json.countries).toMatchObject([{ country: "GR", measured: 1, medianRttMs: null }]);
  expect(await run("--countries", "--country", "CY")).toMatchObject({ code: 3 });
});

it("writes CSV and JSON", async () => {
  const csv = (await explored("ipv6", "--csv")).split("\r\n");
  const json = JSON.parse(await explored("ipv6", "--list", "--json"));

  expect(csv[1]).toMatch(/^2a00:1::\/32,EXAMPLE-V6,Example Networks,DE,ripencc,delegated,berlin,/);
  expect(json.subnets[0]).toMatchObject({ range: "2a00:1::/32", crawler: "berlin" });
});

it("refuses what it cannot read, and views that exclude each other", async () => {
  expect(await run("nowhere")).toMatchObject({
    code: 2,
    err: expect.stringContaining("at: nowhere is not an address"),
  });
  expect(await run("--tree", "--list")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--tree and --list exclude each other"),
  });
});

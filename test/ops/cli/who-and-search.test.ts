/** The commands over a real database, each once in its own process: output and exit codes. */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { nearcrawl as run } from "../../support/built-command.ts";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { freePort } from "../../support/free-port.ts";
import { seedPage, seedWorld } from "../../support/seed-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query(`update holder set name = E'Bad\\x1b[31m Org' where holder_id = 3`);
  await seedPage(database.pool, {
    url: "https://www.example.org/f",
    title: "Ferry\u001b]0;x\u0007",
    text: "The harbour.",
  });
});
afterAll(async () => await database?.close());

const nearcrawl = (args: readonly string[]) =>
  run(args, { database: { url: database.url, schema: database.schema } });

const inHand = ([name, ...args]: readonly [string, ...string[]], schema = database.schema) =>
  inProcess(commandNamed(name), [...args, "--database-url", database.url, "--schema", schema]);

describe("nearcrawl who", () => {
  it("prints the verdict, the tree of subnets and the probes", async () => {
    const { code, out } = await nearcrawl(["who", "1.2.3.4"]);

    expect(code).toBe(0);
    expect(out).toContain("athens would crawl this  (address 1.2.3.4)");
    expect(out).toContain("Runner-up  berlin (48.3 ms)");
    expect(out).toContain("└─ 1.2.0.0/16 EXAMPLE-NET · Example Networks · GR APNIC · athens (12.5 ms)");
    expect(out).toMatch(/2 +athens +head +12\.5 ms/);
    expect(out).toContain("tokyo (at least 140 ms,");
  });

  it("ends with 3 when nothing is known, and offers names like it", async () => {
    const { code, out } = await inHand(["who", "Exampel", "Netwroks"]);

    expect(code).toBe(3);
    expect(out).toContain("Did you mean\n· Example Networks (ORG-EX1-AP)");
  });

  it("passes no escape sequence of a registry to the terminal", async () => {
    const { out } = await inHand(["who", "5.6.7.8"]);

    expect(out).toContain("Bad [31m Org");
    expect(out.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });

  it("reports that nothing has been set up", async () => {
    const { code, err } = await inHand(["who", "1.2.3.4"], "no_such_schema");

    expect(code).toBe(1);
    expect(err).toContain('nothing has been set up in schema "no_such_schema"');
  });
});

it("creates no database", async () => {
  const home = join(temporaryFolder("nearcrawl-nothing-"), "home");
  const asked = await inProcess(commandNamed("who"), ["1.2.3.4", "--home", home]);
  const read = await inProcess(commandNamed("rank"), ["--home", home]);

  for (const { code, err } of [asked, read]) {
    expect(code).toBe(1);
    expect(err).toContain(`nothing has been set up in ${home}: run nearcrawl up first`);
  }
  expect(existsSync(home)).toBe(false);
});

describe("nearcrawl search", () => {
  it("prints titles, addresses and snippets", async () => {
    const { code, out } = await inHand(["search", "harbour"]);

    expect(code).toBe(0);
    expect(out).toBe(
      "1. Ferry ]0;x \n   https://www.example.org/f\n   The harbour.\n   fetched 2026-03-01 by athens · en · GR\n\n1 page\n",
    );
  });

  it("ends with 3 when no page matches, and with 2 when an option is wrong", async () => {
    const nothing = await inHand(["search", "submarine", "--json"]);
    const wrong = await inHand(["search", "harbour", "--limit", "many"]);

    expect([nothing.code, JSON.parse(nothing.out).total]).toEqual([3, 0]);
    expect([wrong.code, wrong.err]).toEqual([2, "nearcrawl: --limit many: must be a number\n"]);
  });
});

it("asks the OpenSearch that the settings name, and says that it does not answer", async () => {
  const home = temporaryFolder("nearcrawl-opensearch-away-");
  const settings = `[search]\nengine = "opensearch"\nurl = "http://127.0.0.1:${await freePort()}/pages"\n`;
  writeFileSync(join(home, "coordinator.toml"), settings);

  const { code, err } = await inHand(["search", "harbour", "--json", "--home", home]);

  expect(code).toBe(1);
  expect(err).toMatch(/^nearcrawl: .*The search engine does not answer at the moment \(.+\)\. Nothing/);
});

describe("nearcrawl page", () => {
  it("prints facts and fetches; ends with 3 when there is no such page, and with 2 when that is no address", async () => {
    const text = await inHand(["page", "www.example.org/f"]);
    const none = await inHand(["page", "https://www.example.org/none"]);
    const wrong = await inHand(["page", "ftp://www.example.org/"]);

    expect([text.code, none.code, wrong.code]).toEqual([0, 3, 2]);
    expect(text.out).toMatch(/Size +40\.0 kB {2}10\.0 kB over the wire, 1\.50 kB shipped/);
    expect(text.out).toMatch(/2026-03-01 12:00:00 UTC +athens +fetched 200 .* 40\.0 ms +40\.0 kB/);
    expect(none.out).toContain("no page at this address");
    expect(wrong.err).toBe("nearcrawl: ftp://www.example.org/ is no address of a page (not-http).\n");
  });
});

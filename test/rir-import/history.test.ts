/** What a range was in each generation, against imports and rollbacks in a real Postgres. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { rangeHistory } from "#rir-import/history";
import { rollbackImport } from "#rir-import/rollback";
import { testDatabase } from "../support/database.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

let database: Database;
let folder: SourceFolder;
beforeEach(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterEach(async () => {
  folder.remove();
  await database.close();
});

const organisation = (name: string) => `organisation: ORG-EX1-RIPE\norg-name: ${name}\nsource: RIPE\n\n`;
const net = (range: string, country = "NL") =>
  `inetnum: ${range}\nnetname: EX\ncountry: ${country}\norg: ORG-EX1-RIPE\nsource: RIPE\n\n`;
let files = 0;
const apply = (content: string) => applyImport(database, [folder.write(`${files++}.db`, content)]);
const told = async (range: string) =>
  (await rangeHistory(database, range)).generations.map(({ generation, event, state }) => [
    generation,
    event,
    state && [state.holder, state.country, state.under].join(" "),
  ]);

it("tells every generation: before it was there, changed, moved, renamed, gone and back", async () => {
  const wide = net("45.10.0.0/16");
  await apply(organisation("Old Name") + wide);
  await apply(organisation("Old Name") + wide + net("45.10.0.0/24"));
  await apply(organisation("New Name") + wide + net("45.10.0.0/24"));
  await apply(organisation("New Name") + wide + net("45.10.0.0/24", "DE"));
  await apply(organisation("New Name") + wide + net("45.10.0.0/20") + net("45.10.0.0/24", "DE"));
  await apply(organisation("New Name") + wide);
  await apply(organisation("New Name") + wide + net("45.10.0.0/24", "FR"));

  expect(await told("45.10.0.0/24")).toEqual([
    [7, "returned", "New Name FR 45.10.0.0/16"],
    [6, "removed", null],
    [5, "moved", "New Name DE 45.10.0.0/20"],
    [4, "changed", "New Name DE 45.10.0.0/16"],
    [3, "unchanged", "New Name NL 45.10.0.0/16"],
    [2, "added", "Old Name NL 45.10.0.0/16"],
    [1, "absent", null],
  ]);
});

it("leaves out what was rolled back", async () => {
  await apply(organisation("A") + net("45.10.0.0/16"));
  await apply(organisation("A") + net("45.10.0.0/16", "DE"));
  await rollbackImport(database);
  await apply(organisation("B") + net("45.10.0.0/16", "FR"));

  expect(await told("45.10.0.0/16")).toEqual([
    [3, "changed", "B FR "],
    [1, "added", "A NL "],
  ]);
});

it("of what never was a subnet is that of the most specific one that holds it", async () => {
  await apply(organisation("A") + net("45.10.0.0/16"));

  expect(await rangeHistory(database, "45.10.7.9")).toMatchObject({
    asked: "45.10.7.9",
    range: "45.10.0.0/16",
    isExact: false,
  });
  expect(await rangeHistory(database, "46.0.0.0/8")).toEqual({
    asked: "46.0.0.0/8",
    range: null,
    isExact: false,
    generations: [],
  });
});

/** A crawl that was set up before hints and the recrawl strategy ncis went: its file works on, and so does its database. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());

it("a file that states ncis and hints is read, and ncis is optimal", () => {
  const former = { recrawl: { strategy: "ncis", intervalHours: 24 }, hints: { webSub: true } };

  expect(readCoordinatorConfig(former).recrawl).toMatchObject({ strategy: "optimal", intervalHours: 24 });
});

it("migration 0120 takes policies to optimal in a version of their own, which tells what they were", async () => {
  const text = readFileSync("db/migrations/0120-no-hints.sql", "utf8");
  const { pool } = database;
  await pool.query(`
    insert into setting (name, value, changed_by) values ('hints.perHostAndDay', '50', 'anna'), ('recrawl.strategy', '"ncis"', 'anna');
    insert into recrawl_plan (made_at, strategy, reason, plan) values (now(), 'ncis', 'as measured', '{}')`);

  // Of the migration, what moves rows: the tables are gone already.
  await pool.query(text.slice(text.indexOf("insert into policy_version")));

  const { settings, version } = await createPolicyStore(pool).read();
  const strategies = await pool.query("select strategy from recrawl_plan");
  expect(settings.map(({ name, value }) => [name, value])).toEqual([["recrawl.strategy", "optimal"]]);
  expect((await createPolicyStore(pool).version(version))?.changes).toEqual([
    { name: "hints.perHostAndDay", before: 50, after: null },
    { name: "recrawl.strategy", before: "ncis", after: "optimal" },
  ]);
  expect(strategies.rows).toEqual([{ strategy: "optimal" }]);
});

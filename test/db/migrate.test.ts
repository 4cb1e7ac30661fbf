/** Migrations on a real server. */
import { expect, test } from "vitest";
import { migrate } from "#db/migrate";
import { testDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

test("a fresh schema gets every migration once, and none the second time", async () => {
  const database = await testDatabase();
  try {
    const { rows } = await database.pool.query("select name from migration order by id");
    const again = await migrate(database);

    expect(rows.map((row) => row.name)).toContain("0001-foundation");
    expect(again.applied).toEqual([]);
  } finally {
    await database.close();
  }
});

test("a migration that a reader of its tables stands in the way of begins anew", async () => {
  const database = await testDatabase();
  const reader = await database.pool.connect();
  const one = async (text: string) => (await database.pool.query<{ is: boolean }>(text)).rows[0]?.is === true;
  try {
    await database.pool.query(`drop schema "${database.schema}" cascade`);
    const migrated = migrate(database);
    await until(async () => await one("select to_regclass('page_fetch') is not null as is"), 20_000);
    // Who waits first looks first whether it is a deadlock, and is ended: the migration.
    await reader.query("set deadlock_timeout = '30s'; begin; lock table page_fetch in access share mode");
    await until(
      async () =>
        await one(
          "select exists (select from pg_locks where not granted and relation = 'page_fetch'::regclass) as is",
        ),
      20_000,
    );
    await reader.query("select from frontier_url; rollback");

    const { applied } = await migrated;

    const { rows } = await database.pool.query("select name from migration order by id");
    expect(rows.map((row) => row.name)).toContain("0023-url-history");
    expect(applied).toEqual(rows.map((row) => row.name));
  } finally {
    reader.release(true);
    await database.close();
  }
});

/** Migrations on a real server. */
import { expect, test } from "vitest";
import { migrate } from "#db/migrate";
import { testDatabase } from "../support/database.ts";

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

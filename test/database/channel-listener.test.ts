import { afterAll, beforeAll, expect, it } from "vitest";
import { ChannelListener } from "#coordinator/database/channel-listener";
import { openDatabase } from "#db/connect";
import { channelName, tell } from "#db/schema-channel";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

let database: Database;
let narrow: Database;
beforeAll(async () => {
  narrow = await testDatabase({ maxConnections: 1 });
  database = await openDatabase({ databaseUrl: narrow.url, home: "/nonexistent", schema: narrow.schema });
});
afterAll(async () => {
  await database?.close();
  await narrow?.close();
});

it("a listener whose first attempt fails holds no connection, and can listen later", {
  timeout: 10_000,
}, async () => {
  let heard = 0;
  const listener = new ChannelListener(narrow.pool, "nearcrawl_fleet", () => {
    heard += 1;
  });
  // After a failure, Postgres accepts only the transaction's end.
  const client = await narrow.pool.connect();
  await client.query("begin");
  await client.query("select 1 / 0").catch(() => {});
  client.release();

  await expect(listener.listen()).rejects.toThrow("current transaction is aborted");
  const answer = await narrow.pool.query("select 1 as one");
  await listener.listen();
  await tell(database.pool, "nearcrawl_fleet", [""]);
  await until(async () => heard > 0, 5000);
  await listener.stop();

  expect(answer.rows).toEqual([{ one: 1 }]);
});

it("hears of its own schema, and nothing of its neighbours in the same database", async () => {
  const neighbour = await openDatabase({
    ...{ databaseUrl: narrow.url, home: "/nonexistent" },
    schema: `next_to_${narrow.schema}`.padEnd(63, "_"),
  });
  await neighbour.pool.query(`create schema ${neighbour.schema}`);
  const client = await database.pool.connect();
  const heard: (string | undefined)[] = [];
  client.on("notification", ({ payload }) => heard.push(payload));
  const { rows } = await client.query(`select ${channelName("nearcrawl_fleet")} as name`);
  await client.query(`listen ${rows[0].name}`);

  // Notices arrive in the order of their commits.
  await tell(neighbour.pool, "nearcrawl_fleet", ["next door"]);
  await tell(narrow.pool, "nearcrawl_fleet", ["here"]);
  await until(() => heard.includes("here"), 5000);
  client.release(true);
  await neighbour.close();

  expect(heard).toEqual(["here"]);
});

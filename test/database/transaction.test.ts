/** Transactions that collide are repeated; a permanent failure changes nothing. */
import type { PoolClient } from "pg";
import { beforeEach, expect, test } from "vitest";
import { inTransaction, preparing } from "#coordinator/database/transaction";
import { createPool } from "#db/server-database";
import { forThisFile } from "../support/for-this-file.ts";
import { newWorld } from "../support/store-world.ts";

const world = await forThisFile(newWorld());
beforeEach(async () => {
  await world.reset();
  await world.crawler("north");
  await world.crawler("south");
});

/** A barrier: everybody waits for the last one, and later arrivals pass. */
function meetingOf(number: number): () => Promise<void> {
  let come = 0;
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return async () => {
    if (++come >= number) open();
    await opened;
  };
}

test("two that deadlock both finish, after another try", async () => {
  const meet = meetingOf(2);
  let tries = 0;
  const raise = async (first: string, second: string) =>
    await inTransaction(world.pool, async (client) => {
      tries++;
      const sql = "update crawler set pages_per_day = pages_per_day + 1 where name = $1";
      await client.query(sql, [first]);
      await meet();
      await client.query(sql, [second]);
    });

  await Promise.all([raise("north", "south"), raise("south", "north")]);

  expect(tries).toBeGreaterThan(2);
  expect(await world.rows("select pages_per_day from crawler")).toEqual([
    { pages_per_day: 100_002 },
    { pages_per_day: 100_002 },
  ]);
});

test("an error undoes the transaction, and the connection is as good as new", async () => {
  const failing = inTransaction(world.pool, async (client) => {
    await client.query("update crawler set pages_per_day = 1");
    throw new Error("not after all");
  });

  await expect(failing).rejects.toThrow("not after all");
  expect(await world.rows("select from crawler where pages_per_day = 1")).toEqual([]);
});

test("a connection that breaks in the middle is not used again", async () => {
  const failing = inTransaction(world.pool, async (client) => {
    await client.query("update crawler set pages_per_day = 1");
    await client.query("select pg_terminate_backend(pg_backend_pid())");
  });

  await expect(failing).rejects.toThrow();
  expect(await world.rows("select from crawler where pages_per_day = 1")).toEqual([]);
});

test("a statement that a connection prepared before a migration is repeated on another connection", async () => {
  const pool = createPool(world.database.url, 1);
  await pool.query("create table outdated as select 1 as first");
  const rows = async () => {
    const work = async (client: PoolClient) =>
      await preparing(client).query("select * from outdated where first = $1", [1]);
    return (await inTransaction(pool, work)).rows;
  };

  expect(await rows()).toEqual([{ first: 1 }]);
  await pool.query("alter table outdated add second integer");
  expect(await rows()).toEqual([{ first: 1, second: null }]);

  await pool.query("drop table outdated");
  await pool.end();
});

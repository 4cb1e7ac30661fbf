/** A statement that takes too long is ended, and the connection can be used again. */
import { expect, it } from "vitest";
import { boundedRead } from "#coordinator/database/bounded-read";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase({ maxConnections: 1 }));

it("ends what takes too long and leaves no setting behind", async () => {
  const ended = await boundedRead(
    database.pool,
    20,
    async (client) => await client.query("select pg_sleep(20)"),
  );

  const { rows } = await database.pool.query("show enable_seqscan");
  expect(ended).toBeNull();
  expect(rows).toEqual([{ enable_seqscan: "on" }]);
});

it("lets other errors through", async () => {
  const failing = boundedRead(database.pool, 1000, async (client) => await client.query("select 1 / 0"));

  await expect(failing).rejects.toThrow("division by zero");
});

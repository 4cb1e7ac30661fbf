/** Schemas of slices on two real servers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { sliceOfNumber } from "#db/slice-numbers";
import { createReplica, createSliceSchema, publishShared } from "#db/slice-schema";
import { replicatedTables, sliceTables } from "#db/table-sets";
import { SliceServers } from "../support/slice-servers.ts";
import { until } from "../support/until.ts";

let servers: SliceServers;
let replica: Database;
let slice: Database;
beforeAll(async () => {
  servers = await SliceServers.begin();
  replica = await servers.open(1, { schema: servers.shared.schema });
  slice = await servers.open(1, { schema: "web_1", sharedSchema: servers.shared.schema });
}, 120_000);
afterAll(async () => await servers?.close());

const tablesOf = async ({ pool, schema }: Database) =>
  (
    await pool.query<{ name: string }>(
      `select relname::text as name from pg_class
       where relnamespace = $1::regnamespace and relkind in ('r', 'p') and not relispartition and relname <> 'migration'
       order by 1`,
      [schema],
    )
  ).rows.map(({ name }) => name);

describe("the shared tables on a slice's server", () => {
  it("follow those of the first server, and cannot be written", async () => {
    await publishShared(servers.shared);
    await createReplica(replica, servers.shared, {
      sharedUrl: servers.url(0),
      subscription: "nearcrawl_web",
    });

    await servers.shared.pool.query("insert into crawler (name, state) values ('athens', 'offline')");
    const names = async () =>
      (await replica.pool.query<{ name: string }>("select name from crawler")).rows.map(({ name }) => name);
    await until(async () => (await names()).includes("athens"), 10_000);

    const left = await tablesOf(replica);
    expect(left.filter((name) => (sliceTables as readonly string[]).includes(name))).toEqual([]);
    expect(left).toEqual(expect.arrayContaining([...replicatedTables]));
    await expect(replica.pool.query("update crawler set name = 'b'")).rejects.toThrow(
      "table crawler is a replica here",
    );
  });
});

describe("a slice's schema", () => {
  it("has the tables of a slice and no others, and numbers that no other slice gives", async () => {
    await createSliceSchema(slice, 1);
    await createSliceSchema(slice, 1);

    expect(await tablesOf(slice)).toEqual([...sliceTables].sort());
    const { rows } = await slice.pool.query<{ outbox_number: string }>(
      "insert into link_outbox (crawler_id, effects, packed) values (1, 0, '') returning outbox_number",
    );
    expect(sliceOfNumber(rows[0]!.outbox_number)).toBe(1);
    await expect(createSliceSchema(slice, 2)).rejects.toThrow('schema "web_1"');
  });

  it("is not made where others' tables are", async () => {
    const others = await servers.open(1, { schema: "others" });
    await others.pool.query("create schema others");
    await others.pool.query("create table others.theirs (id int)");

    await expect(createSliceSchema(others, 3)).rejects.toThrow("holds tables that are no slice's");
    expect(await tablesOf(others)).toEqual(["theirs"]);
  });
});

/** Sizes, partitions and samples from the catalogue, for tables with and without (nested) partitions. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { bytesToRead, estimatedRows, partsOf, sampleOf, tableSizes, totalBytes } from "#db/table-sizes";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await database.pool.query(`
    create table plain (id int primary key, words text);
    create table parted (id int primary key, words text) partition by range (id);
    create table parted_low partition of parted for values from (minvalue) to (1000);
    create table parted_high partition of parted for values from (1000) to (maxvalue) partition by range (id);
    create table parted_higher partition of parted_high for values from (1000) to (5000);
    create table "parted odd" partition of parted_high for values from (5000) to (maxvalue);
    insert into plain select n, repeat('w', 200) from generate_series(1, 3000) n;
    insert into parted select n, repeat('w', 200) from generate_series(1, 9000) n;
    analyze plain, parted, parted_low, parted_higher, "parted odd"`);
});

describe("of a table, whatever its parts", () => {
  it.each([
    ["plain", 3000, 1],
    ["parted", 9000, 3],
  ])("%s: its rows, its bytes and its innermost parts", async (table, rows, parts) => {
    const { pool } = database;

    const size = (await tableSizes(pool)).find((one) => one.table === table)!;
    const [about, total, toRead] = [
      await estimatedRows(pool, table),
      await totalBytes(pool, table),
      (await bytesToRead(pool, [table])).get(table),
    ];

    expect(size).toMatchObject({ parts, rows });
    expect(about).toBe(rows);
    expect(total).toBe(size.bytes + size.indexBytes);
    expect(toRead).toBeGreaterThan(rows * 200);
    expect(toRead).toBeLessThan(size.bytes);
  });

  it("a missing or never analysed table counts as empty", async () => {
    await database.pool.query("create table fresh (id int)");
    const bytes = await bytesToRead(database.pool, ["nothing", "plain"]);

    expect([...bytes.keys()].toSorted()).toEqual(["nothing", "plain"]);
    expect(bytes.get("nothing")).toBe(0);
    expect(await estimatedRows(database.pool, "nothing")).toBe(0);
    expect(await estimatedRows(database.pool, "fresh")).toBe(0);
  });

  it("its own parts have names and bounds as statements take them", async () => {
    const parts = await partsOf(database.pool, "parted");
    const further = await partsOf(database.pool, "parted_high");

    expect(parts).toEqual([
      { name: "parted_high", bounds: "FOR VALUES FROM (1000) TO (MAXVALUE)" },
      { name: "parted_low", bounds: "FOR VALUES FROM (MINVALUE) TO (1000)" },
    ]);
    expect(further.map(({ name }) => name)).toEqual(['"parted odd"', "parted_higher"]);
    expect(await partsOf(database.pool, "plain")).toEqual([]);
  });

  it("a share of it is read, always the same one on request", async () => {
    const ids = async (share: number, isSteady: boolean) =>
      (await database.pool.query(`select id from parted ${sampleOf(share, { isSteady })} order by id`)).rows;

    const [once, again] = [await ids(0.3, true), await ids(0.3, true)];

    expect(again).toEqual(once);
    expect(once.length).toBeGreaterThan(500);
    expect(once.length).toBeLessThan(6000);
    expect((await ids(1, false)).length).toBe(9000);
  });
});

it("no other code reads them from the catalogue", () => {
  const root = join(import.meta.dirname, "../..");
  const asked =
    /\b(reltuples|relpages|pg_relation_size|pg_total_relation_size|pg_table_size|pg_indexes_size|pg_inherits|pg_partition_tree|tablesample)\b/;

  const asking = ["coordinator", "rir-import", "ops", "db"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((name) => join(folder, name))
      .filter((name) => name.endsWith(".ts") && asked.test(readFileSync(join(root, name), "utf8"))),
  );

  expect(asking).toEqual(["db/table-sizes.ts"]);
});

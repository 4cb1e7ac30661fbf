/** Copies a database into an empty one on another server, here a Debian Postgres where available. */
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { copyDatabase } from "#db/copy-database";
import { createPool, type Database, openServerDatabase, postgresVersion } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { type DebianPostgres, debianBinaries, startDebianPostgres } from "../support/debian-postgres.ts";
import { seedHost, seedPage, seedWorld } from "../support/seed-world.ts";

let source: Database;
let server: DebianPostgres | null = null;
const opened: Database[] = [];
beforeAll(async () => {
  source = await testDatabase();
  await seedWorld(source.pool);
  await seedHost(source.pool, { host: "a.example" });
  const text = "καλημέρα κόσμε";
  await seedPage(source.pool, {
    url: "https://a.example/",
    title: "Καλημέρα",
    text,
    textSearchConfig: "simple",
  });
  const binaries = debianBinaries();
  if (binaries === null) process.stdout.write("there is no Postgres of Debian: copied within one server\n");
  else {
    server = await startDebianPostgres(binaries);
    const administrator = createPool(server.url, 1);
    await administrator.query("create database moved encoding 'UTF8' locale 'C.UTF-8' template template0");
    await administrator.end();
  }
});
afterAll(async () => {
  for (const database of opened) await database.close();
  await source?.close();
  await server?.close();
});

async function target(schema: string): Promise<Database> {
  const databaseUrl = server?.url.replace("/postgres?", "/moved?") ?? source.url;
  const database = await openServerDatabase({ databaseUrl, schema });
  opened.push(database);
  return database;
}

/** Returns the rows and a digest of each table, and the positions of sequences. */
async function contentsOf(pool: Pool): Promise<unknown> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
       and not relispartition and relname <> 'migration' order by 1`,
  );
  const contents: Record<string, unknown> = {};
  for (const { name } of tables) {
    const { rows } = await pool.query(
      `select count(*)::int as rows, md5(coalesce(string_agg(t::text, '|' order by t::text collate "C"), '')) as digest from "${name}" t`,
    );
    contents[name] = rows[0];
  }
  const { rows: sequences } = await pool.query(
    "select sequencename, last_value from pg_sequences where schemaname = current_schema() order by 1",
  );
  return { contents, sequences };
}

it("every row, every sequence and computed columns arrive, and new rows continue from there", async () => {
  const to = await target("moved");
  const progress: number[] = [];

  const copied = await copyDatabase(source, to, ({ bytes }) => progress.push(bytes));

  const expected = await contentsOf(source.pool);
  expect(await contentsOf(to.pool)).toEqual(expected);
  expect(copied.rows).toBeGreaterThan(10);
  expect(progress.at(-1)).toBe(copied.bytes);
  // The source is the newer bundled server unless the tests use another.
  if (server !== null && process.env.DATABASE_URL === undefined)
    expect(await postgresVersion(to.pool)).toBeLessThan(await postgresVersion(source.pool));
  const found = "select url_hash from document where text like '%κόσμε%'";
  expect((await to.pool.query(found)).rows).toEqual((await source.pool.query(found)).rows);
  const { rows } = await to.pool.query(
    "insert into crawler (name, state) values ('after', 'offline') returning crawler_id",
  );
  const last = await source.pool.query("select max(crawler_id) as last from crawler");
  expect(rows[0].crawler_id).toBeGreaterThan(last.rows[0].last);
});

it("a target that is not empty is left alone, and a failed copy leaves nothing", async () => {
  const again = await target("moved");
  const before = await contentsOf(again.pool);
  await expect(copyDatabase(source, again)).rejects.toThrow(
    /holds something already, and nothing was copied/,
  );
  expect(await contentsOf(again.pool)).toEqual(before);

  if (server !== null) {
    const ascii = await openServerDatabase({ databaseUrl: server.url, schema: "moved" });
    opened.push(ascii);
    await expect(copyDatabase(source, ascii)).rejects.toThrow(
      /has the encoding SQL_ASCII: make it with createdb/,
    );
  }
  const broken = await target("broken");
  const failing = copyDatabase(source, broken, () => {
    throw new Error("the disk is full");
  });
  await expect(failing).rejects.toThrow("the disk is full");
  const { rows } = await broken.pool.query("select to_regnamespace('broken') is null as gone");
  expect(rows).toEqual([{ gone: true }]);
});

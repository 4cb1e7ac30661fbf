/** The server of a URL: its errors are clear, and a lost connection ends only itself. */
import { expect, test } from "vitest";
import { openDatabase } from "#db/connect";
import { type Database, withSearchPath } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());

const open = async (databaseUrl: string): Promise<Database> =>
  await openDatabase({ databaseUrl, home: "/nowhere", schema: "public" });

const changed = (change: (url: URL) => void): string => {
  const url = new URL(database.url);
  change(url);
  return url.href;
};

test("the schema comes first in every connection's search path, then public", async () => {
  const { rows } = await database.pool.query("show search_path");

  expect(rows).toEqual([{ search_path: `${database.schema},public` }]);
});

test("the URL for psql and children leads to the same schema", async () => {
  const again = await openDatabase({ databaseUrl: database.url, home: "/nowhere", schema: database.schema });

  expect((await again.pool.query("select current_schema() as schema")).rows).toEqual([
    { schema: database.schema },
  ]);
  await again.close();
});

test("options that the URL already has are kept", () => {
  const url = new URL(withSearchPath("postgresql://h/d?options=-c%20geqo%3Doff", "world"));

  expect(url.searchParams.get("options")).toBe("-c geqo=off -c search_path=world,public");
  expect(url.search).not.toContain("+");
});

test("a URL with a user and without a host, as libpq takes it, is read", () => {
  expect(withSearchPath("postgresql://me@/d?host=/run/pg", "world")).toMatch(
    /^postgresql:\/\/me@localhost\/d\?host=/,
  );
});

test("a server that is not there is named, without its password", async () => {
  const opening = open("postgresql://me:secret@127.0.0.1:1/d");

  await expect(opening).rejects.toThrow(
    "the database postgresql://me@127.0.0.1:1/d cannot be used: connect ECONNREFUSED",
  );
  await expect(opening).rejects.toMatchObject({ code: "NC_DATABASE" });
});

test("a database that is not there is refused in the server's own words", async () => {
  const opening = open(
    changed((url) => {
      url.pathname = "/no_such_database";
    }),
  );

  await expect(opening).rejects.toThrow('database "no_such_database" does not exist');
});

test("what is no database URL is a fault of usage, and is not repeated: it may hold a password", async () => {
  await expect(open("mysql://me:secret@h/d")).rejects.toMatchObject({
    code: "NC_USAGE",
    message:
      "the database URL is not of the form postgresql://user:password@host:port/name, or host1:port1,host2:port2 for several",
  });
});

test("a schema's name is letters, digits and underscores", async () => {
  const opening = openDatabase({
    databaseUrl: database.url,
    home: "/nowhere",
    schema: 'x"; drop table page',
  });

  await expect(opening).rejects.toMatchObject({ code: "NC_USAGE" });
});

test("connections that are lost, idle or in use, leave the pool usable", async () => {
  const client = await database.pool.connect();
  await client.query("begin");
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await database.pool.query("select 1");

  const lost = new Promise((resolve) => client.once("end", () => resolve(undefined)));
  const killed = await database.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where pid = $1",
    [rows[0]?.pid],
  );
  await lost;
  await expect(client.query("commit")).rejects.toThrow();
  client.release(true);

  expect(killed.rowCount).toBe(1);
  expect((await database.pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});

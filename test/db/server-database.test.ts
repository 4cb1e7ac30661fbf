/** The server of a URL: its errors are clear, and a lost connection ends only itself. */
import { expect, test } from "vitest";
import { openDatabase } from "#db/connect";
import { withSearchPath } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());

test("the schema comes first in every connection's search path, then public", async () => {
  const { rows } = await database.pool.query("show search_path");

  expect(rows).toEqual([{ search_path: `${database.schema},public` }]);
});

test("the database's URL leads psql and child processes to the same schema", async () => {
  const again = await openDatabase({ databaseUrl: database.url, home: "/nowhere", schema: database.schema });
  const { rows } = await again.pool.query("select current_schema() as schema");
  await again.close();

  expect(rows).toEqual([{ schema: database.schema }]);
});

test.each([
  {
    what: "no server at the address, without the password",
    url: "postgresql://me:secret@127.0.0.1:1/d",
    fault: { code: "NC_DATABASE" },
    words: "the database postgresql://me@127.0.0.1:1/d cannot be used: connect ECONNREFUSED",
  },
  {
    what: "a missing database, in the server's words",
    url: Object.assign(new URL(database.url), { pathname: "/no_such_database" }).href,
    fault: { code: "NC_DATABASE" },
    words: 'database "no_such_database" does not exist',
  },
  {
    what: "a URL of another kind, without repeating its password",
    url: "mysql://me:secret@h/d",
    fault: { code: "NC_USAGE" },
    words:
      /^the database URL is not of the form postgresql:\/\/user:password@host:port\/name, or host1:port1,host2:port2 for several$/,
  },
  {
    what: "a schema name beyond letters, digits and underscores",
    url: database.url,
    schema: 'x"; drop table page',
    fault: { code: "NC_USAGE" },
    words: "schema",
  },
])("opening reports $what", async ({ url, schema = "public", fault, words }) => {
  const opening = openDatabase({ databaseUrl: url, home: "/nowhere", schema });

  await expect(opening).rejects.toMatchObject(fault);
  await expect(opening).rejects.toThrow(words);
});

test("options that the URL already has are kept", () => {
  const url = new URL(withSearchPath("postgresql://h/d?options=-c%20geqo%3Doff", "world"));

  expect(url.searchParams.get("options")).toBe("-c geqo=off -c search_path=world,public");
  expect(url.search).not.toContain("+");
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

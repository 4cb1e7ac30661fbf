/** Tables of one server's database whose odd parts are on another server, by postgres_fdw. */
import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync } from "node:fs";
import { join } from "node:path";
import type { WorkPart } from "#coordinator/web-graph/sql-rank-store";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/**
 * A database on a server of its own, beside the run's embedded one. Where DATABASE_URL names the server, which may be on a
 * machine that reaches none here, it is another database's schema of that one.
 */
export async function databaseElsewhere(near: Database): Promise<Database> {
  if (process.env.DATABASE_URL !== undefined) return await testDatabase({ allParts: true });
  const home = temporaryFolder("second-server-");
  // The server may run as somebody else.
  chmodSync(home, 0o711);
  await (await openDatabase({ databaseUrl: null, home, schema: "elsewhere" })).close();
  await stopEmbeddedPostgres(home);
  await underTheAccountOf(near, home);
  const database = await openDatabase({ databaseUrl: null, home, schema: "elsewhere" });
  await migrate(database);
  const close = async () => {
    await database.close();
    await stopEmbeddedPostgres(home);
  };
  return { ...database, close };
}

/** Started as root each server has an account of its own, and the one is to reach the other's socket. */
async function underTheAccountOf({ pool }: Database, home: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { rows } = await pool.query<{ data_directory: string }>("show data_directory");
  const { uid, gid } = lstatSync(rows[0]!.data_directory);
  execFileSync("chown", ["-R", `${uid}:${gid}`, join(home, "postgres")]);
}

export interface FarParts {
  readonly placePart: (part: WorkPart) => string;
}

const columns: Readonly<Record<string, string>> = {
  sql_rank_seen: "host_hash bigint, url_hash bigint, links bigint",
  sql_rank_share: "host_hash bigint, url_hash bigint, share float8",
  sql_rank_a: "host_hash bigint, url_hash bigint, links bigint, page_rank float8",
  sql_rank_b: "host_hash bigint, url_hash bigint, links bigint, page_rank float8",
};
const spread = ["frontier_url", "out_link", "url_rank"];
const odd = [1, 3, 5, 7];

/** Null: the server has no postgres_fdw. The near tables have no primary keys any more: foreign parts allow none. */
export async function spreadOverTwo(near: Database, far: Database): Promise<FarParts | null> {
  const available = await near.pool.query("select from pg_available_extensions where name = 'postgres_fdw'");
  if (available.rowCount === 0) return null;
  const { rows } = await far.pool.query<{ database: string; role: string; port: string }>(
    "select current_database() as database, current_user as role, current_setting('port') as port",
  );
  const { database, role, port } = rows[0]!;
  const { searchParams, hostname, password } = new URL(far.url.replace("///", "//socket/"));
  const host = searchParams.get("host") ?? hostname;
  await near.pool.query(
    `create extension if not exists postgres_fdw;
     create server far_server foreign data wrapper postgres_fdw
       options (host '${host}', port '${port}', dbname '${database}');
     create user mapping for current_user server far_server options (user '${role}'${password === "" ? "" : `, password '${decodeURIComponent(password)}'`})`,
  );
  for (const table of spread) await sendOddParts(near, far, table);
  for (const [table, list] of Object.entries(columns)) {
    for (const part of odd) await far.pool.query(`create table ${table}_${part} (${list})`);
  }
  return {
    placePart: ({ table, name, bounds }) =>
      isOdd(name) ? foreign(table, name, bounds) : local(table, name, bounds),
  };

  function foreign(table: string, name: string, bounds: string): string {
    return `create foreign table ${name} partition of ${table} ${bounds}
      server far_server options (schema_name '${far.schema}', table_name '${name}')`;
  }
}

const local = (table: string, name: string, bounds: string) =>
  `create unlogged table ${name} partition of ${table} ${bounds}`;

const isOdd = (name: string) => odd.includes(Number(name.slice(name.lastIndexOf("_") + 1)));

async function sendOddParts(near: Database, far: Database, table: string): Promise<void> {
  await near.pool.query(`alter table ${table} drop constraint ${table}_pkey`);
  for (const part of odd) {
    await near.pool.query(
      `drop table ${table}_${part};
       create foreign table ${table}_${part} partition of ${table}
         for values with (modulus 8, remainder ${part})
         server far_server options (schema_name '${far.schema}', table_name '${table}_${part}')`,
    );
  }
}

/** Numbers that are given where hosts lie have room for a range of each database; those of what all databases share may be short. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { channelsWhere } from "#coordinator/channels/channel-reads";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => await database?.close());

/**
 * None is of hosts that a database has for itself. Lists of stated uses (preference_set) are kept with pages, but each database has its own: a
 * page's number of one would have to be as wide, which would write all pages anew.
 */
const short = [
  ...[
    "complaint",
    "crawler",
    "crawler_key",
    "crawler_move",
    "finer_delegation",
    "holder",
    "invitation",
    "operator_token",
  ],
  ...[
    "opt_out",
    "preference_set",
    "probe_round",
    "published_list",
    "recrawl_plan",
    "registry_generation",
    "registry_job",
  ],
  ...["run", "sign_in_link", "subnet", "web_session"],
];

it("identity columns are bigint where tables are about hosts", async () => {
  const { rows } = await database.pool.query<{ table: string; of_hosts: boolean }>(
    `select c.relname as table, exists (
       select from pg_attribute h where h.attrelid = c.oid and h.attname = 'host_hash' and not h.attisdropped) as of_hosts
     from pg_attribute a
     join pg_class c on c.oid = a.attrelid
     where c.relnamespace = current_schema()::regnamespace and a.attidentity <> '' and a.atttypid = 'int4'::regtype
     order by c.relname`,
  );

  // Delegations are known to all databases, those of single hosts too.
  expect(rows.filter((row) => row.of_hosts).map(({ table }) => table)).toEqual(["finer_delegation"]);
  expect(rows.map(({ table }) => table)).toEqual(short.toSorted());
});

it("a channel's number beyond the old bound is told and kept as any other", async () => {
  await database.pool.query(
    `insert into channel (channel_id, host_hash, host, directories, created_at)
     overriding system value values (4000000000001, 1, 'a.example', '{/}', now());
     insert into recrawl_host (host_hash, channel_id, changes_per_day, pages) values (1, 4000000000001, 1, 1)`,
  );
  const { rows } = await database.pool.query<{ top: string }>(
    "select max_value::text as top from pg_sequences where sequencename = 'channel_channel_id_seq' and schemaname = current_schema()",
  );

  expect(await channelsWhere(database.pool, "true", [])).toMatchObject([{ channelId: 4000000000001 }]);
  expect(rows).toEqual([{ top: "9223372036854775807" }]);
});

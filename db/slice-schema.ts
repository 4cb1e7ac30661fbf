/**
 * Schemas of slices: the tables of one slice, made by the same migrations as all others. Where a slice lies on another server
 * than the shared tables, that server gets a schema with a replica of those that its statements read, kept up by Postgres'
 * logical replication; whoever writes there by mistake is refused.
 */
import type { Pool, PoolClient } from "pg";
import { DatabaseError, UsageError } from "#core/errors";
import { migrate } from "./migrate.ts";
import { type Database, wordsOf } from "./server-database.ts";
import { numbersPerSlice } from "./slice-numbers.ts";
import { isSliceTable, replicatedTables } from "./table-sets.ts";

/**
 * Makes the tables of a slice in a schema that holds nothing yet, or goes on where that was ended in the middle. It holds no
 * hosts. Throws a UsageError where the schema is somebody else's.
 */
export async function createSliceSchema(slice: Database, sliceNumber: number): Promise<void> {
  const { pool, schema, description } = slice;
  const { rows: before } = await pool.query<{ tables: number; self: string | null }>(
    `select count(*)::int as tables, to_regclass($2)::text as self
     from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'p')`,
    [schema, `"${schema}".slice_self`],
  );
  const [{ tables, self }] = before as [{ tables: number; self: string | null }];
  if (tables > 0 && self === null)
    throw new UsageError(`schema "${schema}" of ${description} holds tables that are no slice's`);
  if (self !== null) {
    const { rows } = await pool.query<{ slice_number: number }>("select slice_number from slice_self");
    if (rows[0]?.slice_number === sliceNumber) return;
    const isUnfinished = rows[0]?.slice_number === 0 && (await isWithoutHosts(pool));
    if (!isUnfinished)
      throw new UsageError(
        `schema "${schema}" of ${description} is slice ${rows[0]?.slice_number ?? "of nobody"}`,
      );
  }
  await migrate(slice, { only: "slice" });
  await inOne(pool, async (client) => {
    await dropTables(client, (name) => !isSliceTable(name) && name !== "migration");
    await spaceNumbers(client, sliceNumber);
    await client.query("update slice_self set slice_number = $1, held = '{}'", [sliceNumber]);
    await client.query("update change_feed set last_number = $1, removed_through = $1", [
      BigInt(sliceNumber) * numbersPerSlice,
    ]);
  });
}

async function isWithoutHosts(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query("select from frontier_host limit 1");
  return rowCount === 0;
}

async function dropTables(client: PoolClient, isDropped: (name: string) => boolean): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select relname::text as name
     from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  const dropped = rows.filter(({ name }) => isDropped(name));
  if (dropped.length > 0)
    await client.query(`drop table ${dropped.map(({ name }) => `"${name}"`).join(", ")} cascade`);
}

async function spaceNumbers(client: PoolClient, sliceNumber: number): Promise<void> {
  const first = BigInt(sliceNumber) * numbersPerSlice + 1n;
  const { rows } = await client.query<{ name: string; type: string }>(
    `select sequencename::text as name, data_type::text as type
     from pg_sequences where schemaname = current_schema()`,
  );
  for (const { name, type } of rows)
    if (type === "bigint")
      await client.query(`alter sequence "${name}" minvalue ${first} start ${first} restart ${first}`);
}

// The replica of the shared tables on another server.

/** For people and for Postgres: of the schema. */
const publicationOf = (schema: string) => `nearcrawl_shared_${schema}`;

/**
 * Publishes what slices read of the shared tables. Rows of a table without a key are told whole. Throws a UsageError where the
 * server does not keep what it takes.
 */
export async function publishShared({ pool, schema, description }: Database): Promise<void> {
  const { rows } = await pool.query<{ level: string }>("select current_setting('wal_level') as level");
  if (rows[0]?.level !== "logical")
    throw new UsageError(
      `${description} has wal_level ${rows[0]?.level}, and a slice on another server needs a replica of the shared tables: set wal_level = logical there and restart it (alter system set wal_level = 'logical')`,
    );
  const name = publicationOf(schema);
  await inOne(pool, async (client) => {
    // One at a time.
    await client.query("select pg_advisory_xact_lock(hashtext('nearcrawl publication'), hashtext($1))", [
      schema,
    ]);
    const { rowCount } = await client.query("select from pg_publication where pubname = $1", [name]);
    const tables = replicatedTables.map((table) => `"${schema}"."${table}"`).join(", ");
    if (rowCount === 0) await client.query(`create publication "${name}" for table ${tables}`);
    else await client.query(`alter publication "${name}" set table ${tables}`);
    const { rows: keyless } = await client.query<{ name: string }>(
      `select c.relname::text as name
       from pg_class c
       where c.relnamespace = current_schema()::regnamespace and c.relname = any($1)
         and c.relreplident = 'd'
         and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`,
      [[...replicatedTables]],
    );
    for (const { name: table } of keyless) await client.query(`alter table "${table}" replica identity full`);
  });
}

/**
 * Makes the replica on a slice's server, and waits until it has come as far as the shared tables are now. `replica`: a schema
 * of the shared tables' name there. `sharedUrl`: how that server reaches the shared tables' server.
 */
export async function createReplica(
  replica: Database,
  shared: Database,
  { sharedUrl, subscription, waitMs = 600_000 }: { sharedUrl: string; subscription: string; waitMs?: number },
): Promise<void> {
  const { pool, schema, description } = replica;
  // Another slice on that server may have made it.
  const { rows } = await pool.query<{ name: string }>(
    `select subname::text as name from pg_subscription
     where subpublications = array[$1] and subdbid = (select oid from pg_database where datname = current_database())`,
    [publicationOf(schema)],
  );
  const isFollowing = rows.length > 0;
  await migrate(replica, { only: "shared" });
  await inOne(pool, async (client) => {
    await dropTables(client, (name) => isSliceTable(name));
    if (isFollowing) return;
    // Some begin with a row.
    await client.query(`truncate ${replicatedTables.map((table) => `"${table}"`).join(", ")} cascade`);
    await refuseWrites(client);
  });
  if (!isFollowing)
    try {
      await pool.query(
        `create subscription "${subscription}" connection '${conninfo(sharedUrl)}' publication "${publicationOf(schema)}"`,
      );
    } catch (error) {
      throw new DatabaseError(
        `${description} cannot follow the shared tables of ${shared.description}: ${wordsOf(error)}`,
        { cause: error },
      );
    }
  await untilReplicated(pool, { subscription: rows[0]?.name ?? subscription, description, waitMs });
}

/** Its tables as those of the shared schema are by now; new ones are followed from here on. */
export async function updateReplica(replica: Database, sharedSchema: string): Promise<void> {
  const { pool } = replica;
  const { applied } = await migrate(replica, { only: "shared" });
  if (applied.length > 0)
    await inOne(pool, async (client) => {
      await dropTables(client, (name) => isSliceTable(name));
      await refuseWrites(client);
    });
  const { rows } = await pool.query<{ name: string; tables: number }>(
    `select subname::text as name, (select count(*)::int from pg_subscription_rel where srsubid = s.oid) as tables
     from pg_subscription s
     where subpublications = array[$1] and subdbid = (select oid from pg_database where datname = current_database())`,
    [publicationOf(sharedSchema)],
  );
  for (const { name, tables } of rows)
    if (tables !== replicatedTables.length)
      await pool.query(`alter subscription "${name}" refresh publication`);
}

/** The slice's schema goes, and with the last one of its server the replica. `slice`: as `createSliceSchema` has it. */
export async function dropSliceSchema(slice: Database, sharedSchema: string, isLast: boolean): Promise<void> {
  const { pool, schema } = slice;
  await pool.query(`drop schema if exists "${schema}" cascade`);
  if (!isLast) return;
  const { rows } = await pool.query<{ name: string }>(
    `select subname::text as name from pg_subscription
     where subpublications = array[$1] and subdbid = (select oid from pg_database where datname = current_database())`,
    [publicationOf(sharedSchema)],
  );
  for (const { name } of rows) await pool.query(`drop subscription "${name}"`);
  await pool.query(`drop schema if exists "${sharedSchema}" cascade`);
}

/** Its name there, and that of the slot on the server of the shared tables; of the first slice on that server. */
export const subscriptionOf = (sharedSchema: string, sliceNumber: number) =>
  `nearcrawl_${sharedSchema}_${sliceNumber}`;

/** Of subscriptions whose server is gone, so that no log is kept for them. */
export async function dropReplicaSlots(
  { pool }: Pick<Database, "pool">,
  subscriptions: readonly string[],
): Promise<void> {
  await pool.query(
    "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = any ($1) and not active",
    [subscriptions],
  );
}

/** A literal of SQL; libpq takes URLs as they are. */
const conninfo = (url: string) => url.replaceAll("'", "''");

/** What replication writes there fires no such trigger. */
async function refuseWrites(client: PoolClient): Promise<void> {
  await client.query(
    `create or replace function refuse_write_to_replica() returns trigger language plpgsql as $$
     begin
       raise exception 'table % is a replica here: it is written on the server of the shared tables', tg_table_name;
     end $$`,
  );
  const { rows } = await client.query<{ name: string }>(
    `select relname::text as name
     from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname <> 'migration'`,
  );
  for (const { name } of rows)
    await client.query(
      `create or replace trigger refuse_write_to_replica
       before insert or update or delete or truncate on "${name}"
       for each statement execute function refuse_write_to_replica()`,
    );
}

async function untilReplicated(
  pool: Pool,
  { subscription, description, waitMs }: { subscription: string; description: string; waitMs: number },
): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (performance.now() < endMs) {
    const { rows } = await pool.query<{ left: number; tables: number }>(
      `select count(*) filter (where srsubstate not in ('r', 's'))::int as left, count(*)::int as tables
       from pg_subscription_rel r join pg_subscription s on s.oid = r.srsubid
       where s.subname = $1`,
      [subscription],
    );
    if (rows[0]!.left === 0 && rows[0]!.tables > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new DatabaseError(
    `the replica of the shared tables on ${description} was not complete after ${Math.round(waitMs / 1000)} s: look at pg_subscription_rel and the server's log there`,
  );
}

async function inOne(pool: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await work(client);
    await client.query("commit");
    client.release();
  } catch (error) {
    client.release(true);
    throw error;
  }
}

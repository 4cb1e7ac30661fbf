/**
 * Slices on two servers that hold what one held before: rows go to the slice that owns their host's bucket, by the hash ranges
 * that slices are known by. What was asked of the one can be asked of all of them.
 */
import type { Pool, PoolClient } from "pg";
import { BucketOwners, type Buckets, bucketCount, hashesOf, type Slices } from "#coordinator/database/slices";
import type { Database } from "#db/server-database";
import { createReplica, createSliceSchema, publishShared } from "#db/slice-schema";
import { sliceTables } from "#db/table-sets";
import { SliceServers } from "./slice-servers.ts";

export interface SpreadSlices extends Slices {
  /** Tests say which server does not answer. */
  down: number[];
}

/** Slices of the same size; the even ones on the first server, the odd ones on the second. */
export class SpreadServers {
  readonly servers: SliceServers;
  readonly shared: Database;
  readonly databases: readonly Database[];
  readonly slices: SpreadSlices;
  readonly #ranges: readonly Buckets[];

  private constructor(servers: SliceServers, databases: readonly Database[]) {
    this.servers = servers;
    this.shared = servers.shared;
    this.databases = databases;
    this.#ranges = databases.map((_, index) => ({
      first: Math.floor((bucketCount * index) / databases.length),
      end: Math.floor((bucketCount * (index + 1)) / databases.length),
    }));
    const owners = new BucketOwners(this.#ranges.map((range, slice) => ({ ...range, slice })));
    const open = databases.map(({ pool }, number) => ({ number, pool }));
    this.slices = {
      shared: this.shared.pool,
      open,
      down: [],
      ofHost: (hostHash) => open[owners.ofHost(hostHash)]!,
      ofNumber: (number) => open[Number(BigInt(number) >> 40n)] ?? open[0]!,
    };
  }

  static async begin(count: number): Promise<SpreadServers> {
    const servers = await SliceServers.begin();
    const sharedSchema = servers.shared.schema;
    const replica = await servers.open(1, { schema: sharedSchema });
    await publishShared(servers.shared);
    await createReplica(replica, servers.shared, {
      sharedUrl: servers.url(0),
      subscription: "nearcrawl_spread",
    });
    const databases = [servers.shared];
    for (let number = 1; number < count; number++) {
      const slice = await servers.open(number % 2 === 0 ? 0 : 1, { schema: `web_${number}`, sharedSchema });
      await createSliceSchema(slice, number);
      databases.push(slice);
    }
    return new SpreadServers(servers, databases);
  }

  async close(): Promise<void> {
    await this.servers.close();
  }

  /** Every row of slice 0 to where its host belongs; waits until the second server has the shared tables as they are. */
  async spread(): Promise<void> {
    for (const [number, database] of this.databases.entries())
      if (number > 0)
        for (const table of sliceTables)
          await copyRows(this.shared.pool, database.pool, { table, buckets: this.#ranges[number]! });
    await withoutTriggers(this.shared.pool, async (client) => {
      for (const table of sliceTables.toReversed())
        if ((await columnsOf(client, table)).some(({ isHost }) => isHost))
          await client.query(`delete from ${table} where host_hash > $1`, [hashesOf(this.#ranges[0]!)[1]]);
    });
    for (const { pool } of this.databases) await pool.query("analyze");
    await this.followed();
  }

  async followed(): Promise<void> {
    const { rows } = await this.shared.pool.query<{ at: string }>("select pg_current_wal_lsn()::text as at");
    const behind = async () =>
      (
        await this.shared.pool.query(
          "select from pg_stat_replication where coalesce(replay_lsn, '0/0') < $1::pg_lsn",
          [rows[0]!.at],
        )
      ).rowCount !== 0;
    while (await behind()) await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Of those that a host has; what pages state is known by number in each slice. */
const kept = new Set(["preference_set"]);

async function copyRows(
  from: Pool,
  to: Pool,
  { table, buckets }: { readonly table: string; readonly buckets: Buckets },
): Promise<void> {
  await withoutTriggers(to, async (client) => {
    const columns = await columnsOf(client, table);
    const ofHost = columns.some(({ isHost }) => isHost);
    if (!ofHost && !kept.has(table)) return;
    const names = columns.map(({ name }) => name).join(", ");
    const { rows } = await from.query<{ row: string }>(
      `select row_to_json(t)::text as row from ${table} t ${ofHost ? "where host_hash between $1 and $2" : "where $1::bigint < $2::bigint"}`,
      [...hashesOf(buckets)],
    );
    if (rows.length === 0) return;
    await client.query(
      `insert into ${table} (${names}) overriding system value
       select ${names} from unnest($1::json[]) as given (row)
       cross join lateral json_populate_record(null::${table}, given.row)`,
      [rows.map(({ row }) => row)],
    );
  });
}

async function columnsOf(
  client: PoolClient,
  table: string,
): Promise<{ readonly name: string; readonly isHost: boolean }[]> {
  const { rows } = await client.query<{ name: string; isHost: boolean }>(
    `select attname::text as name, attname = 'host_hash' and $1 <> 'search_upkeep' as "isHost"
     from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [table],
  );
  return rows;
}

async function withoutTriggers(pool: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("set session_replication_role = replica");
    await work(client);
  } finally {
    client.release(true);
  }
}

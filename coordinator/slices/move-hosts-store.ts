/**
 * Hosts move from one slice to another, some buckets at a time, while the crawl goes on. Each stage ends with one transaction on
 * one server, and whoever finds a move half-way goes on from its stage, so that a mover may be killed at any moment:
 *
 *   planned
 *   letting-go     their hosts get no new lease, and those that they have run out; then the slice gives them up
 *   copying        their rows are written to the other slice, in one transaction, which holds them from then on
 *   handing-over   the catalogue names their new owner
 *   clearing       they may be leased there; the old slice deletes its rows
 *
 * At every moment the catalogue has one owner for each bucket, and one slice at most holds it. What results do to hosts while no
 * slice holds them waits in outboxes (frontier/link-outbox-store).
 */
import type { PoolClient } from "pg";
import { copyRows, makeRanges, tablesOf } from "#db/copy-database";
import { type Buckets, hashesOf, type OpenSlice } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";
import { leaseOfMove } from "../frontier/lease-end-writes.ts";
import { takeSlice } from "../frontier/slice-hold-store.ts";

/**
 * Tables whose rows go with their hosts, each after those that it refers to. What is not here stays: the changes that the slice
 * has told (they keep their numbers), its closed leases, and what is made anew where it is missing.
 */
export const movedTables = [
  ...["frontier_host", "frontier_url", "held_urls", "named_sitemap"],
  ...["page", "text_band", "page_fetch", "out_link", "page_links", "url_rank"],
  "recrawl_host",
  ...["double_check", "check_outcome", "host_disagreement", "site", "foreign_url"],
] as const;

const inBuckets = (buckets: Buckets, column = "host_hash") => {
  const [first, last] = hashesOf(buckets);
  // In quotes: the smallest of all is no number and its sign.
  return `${column} between '${first}'::bigint and '${last}'::bigint`;
};

/** Hosts whose lease is open still; 0: the slice does not hold the buckets any more. */
export async function letGo({ pool }: OpenSlice, buckets: Buckets): Promise<number> {
  const where = inBuckets(buckets);
  await pool.query(`update frontier_host set lease_id = ${leaseOfMove} where ${where} and lease_id is null`);
  const leased = await openLeases(pool, where);
  if (leased > 0) return leased;
  return await inTransaction(pool, async (client) => {
    await takeSlice(client);
    // What was admitted or given back meanwhile.
    await client.query(
      `update frontier_host set lease_id = ${leaseOfMove} where ${where} and lease_id is null`,
    );
    const left = await openLeases(client, where);
    if (left > 0) return left;
    await client.query("update slice_self set held = held - int4multirange(int4range($1, $2))", [
      buckets.first,
      buckets.end,
    ]);
    return 0;
  });
}

async function openLeases(client: Pick<PoolClient, "query">, where: string): Promise<number> {
  const { rows } = await client.query<{ leases: number }>(
    `select (select count(*) from lease where ${where} and closed_at is null)::int
       + (select count(*) from frontier_host where ${where} and lease_id > 0)::int as leases`,
  );
  return rows[0]!.leases;
}

/** Their rows, in one transaction at either end; returns the number of hosts, null: they were copied before. */
export async function copyHosts(from: OpenSlice, to: OpenSlice, buckets: Buckets): Promise<number | null> {
  const [reader, writer] = [await from.pool.connect(), await to.pool.connect()];
  let isDone = false;
  try {
    await reader.query("begin isolation level repeatable read read only");
    await writer.query("begin");
    await takeSlice(writer);
    const { rows } = await writer.query<{ there: boolean }>(
      "select held @> int4range($1, $2) as there from slice_self",
      [buckets.first, buckets.end],
    );
    if (rows[0]!.there) {
      isDone = true;
      return null;
    }
    const hosts = await copyTables(reader, writer, buckets);
    await writer.query("update slice_self set held = held + int4multirange(int4range($1, $2))", [
      buckets.first,
      buckets.end,
    ]);
    await writer.query("commit");
    isDone = true;
    return hosts;
  } finally {
    await reader.query("rollback").catch(() => {});
    if (!isDone) await writer.query("rollback").catch(() => {});
    else await writer.query("rollback");
    reader.release(!isDone);
    writer.release(!isDone);
  }
}

async function copyTables(reader: PoolClient, writer: PoolClient, buckets: Buckets): Promise<number> {
  const where = inBuckets(buckets);
  await makeRanges(reader, writer);
  const columns = new Map((await tablesOf(reader)).map((table) => [table.name, table.columns]));
  let hosts = 0;
  for (const name of movedTables) {
    const rows = await copyRows({ name, columns: columns.get(name)!, condition: where }, reader, writer);
    if (name === "frontier_host") hosts = rows;
  }
  await copyPreferences(reader, writer, where);
  // By claims that the slice they come from may not have gone through them for.
  await writer.query("update claims_settling set settled_claims = '' where settled_claims <> '[]'");
  return hosts;
}

/** Lists of preferences have numbers of their own in each slice. */
async function copyPreferences(reader: PoolClient, writer: PoolClient, where: string): Promise<void> {
  const { rows } = await reader.query<{ set_id: number; digest: Buffer; set: unknown }>(
    `select set_id, digest, to_jsonb(s) as set
     from preference_set s
     where set_id in (select preference_set from page where ${where} and preference_set is not null)`,
  );
  if (rows.length === 0) return;
  await writer.query(
    `insert into preference_set (digest, stated, answers, used_at)
     select given.* from unnest($1::bytea[], $2::jsonb[], $3::jsonb[], $4::timestamptz[]) as given
     on conflict (digest) do nothing`,
    [
      rows.map(({ digest }) => digest),
      rows.map(({ set }) => JSON.stringify((set as { stated: unknown }).stated)),
      rows.map(({ set }) => JSON.stringify((set as { answers: unknown }).answers)),
      rows.map(({ set }) => (set as { used_at: string }).used_at),
    ],
  );
  await writer.query(
    `update page p
     set preference_set = s.set_id
     from unnest($1::int[], $2::bytea[]) as given (old_id, digest)
     join preference_set s using (digest)
     where p.preference_set = given.old_id and ${where.replace("host_hash", "p.host_hash")}`,
    [rows.map(({ set_id }) => set_id), rows.map(({ digest }) => digest)],
  );
}

/** They may be leased where they are now; what they are covered by since they were copied holds for them. */
export async function welcomeMoved({ pool }: OpenSlice, buckets: Buckets): Promise<void> {
  await pool.query(
    `update frontier_host set lease_id = null where ${inBuckets(buckets)} and lease_id = ${leaseOfMove}`,
  );
}

/** Of so many hosts, buckets are cleared one by one, since much at once would hold up others. */
const manyHosts = 2000;

/** What is left of them; throws where the slice holds the buckets. `hosts`: about how many there were. */
export async function clearHosts({ pool }: OpenSlice, { first, end }: Buckets, hosts: number): Promise<void> {
  const step = hosts > manyHosts ? 1 : end - first;
  for (let bucket = first; bucket < end; bucket += step)
    await inTransaction(pool, async (client) => {
      const piece = { first: bucket, end: bucket + step };
      const slice = await takeSlice(client);
      const { rows } = await client.query<{ holds: boolean }>(
        "select held && int4range($1, $2) as holds from slice_self",
        [piece.first, piece.end],
      );
      if (rows[0]!.holds)
        throw new Error(
          `slice ${slice.slice} holds buckets from ${piece.first} to ${piece.end - 1}, which are to be cleared`,
        );
      for (const name of movedTables.toReversed())
        await client.query(`delete from ${name} where ${inBuckets(piece)}`);
    });
}

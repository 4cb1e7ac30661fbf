/**
 * What a new epoch of the database (coordinator/journal) changes in slices beside the shared tables: their numbers of changes and
 * leases go on behind all that they may have given, and open leases return. A server that did not go back loses nothing by it.
 * Each slice says which epoch its numbers are of, so that one that was away is brought along when it answers again.
 */
import type { Pool } from "pg";
import { asCrawlerId } from "#core/ids";
import { numbersPerSlice } from "#db/slice-numbers";
import { apartOf, type OpenSlice, type Slices } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";
import { returnLeasesOf } from "../frontier/lease-end-writes.ts";
import { currentEpoch } from "../journal/epoch-store.ts";

/** More changes a second than any slice gives. */
const mostPerSecond = 10_000;

/** Of a slice that has no change to say how old its backup is. */
const longestSeconds = 30 * 86_400;

/** Where little was lost, as in a failover. */
const leastSkipped = 2n ** 24n;

/** Slices that answer; gives the numbers of those whose numbers jumped. */
export async function bringSlicesToEpoch(slices: Slices, now: Date): Promise<number[]> {
  const apart = apartOf(slices).filter(({ number }) => !slices.down.includes(number));
  if (apart.length === 0) return [];
  const { epoch } = await currentEpoch(slices.shared);
  const brought = await Promise.all(
    apart.map(async (slice) => ({ slice, isNew: await bringToEpoch(slice, epoch, now) })),
  );
  const changed = brought.filter(({ isNew }) => isNew).map(({ slice }) => slice);
  for (const { pool } of changed) await returnAllLeases({ pool, turns: slices.shared }, now);
  return changed.map(({ number }) => number);
}

/** One that went back alone, by an operator's word. */
export async function skipNumbersOf(slice: OpenSlice, shared: Pool, now: Date): Promise<void> {
  await skipNumbers(slice, null, now);
  await returnAllLeases({ pool: slice.pool, turns: shared }, now);
}

async function bringToEpoch(slice: OpenSlice, epoch: number, now: Date): Promise<boolean> {
  const { rows } = await slice.pool.query<{ epoch: number }>("select epoch from change_feed");
  return rows[0]!.epoch < epoch && (await skipNumbers(slice, epoch, now));
}

/** False: somebody has by now. Null as epoch: it stays the one that it is. */
async function skipNumbers({ number, pool }: OpenSlice, epoch: number | null, now: Date): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ last: string; epoch: number }>(
      "select last_number as last, epoch from change_feed for update",
    );
    const feed = rows[0]!;
    if (epoch !== null && feed.epoch >= epoch) return false;
    const { rows: since } = await client.query<{ seconds: string }>(
      `select coalesce(least(greatest(extract(epoch from $1 - max(noted_at)), 0), $2), $2)::bigint as seconds
       from page_change`,
      [now, longestSeconds],
    );
    const wanted = BigInt(since[0]!.seconds) * BigInt(mostPerSecond);
    const skipped = (last: string): bigint => {
      // However often it goes back: some numbers are left.
      const left = (BigInt(number + 1) * numbersPerSlice - BigInt(last)) / 8n;
      const most = wanted > leastSkipped ? wanted : leastSkipped;
      return BigInt(last) + (most < left ? most : left);
    };
    const to = skipped(feed.last);
    await client.query(
      `update change_feed
       set last_number = $1, epoch = coalesce($2, epoch),
           jumps = jumps || jsonb_build_object('from', last_number, 'to', $1::bigint, 'at', $3::timestamptz)`,
      [to, epoch, now],
    );
    const { rows: leases } = await client.query<{ next: string }>(
      "select nextval(pg_get_serial_sequence('lease', 'lease_id')) as next",
    );
    await client.query("select setval(pg_get_serial_sequence('lease', 'lease_id'), $1)", [
      skipped(leases[0]!.next),
    ]);
    return true;
  });
}

/** Those who had them may have delivered what the slice has forgotten. */
async function returnAllLeases(
  pools: { readonly pool: Pool; readonly turns: Pool },
  now: Date,
): Promise<void> {
  const { rows } = await pools.pool.query<{ crawler_id: number }>(
    "select distinct crawler_id from lease where closed_at is null",
  );
  for (const row of rows)
    await returnLeasesOf(pools, { crawlerId: asCrawlerId(row.crawler_id), held: [] }, now);
}

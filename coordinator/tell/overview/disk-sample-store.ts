/** Table disk_sample: what the database takes and what is free where it lies, every ten minutes: how fast the disk fills. */
import { statfs } from "node:fs/promises";
import type { Pool } from "pg";
import type { DiskFacts } from "./alert-facts.ts";

export interface DiskSample {
  readonly databaseBytes: number;
  /** Null: the disk is another machine's, or nobody said how much there is. */
  readonly freeBytes: number | null;
}

/** `roomBytes`: what a server of one's own has for the database; null: only an embedded one's disk is seen. */
export async function sampleDisk(
  pool: Pool,
  { now, roomBytes }: { readonly now: Date; readonly roomBytes: number | null },
): Promise<DiskSample> {
  const { rows } = await pool.query<{ bytes: number; folder: string | null; is_local: boolean }>(
    `select pg_database_size(current_database())::float8 as bytes,
       (select setting from pg_settings where name = 'data_directory') as folder, inet_server_addr() is null as is_local`,
  );
  const { bytes: databaseBytes, folder, is_local: isLocal } = rows[0]!;
  const freeBytes =
    roomBytes !== null
      ? Math.max(0, Math.round(roomBytes) - databaseBytes)
      : isLocal && folder
        ? await freeBytesOf(folder)
        : null;
  await pool.query(
    `with forgotten as (delete from disk_sample where sampled_at < $1::timestamptz - interval '14 days')
     insert into disk_sample (sampled_at, database_bytes, free_bytes)
     values ($1, $2, $3)
     on conflict (sampled_at) do nothing`,
    [now, databaseBytes, freeBytes],
  );
  return { databaseBytes, freeBytes };
}

async function freeBytesOf(folder: string): Promise<number | null> {
  return await statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => null,
  );
}

/** A pace is told from this much of the last day, or more: less is a checkpoint, or one import. */
const leastHours = 3;

/** A sample counts for so long: two that failed do not matter. */
const freshMinutes = 40;

/** Null: nothing is known of what is free. */
export async function diskFacts(pool: Pool, now: Date): Promise<DiskFacts | null> {
  const { rows } = await pool.query<{ free: number; before: number | null; hours: number | null }>(
    `select latest.free_bytes::float8 as free, before.free_bytes::float8 as before,
       extract(epoch from latest.sampled_at - before.sampled_at)::float8 / 3600 as hours
     from (
       select sampled_at, free_bytes
       from disk_sample
       where sampled_at between $1::timestamptz - interval '${freshMinutes} minutes' and $1 and free_bytes is not null
       order by sampled_at desc
       limit 1
     ) latest
     left join lateral (
       select sampled_at, free_bytes
       from disk_sample
       where sampled_at >= latest.sampled_at - interval '1 day'
         and sampled_at <= latest.sampled_at - interval '${leastHours} hours'
         and free_bytes is not null
       order by sampled_at
       limit 1
     ) before on true`,
    [now],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { free, before, hours } = row;
  const lostBytesPerDay = before === null || hours === null ? null : ((before - free) / hours) * 24;
  return { freeBytes: free, lostBytesPerDay };
}

/**
 * Table result_seal: what crawlers with an identity signed for the results that were taken from them. Some 200
 * bytes a seal, so 6 to 200 a result; removed after `sealDays`, but for the latest of each spool.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import type { Seal } from "#protocol/result";

/** How long seals are kept. */
export const sealDays = 7;
const dayMs = 86_400_000;

/** In the transaction that stores the results. A seal that comes again is the same one. */
export async function recordSeals(
  client: PoolClient,
  batch: {
    readonly crawlerId: CrawlerId;
    readonly spoolId: string;
    readonly seals?: readonly Seal[];
    readonly now: Date;
  },
): Promise<void> {
  const { crawlerId, spoolId, seals = [], now } = batch;
  if (seals.length === 0) return;
  await client.query(
    `insert into result_seal (crawler_id, spool_id, first_sequence, last_sequence, digest, signature, sealed_at)
     select $1, $2, first, last, decode(digest, 'hex'), decode(signature, 'hex'), $7
     from unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[]) as given (first, last, digest, signature)
     on conflict do nothing`,
    [
      crawlerId,
      spoolId,
      seals.map(({ first }) => first),
      seals.map(({ last }) => last),
      seals.map(({ digest }) => digest),
      seals.map(({ signature }) => Buffer.from(signature, "base64url").toString("hex")),
      now,
    ],
  );
}

export async function forgetSeals(pool: Pool, now: Date): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from result_seal old
     where old.sealed_at < $1
       and exists (
         select from result_seal newer
         where newer.crawler_id = old.crawler_id
           and newer.spool_id = old.spool_id
           and newer.last_sequence > old.last_sequence
       )`,
    [new Date(now.getTime() - sealDays * dayMs)],
  );
  return rowCount ?? 0;
}

/**
 * A crawler becomes the other host's: its row gets that host's public key, ticket and keys, and keeps everything else
 * (number, delegations, leases, spools, trust, what its operator grants). The key scopes are the crawler's own. The
 * other crawler's row has no key any more, and hands its subnets over as one that was drained.
 */
import type { PoolClient } from "pg";
import type { CrawlerMoveRecord } from "./move-ports.ts";

/** Both rows are locked. */
export async function bindToHost(
  client: PoolClient,
  { crawlerId, otherCrawlerId }: CrawlerMoveRecord,
  now: Date,
): Promise<void> {
  const both = [crawlerId, otherCrawlerId];
  await client.query(
    `update crawler_key k
     set scopes = coalesce((
       select own.scopes
       from crawler_key own
       where own.crawler_id = $1 and own.kept_at is not null and own.revoked_at is null
       order by own.key_id desc
       limit 1
     ), k.scopes)
     where k.crawler_id = $2 and k.revoked_at is null`,
    both,
  );
  await client.query("update crawler_key set revoked_at = $2 where crawler_id = $1 and revoked_at is null", [
    crawlerId,
    now,
  ]);
  await client.query(
    "update crawler_key set crawler_id = $1 where crawler_id = $2 and revoked_at is null",
    both,
  );
  const { rows } = await client.query<Folder>(
    "select public_key, ticket_hash, previous_ticket_hash, arrivals from crawler where crawler_id = $1",
    [otherCrawlerId],
  );
  const folder = rows[0]!;
  // In this order: a public key is one crawler's at a time.
  await client.query(retirement, [otherCrawlerId, now]);
  await client.query(
    `update crawler
     set public_key = $2, ticket_hash = $3, previous_ticket_hash = $4, arrivals = $5,
         rotation_asked_at = null, rotation_grace_hours = null
     where crawler_id = $1`,
    [
      crawlerId,
      folder.public_key,
      folder.ticket_hash,
      folder.previous_ticket_hash,
      JSON.stringify(folder.arrivals),
    ],
  );
}

interface Folder {
  public_key: string;
  ticket_hash: string | null;
  previous_ticket_hash: string | null;
  arrivals: unknown[];
}

const retirement = `
  update crawler c
  set public_key = null, ticket_hash = null, previous_ticket_hash = null, arrivals = '[]',
      rotation_asked_at = null, rotation_grace_hours = null,
      drain_subnets = case when draining_since is null
        then (select count(*) from delegation d where d.crawler_id = c.crawler_id)
        else drain_subnets end,
      draining_since = coalesce(draining_since, $2),
      drain_asked_by = 'operator',
      state = case when state = 'online' then 'draining' else state end
  where crawler_id = $1`;

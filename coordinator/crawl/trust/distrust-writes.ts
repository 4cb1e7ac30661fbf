/** Withdraws or restores trust in a crawler, which affects its subnets and its pages, and notifies coordinators. */
import type { Pool, PoolClient } from "pg";
import { asCrawlerId, type CrawlerId, type HostHash } from "#core/ids";
import { tell } from "#db/schema-channel";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import type { Distrust } from "./evidence.ts";

export async function distrustCrawler(
  pool: Pool,
  distrust: Distrust,
): Promise<{ isNew: boolean; dueAgain: number }> {
  const { crawlerId, words, now, drain } = distrust;
  const { rowCount } = await pool.query(
    `insert into crawler_trust as t (crawler_id, distrusted_at, distrust_words)
     values ($1, $2, $3)
     on conflict (crawler_id) do update
       set distrusted_at = excluded.distrusted_at, distrust_words = excluded.distrust_words
       where t.distrusted_at is null`,
    [crawlerId, now, words],
  );
  const isNew = rowCount === 1;
  if (isNew && drain !== null) {
    await pool.query(
      `update crawler c
       set draining_since = coalesce(draining_since, $2),
           drain_asked_by = coalesce(nullif(drain_asked_by, 'partner'), 'trust'),
           drain_subnets = case when draining_since is null
             then (select count(*) from delegation d where d.crawler_id = c.crawler_id)
             else drain_subnets end,
           state = case when state = 'online' then 'draining' else state end
       where crawler_id = $1`,
      [crawlerId, now],
    );
  }
  const dueAgain = isNew && drain !== null ? await fetchAgain(pool, { crawlerId, ...drain }, now) : 0;
  await tell(pool, "nearcrawl_fleet", [String(crawlerId)]);
  return { isNew, dueAgain };
}

export async function doubtProbes(
  pool: Pool,
  { crawlerId, words, now }: Omit<Distrust, "drain">,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into crawler_trust as t (crawler_id, probes_doubted_at, probes_words)
     values ($1, $2, $3)
     on conflict (crawler_id) do update
       set probes_doubted_at = excluded.probes_doubted_at, probes_words = excluded.probes_words
       where t.probes_doubted_at is null`,
    [crawlerId, now, words],
  );
  if (rowCount === 1) await tell(pool, "nearcrawl_fleet", [String(crawlerId)]);
  return rowCount === 1;
}

/**
 * Restores trust: earlier evidence no longer counts, the crawler is a newcomer again, and draining because of
 * distrust ends. Returns false if no crawler has that name.
 */
export async function restoreTrust(pool: Pool, name: string, now: Date): Promise<boolean> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    `with restored as (
       insert into crawler_trust as t (crawler_id, restored_at)
       select crawler_id, $2 from crawler where name = $1
       on conflict (crawler_id) do update
         set restored_at = excluded.restored_at, pages = 0, watched_until_page = 0, score = 0,
             distrusted_at = null, distrust_words = null, probes_doubted_at = null, probes_words = null
       returning crawler_id
     ), back as (
       update crawler c
       set draining_since = null,
           drain_asked_by = null,
           joining_since = coalesce(joining_since, $2),
           state = case when state = 'draining' then 'online' else state end
       from restored r
       where c.crawler_id = r.crawler_id and c.drain_asked_by = 'trust'
     )
     select crawler_id from restored`,
    [name, now],
  );
  const row = rows[0];
  if (row !== undefined) await tell(pool, "nearcrawl_fleet", [String(row.crawler_id)]);
  return row !== undefined;
}

const hostsPerTurn = 200;

/** Fetches pages again that came under leases from before the distrust. Leases go on, so that no host sees two crawlers. */
export async function fetchLeftovers(pool: Pool, now: Date, mostPages: number): Promise<number> {
  const { rows } = await pool.query<{ crawler_id: number; distrusted_at: Date }>(
    `select t.crawler_id, t.distrusted_at
     from crawler_trust t
     join crawler c using (crawler_id)
     where t.distrusted_at is not null and c.drain_asked_by = 'trust' and c.last_seen_at >= t.distrusted_at
       and t.distrusted_at >= $1::timestamptz - interval '1 day'`,
    [now],
  );
  let dueAgain = 0;
  for (const { crawler_id, distrusted_at } of rows) {
    const of = { crawlerId: asCrawlerId(crawler_id), pagesSince: distrusted_at, mostPages };
    dueAgain += await fetchAgain(pool, of, now);
  }
  return dueAgain;
}

interface AgainPages {
  readonly crawlerId: CrawlerId;
  readonly pagesSince: Date;
  readonly mostPages: number;
}

/** Removes validators, since the index's copies are not believed. Pages that others have fetched since then are left alone. */
async function fetchAgain(pool: Pool, of: AgainPages, now: Date): Promise<number> {
  const { rows } = await pool.query<{ host_hash: HostHash; url_hash: string }>(
    `select f.host_hash, f.url_hash::text as url_hash
     from page_fetch f
     join frontier_url u
       on u.host_hash = f.host_hash and u.url_hash = f.url_hash and u.last_fetched_at = f.fetched_at
     where f.crawler_id = $1 and f.fetched_at >= $2
       and u.state in ('due', 'gone') and (u.next_fetch_at > $4 or u.state = 'gone')
     order by f.fetched_at desc
     limit $3`,
    [of.crawlerId, of.pagesSince, of.mostPages, now],
  );
  const hosts = [...new Set(rows.map((row) => row.host_hash))];
  let dueAgain = 0;
  for (let start = 0; start < hosts.length; start += hostsPerTurn) {
    const some = new Set(hosts.slice(start, start + hostsPerTurn));
    const pages = rows.filter((row) => some.has(row.host_hash));
    dueAgain += await inTransaction(pool, async (client) => await makeDue(client, [...some], pages, now));
  }
  return dueAgain;
}

async function makeDue(
  client: PoolClient,
  hosts: readonly HostHash[],
  pages: readonly { readonly host_hash: HostHash; readonly url_hash: string }[],
  now: Date,
): Promise<number> {
  await lockHosts(client, hosts);
  const { rowCount } = await client.query(
    `update frontier_url u
     set next_fetch_at = $3,
         state = case when u.state = 'gone' then 'due' else u.state end,
         etag = null, last_modified = null, digest = null
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where u.host_hash = given.host_hash and u.url_hash = given.url_hash and u.state in ('due', 'gone')`,
    [...columnsOf(pages, ["host_hash", "url_hash"]), now],
  );
  await settleHosts(client, hosts);
  return rowCount ?? 0;
}

/** Table crawler_key: which crawler a key opens the door for, and a crawler that is given its key by an operator. */
import type { Pool } from "pg";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import type { KeyScope } from "#protocol/identity";
import type { KeyHolder } from "./identity.ts";

/** The crawler of that name whose key hashes so, as long as the key is good; null: there is none. */
export async function crawlerOfKey(pool: Pool, name: string, keyHash: string): Promise<KeyHolder | null> {
  const { rows } = await pool.query<HolderRow>(
    `select c.crawler_id, c.revoked_at is not null as revoked, c.public_key, k.key_id, k.scopes
     from crawler c
     join crawler_key k using (crawler_id)
     where c.name = $1
       and k.key_hash = $2
       and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > now())`,
    [name, keyHash],
  );
  const [row] = rows;
  if (!row) return null;
  return {
    crawlerId: asCrawlerId(row.crawler_id),
    revoked: row.revoked,
    keyId: row.key_id,
    scopes: row.scopes,
    publicKey: row.public_key,
  };
}

/** Of a row of table crawler: whether its newest key is for measurements alone. */
export const measuresOnly = `coalesce((
  select not 'crawl' = any(k.scopes)
  from crawler_key k
  where k.crawler_id = crawler.crawler_id and k.revoked_at is null
  order by k.key_id desc
  limit 1
), false)`;

interface HolderRow {
  crawler_id: number;
  revoked: boolean;
  public_key: string | null;
  key_id: number;
  scopes: KeyScope[];
}

/**
 * A crawler of that name with this key and no other. One that is there keeps its number and loses its identity:
 * who holds the new key may come without one.
 */
export async function registerCrawler(
  pool: Pool,
  crawler: { name: string; keyHash: string; pagesPerDay?: number; bytesPerDay?: number },
): Promise<CrawlerId> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    `with registered as (
       insert into crawler as c
         (name, pages_per_day, bytes_per_day, granted_pages_per_day, granted_bytes_per_day)
       values ($1, coalesce($3, 100000), coalesce($4, 10000000000), $3, $4)
       on conflict (name) do update
         set revoked_at = null, public_key = null, ticket_hash = null, previous_ticket_hash = null,
             arrivals = '[]', rotation_asked_at = null,
             pages_per_day = coalesce($3, c.pages_per_day),
             bytes_per_day = coalesce($4, c.bytes_per_day),
             granted_pages_per_day = coalesce($3, c.granted_pages_per_day),
             granted_bytes_per_day = coalesce($4, c.granted_bytes_per_day)
       returning crawler_id
     ),
     others as (
       update crawler_key k
       set revoked_at = now()
       from registered
       where k.crawler_id = registered.crawler_id and k.key_hash <> $2 and k.revoked_at is null
     )
     insert into crawler_key (crawler_id, key_hash, kept_at)
     select crawler_id, $2, now() from registered
     on conflict (crawler_id, key_hash) do update
       set revoked_at = null, expires_at = null, created_at = excluded.created_at, kept_at = excluded.kept_at
     returning crawler_id`,
    [crawler.name, crawler.keyHash, crawler.pagesPerDay ?? null, crawler.bytesPerDay ?? null],
  );
  return asCrawlerId(rows[0]!.crawler_id);
}

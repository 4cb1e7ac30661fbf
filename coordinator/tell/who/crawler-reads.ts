/** The fleet as `who` tells it: each crawler's state and place. */

import type { Pool } from "pg";
import { toldRows } from "../../database/cached-read.ts";
import type { CrawlerReport } from "./who-api.ts";

const fleetLimit = 10_000;
/** RTTs between crawlers, read at once. */
const rttLimit = 1_000_000;

const crawlerSelect = `
  select crawler_id as "crawlerId", name, state, place, country, latitude, longitude, host(address) as address,
    pages_per_day as "pagesPerDay", concurrent_hosts as "concurrentHosts", probe_methods as "probeMethods",
    speaks_ipv6 as "speaksIpv6", software_version as "softwareVersion", connected_at as "connectedAt",
    last_seen_at as "lastSeenAt", offline_reason as "offlineReason",
    array(
      select word #>> '{}'
      from jsonb_array_elements(case jsonb_typeof(heartbeat -> 'holdingBack')
        when 'array' then heartbeat -> 'holdingBack' else '[]' end) word
      where jsonb_typeof(word) = 'string'
      limit 10
    ) as "holdingBack",
    revoked_at is not null as revoked
  from crawler`;

export async function crawlerNamed(pool: Pool, name: string): Promise<CrawlerReport | null> {
  return (await toldRows<CrawlerReport>(pool, `${crawlerSelect} where name = $1`, [name]))[0] ?? null;
}

/** Every crawler, by name. */
export async function allCrawlers(pool: Pool): Promise<CrawlerReport[]> {
  return await toldRows(pool, `${crawlerSelect} order by name limit ${fleetLimit}`);
}

/** Who was invited comes when the invitation is redeemed. */
export async function membersAt(pool: Pool, at: Date): Promise<ReadonlySet<number>> {
  const { rows } = await pool.query<{ crawlerId: number }>(
    `select crawler_id as "crawlerId"
     from crawler c
     where greatest(created_at, (select min(redeemed_at) from invitation i where i.name = c.name)) <= $1
       and (revoked_at is null or revoked_at > $1)`,
    [at],
  );
  return new Set(rows.map(({ crawlerId }) => crawlerId));
}

/** Measured RTTs between crawlers, both directions as they were measured. */
export async function crawlerRtts(pool: Pool): Promise<{ from: number; to: number; rttMs: number }[]> {
  const { rows } = await pool.query<{ from: number; to: number; rttMs: number }>(
    `select from_crawler_id as "from", to_crawler_id as "to", rtt_ms as "rttMs"
     from crawler_rtt
     limit ${rttLimit}`,
  );
  return rows;
}

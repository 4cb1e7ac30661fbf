/** The fleet as pages show it: each crawler's state, place and share, and one crawler in full. */

import type { Pool } from "pg";
import { defaultMostBytes, roundedMs, sampleTables, toldRows } from "../database/cached-read.ts";
import type { CrawlerDetail } from "../fleet/crawler-api.ts";
import type { FleetLine } from "../fleet/fleet-api.ts";
import { subnetsOfCrawler } from "./subnet-reads.ts";
import type { CrawlerReport } from "./who-api.ts";

const subnetsShown = 50;
const fleetLimit = 10_000;
/** RTTs between crawlers, read at once. */
const rttLimit = 1_000_000;
/** Of one crawler to others, the nearest. */
const peersShown = 1000;
/** Latest fetches that the outcomes of one crawler are counted over. */
const outcomeWindow = 5000;

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

export type Share = Pick<
  FleetLine,
  "subnets" | "pages" | "bodyBytes" | "shippedBytes" | "meanRttMs" | "openLeases"
>;

/** What each crawler owns and has fetched: told from a part of large tables (table-sample). Callers keep it a while. */
export async function fleetShares(pool: Pool, mostBytes = defaultMostBytes): Promise<Map<number, Share>> {
  const { delegation, page } = await sampleTables(pool, ["delegation", "page"], mostBytes);
  const { rows } = await pool.query<Share & { crawlerId: number }>(
    `select crawler_id as "crawlerId", coalesce(subnets, 0)::int as subnets, ${roundedMs("mean_rtt_ms")} as "meanRttMs",
       coalesce(pages, 0)::int as pages, coalesce(body_bytes, 0)::float8 as "bodyBytes",
       coalesce(shipped_bytes, 0)::float8 as "shippedBytes", coalesce(open_leases, 0)::int as "openLeases"
     from crawler
     left join (
       select crawler_id, round(count(*) * ${delegation.factor}) as subnets, avg(rtt_ms) as mean_rtt_ms
       from delegation ${delegation.clause}
       group by crawler_id
     ) owned using (crawler_id)
     left join (
       select crawler_id, round(count(*) * ${page.factor}) as pages,
         round(sum(body_bytes) * ${page.factor}) as body_bytes,
         round(sum(shipped_bytes) * ${page.factor}) as shipped_bytes
       from page ${page.clause}
       group by crawler_id
     ) fetched using (crawler_id)
     left join (
       select crawler_id, count(*) as open_leases from lease where closed_at is null group by crawler_id
     ) leased using (crawler_id)`,
  );
  return new Map(rows.map(({ crawlerId, ...share }) => [crawlerId, share]));
}

/** Everything beside the crawler itself that its page shows. */
export async function crawlerDetail(pool: Pool, crawlerId: number): Promise<Omit<CrawlerDetail, "crawler">> {
  const [subnets, peers, outcomes] = await Promise.all([
    subnetsOfCrawler(pool, crawlerId, subnetsShown),
    toldRows<CrawlerDetail["peers"][number]>(
      pool,
      `select c.name, ${roundedMs("r.rtt_ms")} as "rttMs", r.method
       from crawler_rtt r
       join crawler c on c.crawler_id = r.to_crawler_id
       where r.from_crawler_id = $1
       order by r.rtt_ms
       limit ${peersShown}`,
      [crawlerId],
    ),
    crawlerOutcomes(pool, crawlerId),
  ]);
  return { subnets, peers, outcomes };
}

/** Over the latest fetches of the whole fleet, the most frequent first. */
export async function crawlerOutcomes(pool: Pool, crawlerId: number): Promise<CrawlerDetail["outcomes"]> {
  const { rows } = await pool.query<CrawlerDetail["outcomes"][number]>(
    `select outcome, count(*)::int as fetches
     from (select crawler_id, outcome from page_fetch order by fetched_at desc limit ${outcomeWindow}) latest
     where crawler_id = $1
     group by outcome
     order by fetches desc`,
    [crawlerId],
  );
  return rows;
}

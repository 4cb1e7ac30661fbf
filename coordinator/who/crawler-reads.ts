/** The fleet as pages show it: each crawler's state, place and share, and one crawler in full. */

import type { Pool } from "pg";
import { defaultMostBytes, isoOrNull, roundMs, sampleTables } from "../database/cached-read.ts";
import type { CrawlerDetail, FleetLine } from "../overview/overview.ts";
import { subnetsOfCrawler } from "../subnets/subnet-reads.ts";
import type { CrawlerReport } from "./who-api.ts";

const subnetsShown = 50;
const fleetLimit = 10_000;
/** RTTs between crawlers, read at once. */
const rttLimit = 1_000_000;
/** Of one crawler to others, the nearest. */
const peersShown = 1000;
/** Latest fetches that the outcomes of one crawler are counted over. */
const outcomeWindow = 5000;

interface CrawlerRow {
  crawler_id: number;
  name: string;
  state: CrawlerReport["state"];
  place: string | null;
  country: string | null;
  latitude: number | null;
  longitude: number | null;
  address: string | null;
  pages_per_day: number;
  concurrent_hosts: number;
  probe_methods: string[];
  speaks_ipv6: boolean | null;
  software_version: string | null;
  connected_at: Date | null;
  last_seen_at: Date | null;
  offline_reason: string | null;
  revoked: boolean;
  heartbeat: { holdingBack?: unknown };
}

const crawlerSelect = `
  select crawler_id, name, state, place, country, latitude, longitude, host(address) as address,
    pages_per_day, concurrent_hosts, probe_methods, speaks_ipv6, software_version, connected_at, last_seen_at,
    offline_reason, revoked_at is not null as revoked, heartbeat
  from crawler`;

export async function crawlerNamed(pool: Pool, name: string): Promise<CrawlerReport | null> {
  const { rows } = await pool.query<CrawlerRow>(`${crawlerSelect} where name = $1`, [name]);
  return rows[0] ? crawlerReport(rows[0]) : null;
}

/** Every crawler, by name. */
export async function allCrawlers(pool: Pool): Promise<CrawlerReport[]> {
  const { rows } = await pool.query<CrawlerRow>(`${crawlerSelect} order by name limit ${fleetLimit}`);
  return rows.map(crawlerReport);
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
    `select crawler_id as "crawlerId", coalesce(subnets, 0)::int as subnets, mean_rtt_ms::float8 as "meanRttMs",
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
  return new Map(
    rows.map(({ crawlerId, ...share }) => [crawlerId, { ...share, meanRttMs: roundMs(share.meanRttMs) }]),
  );
}

/** Everything beside the crawler itself that its page shows. */
export async function crawlerDetail(pool: Pool, crawlerId: number): Promise<Omit<CrawlerDetail, "crawler">> {
  const [subnets, peers, outcomes] = await Promise.all([
    subnetsOfCrawler(pool, crawlerId, subnetsShown),
    pool.query<{ name: string; rttMs: number; method: string }>(
      `select c.name, r.rtt_ms as "rttMs", r.method
       from crawler_rtt r
       join crawler c on c.crawler_id = r.to_crawler_id
       where r.from_crawler_id = $1
       order by r.rtt_ms
       limit ${peersShown}`,
      [crawlerId],
    ),
    crawlerOutcomes(pool, crawlerId),
  ]);
  return {
    subnets,
    peers: peers.rows.map((row) => ({ ...row, rttMs: roundMs(row.rttMs) ?? 0 })),
    outcomes,
  };
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

function crawlerReport(row: CrawlerRow): CrawlerReport {
  return {
    crawlerId: row.crawler_id,
    name: row.name,
    state: row.state,
    place: row.place,
    country: row.country,
    latitude: row.latitude,
    longitude: row.longitude,
    address: row.address,
    pagesPerDay: row.pages_per_day,
    concurrentHosts: row.concurrent_hosts,
    probeMethods: row.probe_methods,
    speaksIpv6: row.speaks_ipv6,
    softwareVersion: row.software_version,
    connectedAt: isoOrNull(row.connected_at),
    lastSeenAt: isoOrNull(row.last_seen_at),
    offlineReason: row.offline_reason,
    holdingBack: textsOf(row.heartbeat.holdingBack),
    revoked: row.revoked,
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((one): one is string => typeof one === "string").slice(0, 10)
    : [];
}

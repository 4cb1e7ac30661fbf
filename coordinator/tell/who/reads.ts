/** All reads of `who`. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { TextsElsewhere } from "../../crawl/changes/page-text-reads.ts";
import { ownerOf } from "../../crawl/federation/owner-reads.ts";
import { leavingChannel, urlPlace } from "../../crawl/frontier/report-reads.ts";
import { readsOver, toldRows } from "../../database/cached-read.ts";
import { moveCountsOf } from "../../place/delegation/load-store.ts";
import {
  finerOfHost,
  historyOf,
  latestRoundOf,
  partsOf,
  roundById,
} from "../../place/delegation/round-store.ts";
import { publishedOf } from "../../place/subnets/published-reads.ts";
import type { NearMatch } from "../../place/subnets/subnets-api.ts";
import { wishesOf } from "../../run/opt-outs/complaint-store.ts";
import { findHosts } from "../find/find-reads.ts";
import { namesLike, organisationNamed } from "./holder-reads.ts";
import { chainOf, createRollUpReads, neighboursOf, subnetsInside, subnetsOfCrawler } from "./subnet-reads.ts";
import { hostReport, rejectionOf, urlReport, waitingReport } from "./url-reads.ts";
import type { CrawlerReport } from "./who-api.ts";

export type WhoReads = ReturnType<typeof whoReads>;

/** Each read is bounded, and passes untrusted text only as parameters. */
export function whoReads(pool: Pool, nowMs: () => number, elsewhere?: TextsElsewhere) {
  return {
    ...readsOver(pool, { chainOf, publishedOf, neighboursOf, moveCountsOf, subnetsInside, subnetsOfCrawler }),
    ...readsOver(pool, { organisationNamed, namesLike, hostsLike, crawlerNamed, allCrawlers, membersAt }),
    ...readsOver(pool, { crawlerRtts, roundById, latestRoundOf, finerOfHost, fleetSets, partsOf, historyOf }),
    ...readsOver(pool, {
      ownerOf,
      urlPlace,
      hostReport,
      waitingReport,
      rejectionOf,
      leavingChannel,
      wishesOf,
    }),
    urlReport: async (key: UrlKey, now: Date) => await urlReport(pool, key, now, elsewhere),
    rollUp: createRollUpReads(pool, nowMs),
  };
}

/** Returns hosts whose name begins with the text, or none if the search takes too long. */
async function hostsLike(pool: Pool, text: string, limit: number): Promise<NearMatch[]> {
  const hosts = await findHosts(pool, text.toLowerCase(), limit);
  const similarity = (host: string) => Math.min(1, text.length / host.length);
  return (hosts?.rows ?? []).map(({ host }) => {
    return { type: "host", name: host, handle: null, similarity: similarity(host) };
  });
}

const mostCrawlers = 10_000;

/** The fleet's domain sets. If there are none, `crawlers` is empty. */
export interface FleetSets {
  /** The host's language; null if unknown. */
  readonly language: string | null;
  readonly crawlers: readonly {
    readonly crawlerId: number;
    readonly name: string;
    readonly operator: readonly string[];
    readonly partner: readonly string[];
  }[];
}

/** Excludes revoked crawlers. Returns no crawlers if none has domain sets. */
async function fleetSets(pool: Pool, hostHash: HostHash): Promise<FleetSets> {
  const { rows } = await pool.query<FleetSets["crawlers"][number]>(
    `select crawler_id as "crawlerId", name, domain_sets as operator, partner_domain_sets as partner
     from crawler
     where revoked_at is null
       and exists (select from crawler where domain_sets <> '{}' or partner_domain_sets <> '{}')
     order by name
     limit ${mostCrawlers}`,
  );
  const spoken = await pool.query<{ language: string | null }>(
    "select language from frontier_host where host_hash = $1",
    [hostHash],
  );
  return { language: spoken.rows[0]?.language ?? null, crawlers: rows };
}

const fleetLimit = 10_000;
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

export async function allCrawlers(pool: Pool): Promise<CrawlerReport[]> {
  return await toldRows(pool, `${crawlerSelect} order by name limit ${fleetLimit}`);
}

/** Returns the members at that time. An invited crawler joins when it redeems the invitation. */
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

/** Measured RTTs between crawlers, in both directions. */
export async function crawlerRtts(pool: Pool): Promise<{ from: number; to: number; rttMs: number }[]> {
  const { rows } = await pool.query<{ from: number; to: number; rttMs: number }>(
    `select from_crawler_id as "from", to_crawler_id as "to", rtt_ms as "rttMs"
     from crawler_rtt
     limit ${rttLimit}`,
  );
  return rows;
}

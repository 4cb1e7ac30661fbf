/** Every read of `who`. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { ownerOf } from "../../crawl/federation/owner-reads.ts";
import { leavingChannel, urlPlace } from "../../crawl/frontier/report-reads.ts";
import { readsOver } from "../../database/cached-read.ts";
import { finerOfHost, partsOf } from "../../place/delegation/overrides/who-reads.ts";
import { moveCountsOf } from "../../place/delegation/recalibration/ageing-store.ts";
import { historyOf, latestRoundOf, roundById } from "../../place/delegation/round-reads.ts";
import { publishedOf } from "../../place/subnets/published-reads.ts";
import type { NearMatch } from "../../place/subnets/subnets-api.ts";
import { wishesOf } from "../../run/opt-outs/complaint-store.ts";
import { findHosts } from "../find/find-reads.ts";
import { allCrawlers, crawlerNamed, crawlerRtts, membersAt } from "./crawler-reads.ts";
import type { FleetSets } from "./explain-finer.ts";
import { namesLike, organisationNamed } from "./holder-reads.ts";
import { createRollUpReads } from "./roll-up-reads.ts";
import { chainOf, neighboursOf, subnetsInside, subnetsOfCrawler } from "./subnet-reads.ts";
import { hostReport, rejectionOf, urlReport, waitingReport } from "./url-reads.ts";

export type WhoReads = ReturnType<typeof whoReads>;

/** Every one is bounded, and takes untrusted text as parameters only. */
export function whoReads(pool: Pool, nowMs: () => number) {
  return {
    ...readsOver(pool, { chainOf, publishedOf, neighboursOf, moveCountsOf, subnetsInside, subnetsOfCrawler }),
    ...readsOver(pool, { organisationNamed, namesLike, hostsLike, crawlerNamed, allCrawlers, membersAt }),
    ...readsOver(pool, { crawlerRtts, roundById, latestRoundOf, finerOfHost, fleetSets, partsOf, historyOf }),
    ...readsOver(pool, {
      ownerOf,
      urlReport,
      urlPlace,
      hostReport,
      waitingReport,
      rejectionOf,
      leavingChannel,
      wishesOf,
    }),
    rollUp: createRollUpReads(pool, nowMs),
  };
}

/** Hosts whose name, or a part of it between dots, begins so; none where looking for them takes too long. */
async function hostsLike(pool: Pool, text: string, limit: number): Promise<NearMatch[]> {
  const hosts = await findHosts(pool, text.toLowerCase(), limit);
  const similarity = (host: string) => Math.min(1, text.length / host.length);
  return (hosts?.rows ?? []).map(({ host }) => {
    return { type: "host", name: host, handle: null, similarity: similarity(host) };
  });
}

// The fleet's domain sets and the language of a host, for `who`.

const mostCrawlers = 10_000;

/** The fleet's domain sets, with the host's language. Without any sets in the fleet, no crawlers. Those that were shut out are left out. */
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

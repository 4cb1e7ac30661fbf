/** Every read of the pages, the API and `who` and `search`. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { KeptAnswer } from "../database/cached-read.ts";
import { finerOfHost, partsOf } from "../delegation/overrides/who-reads.ts";
import { moveCountsOf } from "../delegation/recalibration/ageing-store.ts";
import { historyOf, latestRoundOf, roundById } from "../delegation/round-reads.ts";
import { ownerOf } from "../federation/owner-reads.ts";
import { createFindReads } from "../find/find-reads.ts";
import { leavingChannel, urlPlace } from "../frontier/report-reads.ts";
import { wishesOf } from "../opt-outs/complaint-store.ts";
import type { OverviewReads } from "../overview/overview.ts";
import {
  crawlTotals,
  createOperationReads,
  readinessReads,
  recentDelegations,
} from "../overview/overview-reads.ts";
import type { ReadinessReads } from "../overview/overview-types.ts";
import type { SearchIndex } from "../search/memory/index-answer.ts";
import type { PageReads } from "../search/page-facts.ts";
import type { SearchReads } from "../search/search-answer.ts";
import { createSearchReads } from "../search/search-reads.ts";
import { namesLike, organisationNamed } from "../subnets/holder-reads.ts";
import { publishedOf } from "../subnets/published-reads.ts";
import { chainOf, neighboursOf, subnetsInside, subnetsOfCrawler } from "../subnets/subnet-reads.ts";
import {
  allCrawlers,
  crawlerDetail,
  crawlerNamed,
  crawlerRtts,
  fleetShares,
  membersAt,
  type Share,
} from "./crawler-reads.ts";
import type { FleetSets } from "./explain-delegation.ts";
import type { WhoReads } from "./place.ts";
import { createRollUpReads } from "./roll-up-reads.ts";
import { hostReport, rejectionOf, urlReport, waitingReport } from "./url-reads.ts";

export interface Reports extends WhoReads, OverviewReads, SearchReads, PageReads, ReadinessReads {}

/** `nowMs` is a clock that never goes back, for how long costly answers are kept; `index`: the one in memory. */
export function createReports(pool: Pool, nowMs: () => number, index?: SearchIndex): Reports {
  return {
    ...whoReads(pool, nowMs),
    ...overviewReads(pool, nowMs),
    ...createSearchReads(pool, nowMs, index),
    ...readinessReads(pool),
  };
}

function whoReads(pool: Pool, nowMs: () => number): WhoReads {
  const found = createFindReads(pool);
  return {
    chainOf: (first, last) => chainOf(pool, first, last),
    publishedOf: (first, last) => publishedOf(pool, first, last),
    neighboursOf: (subnetId, each) => neighboursOf(pool, subnetId, each),
    moveCountsOf: (keys) => moveCountsOf(pool, keys),
    subnetsInside: (range, limit) => subnetsInside(pool, range, limit),
    subnetsOfCrawler: (crawlerId, limit) => subnetsOfCrawler(pool, crawlerId, limit),
    organisationNamed: (text, subnetLimit) => organisationNamed(pool, text, subnetLimit),
    rollUp: createRollUpReads(pool, nowMs),
    namesLike: (text, limit) => namesLike(pool, text, limit),
    hostsLike: async (text, limit) => {
      const hosts = await found.hosts(text.toLowerCase(), limit);
      return (hosts?.rows ?? []).map(({ host }) => ({
        type: "host",
        name: host,
        handle: null,
        similarity: Math.min(1, text.length / host.length),
      }));
    },
    crawlerNamed: (name) => crawlerNamed(pool, name),
    allCrawlers: () => allCrawlers(pool),
    membersAt: (at) => membersAt(pool, at),
    crawlerRtts: () => crawlerRtts(pool),
    roundById: (roundId) => roundById(pool, roundId),
    latestRoundOf: (subnetId) => latestRoundOf(pool, subnetId),
    finerOfHost: (hostHash) => finerOfHost(pool, hostHash),
    fleetSets: (hostHash) => fleetSets(pool, hostHash),
    partsOf: (subnetId) => partsOf(pool, subnetId),
    historyOf: (subnetId, limit) => historyOf(pool, subnetId, limit),
    ownerOf: (asked) => ownerOf(pool, asked),
    urlReport: (key, now) => urlReport(pool, key, now),
    urlPlace: (key, as) => urlPlace(pool, key, as),
    hostReport: (hostHash, now) => hostReport(pool, hostHash, { now }),
    waitingIn: (subnetId) => waitingReport(pool, subnetId),
    rejectionOf: (url) => rejectionOf(pool, url),
    leavingChannel: (key) => leavingChannel(pool, key),
    wishesOf: (host, addresses, url) => wishesOf(pool, host, addresses, url),
  };
}

function overviewReads(pool: Pool, nowMs: () => number): OverviewReads {
  const totals = new KeptAnswer(() => crawlTotals(pool), nowMs);
  const shares = new KeptAnswer(() => fleetShares(pool), nowMs);
  return {
    ...createOperationReads(pool, nowMs),
    crawlTotals: () => totals.get(),
    async fleet() {
      const [crawlers, shareOf] = await Promise.all([allCrawlers(pool), shares.get()]);
      return crawlers.map((crawler) => ({ ...crawler, ...(shareOf.get(crawler.crawlerId) ?? noShare) }));
    },
    recentDelegations: (limit) => recentDelegations(pool, limit),
    crawlerDetail: (crawlerId) => crawlerDetail(pool, crawlerId),
  };
}

const noShare: Share = {
  ...{ subnets: 0, pages: 0, bodyBytes: 0, shippedBytes: 0, meanRttMs: null, openLeases: 0 },
};

// The fleet's domain sets and the language of a host, for `who`.

const mostCrawlers = 10_000;

/** Without any sets in the fleet, no crawlers. Those that were shut out are left out. */
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

/** Every read of the pages, the API and `who` and `search`, of one slice (coordinator/slices/reports-reads). */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import { KeptAnswer } from "../database/cached-read.ts";
import { finerOfHost, partsOf } from "../delegation/overrides/who-reads.ts";
import { moveCountsOf } from "../delegation/recalibration/ageing-store.ts";
import { historyOf, latestRoundOf, roundById } from "../delegation/round-reads.ts";
import { ownerOf } from "../federation/owner-reads.ts";
import { leavingChannel, linkedDepth, urlPlace } from "../frontier/report-reads.ts";
import { wishesOf } from "../opt-outs/complaint-store.ts";
import type { WholeReads } from "../overview/alert-reads.ts";
import type { WholeCharts } from "../overview/chart-reads.ts";
import type { CrawlerDetail, OverviewReads } from "../overview/overview.ts";
import {
  crawlTotals,
  createOperationReads,
  readinessReads,
  recentDelegations,
  type TotalsPart,
  totalsPart,
  wholeOf,
} from "../overview/overview-reads.ts";
import type { ReadinessReads, WaitingHost } from "../overview/overview-types.ts";
import {
  type LeaseCounts,
  longestWaiting,
  openLeases,
  type WaitingPart,
  waitingPart,
} from "../overview/queue-reads.ts";
import type { SearchIndex } from "../search/memory/index-answer.ts";
import type { PageReads } from "../search/page-facts.ts";
import { type PageParts, pageParts } from "../search/page-reads.ts";
import type { SearchReads } from "../search/search-answer.ts";
import { configurationReads, createSearchReads } from "../search/search-reads.ts";
import { namesLike, organisationNamed } from "../subnets/holder-reads.ts";
import { publishedOf } from "../subnets/published-reads.ts";
import { chainOf, neighboursOf, subnetsInside, subnetsOfCrawler } from "../subnets/subnet-reads.ts";
import {
  allCrawlers,
  crawlerDetail,
  crawlerNamed,
  crawlerOutcomes,
  crawlerRtts,
  fleetShares,
  membersAt,
  type Share,
} from "./crawler-reads.ts";
import type { FleetSets } from "./explain-delegation.ts";
import type { WhoReads } from "./place.ts";
import {
  createRollUpReads,
  type HostsElsewhere,
  type HostsRow,
  hostsIn,
  type SpaceSql,
} from "./roll-up-reads.ts";
import {
  hostReport,
  rejectionOf,
  urlReport,
  type WaitingInSubnet,
  waitingHosts,
  waitingReport,
} from "./url-reads.ts";

export interface Reports extends WhoReads, OverviewReads, SearchReads, PageReads, ReadinessReads {}

/** One slice's part of what is told of all of them. */
export interface SliceReports extends Reports {
  readonly totalsPart: () => Promise<TotalsPart>;
  readonly fleetShares: () => Promise<ReadonlyMap<number, Share>>;
  readonly crawlerOutcomes: (crawlerId: number) => Promise<CrawlerDetail["outcomes"]>;
  readonly openLeases: () => Promise<LeaseCounts>;
  readonly waitingPart: (now: Date, elsewhere: LeaseCounts) => Promise<WaitingPart>;
  readonly longestWaitingWith: (
    elsewhere: LeaseCounts,
    ...asked: Parameters<OverviewReads["longestWaiting"]>
  ) => Promise<WaitingHost[]>;
  /** By the pages here that link to it. */
  readonly linkedDepth: (key: UrlKey) => Promise<number | null>;
  readonly waitingHosts: (subnetId: number) => Promise<WaitingInSubnet>;
  readonly hostsIn: (space: SpaceSql, now: Date) => Promise<readonly HostsRow[]>;
  readonly configurations: () => Promise<readonly string[]>;
  readonly pageParts: PageParts;
  readonly own: WholeReads & WholeCharts;
}

/** What a slice's reads ask all slices for. */
export interface WholeOfSlices extends WholeReads, WholeCharts {
  readonly hostsElsewhere: HostsElsewhere;
  readonly linkedDepth: (key: UrlKey) => Promise<number | null>;
  readonly configurations: () => Promise<readonly string[]>;
  readonly hostsLike: WhoReads["hostsLike"];
}

export interface SliceOptions {
  readonly pool: Pool;
  /** A clock that never goes back, for how long costly answers are kept. */
  readonly nowMs: () => number;
  /** The one in memory, of this slice's pages. */
  readonly index?: SearchIndex | undefined;
}

export function sliceReports({ pool, nowMs, index }: SliceOptions, whole: WholeOfSlices): SliceReports {
  const { configurations } = whole;
  const shares = new KeptAnswer(() => fleetShares(pool), nowMs);
  return {
    ...whoReads(pool, nowMs, whole),
    ...overviewReads(pool, { nowMs, whole, shares }),
    ...createSearchReads(pool, nowMs, { index, configurations }),
    ...readinessReads(pool),
    totalsPart: () => totalsPart(pool),
    fleetShares: () => shares.get(),
    crawlerOutcomes: (crawlerId) => crawlerOutcomes(pool, crawlerId),
    openLeases: () => openLeases(pool),
    waitingPart: (now, elsewhere) => waitingPart(pool, now, elsewhere),
    longestWaitingWith: (elsewhere, query, now) => longestWaiting(pool, query, now, elsewhere),
    linkedDepth: (key) => linkedDepth(pool, key),
    waitingHosts: (subnetId) => waitingHosts(pool, subnetId),
    hostsIn: (space, now) => hostsIn(pool, space, now),
    configurations: configurationReads(pool, nowMs),
    pageParts: pageParts(pool),
    own: wholeOf(pool),
  };
}

function whoReads(pool: Pool, nowMs: () => number, whole: WholeOfSlices): WhoReads {
  return {
    chainOf: (first, last) => chainOf(pool, first, last),
    publishedOf: (first, last) => publishedOf(pool, first, last),
    neighboursOf: (subnetId, each) => neighboursOf(pool, subnetId, each),
    moveCountsOf: (keys) => moveCountsOf(pool, keys),
    subnetsInside: (range, limit) => subnetsInside(pool, range, limit),
    subnetsOfCrawler: (crawlerId, limit) => subnetsOfCrawler(pool, crawlerId, limit),
    organisationNamed: (text, subnetLimit) => organisationNamed(pool, text, subnetLimit),
    rollUp: createRollUpReads(pool, nowMs, whole.hostsElsewhere),
    namesLike: (text, limit) => namesLike(pool, text, limit),
    hostsLike: whole.hostsLike,
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
    waitingIn: async (subnetId) => waitingReport(subnetId, [await waitingHosts(pool, subnetId)]),
    rejectionOf: (url) => rejectionOf(pool, url),
    leavingChannel: (key) => leavingChannel(pool, key, () => whole.linkedDepth(key)),
    wishesOf: (host, addresses, url) => wishesOf(pool, host, addresses, url),
  };
}

function overviewReads(
  pool: Pool,
  {
    nowMs,
    whole,
    shares,
  }: Pick<SliceOptions, "nowMs"> & {
    readonly whole: WholeOfSlices;
    readonly shares: KeptAnswer<ReadonlyMap<number, Share>>;
  },
): OverviewReads {
  const totals = new KeptAnswer(() => crawlTotals(pool), nowMs);
  return {
    ...createOperationReads(pool, nowMs, whole),
    crawlTotals: () => totals.get(),
    async fleet() {
      const [crawlers, shareOf] = await Promise.all([allCrawlers(pool), shares.get()]);
      return crawlers.map((crawler) => ({ ...crawler, ...(shareOf.get(crawler.crawlerId) ?? noShare) }));
    },
    recentDelegations: (limit) => recentDelegations(pool, limit),
    crawlerDetail: (crawlerId) => crawlerDetail(pool, crawlerId),
  };
}

export const noShare: Share = {
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

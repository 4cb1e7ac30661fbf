/** Tables crawler, spool and crawler_rtt: the registered crawlers and the RTTs between them. */

import type { Pool } from "pg";
import { gatherArrivals } from "#core/coalesce";
import { asCrawlerId, type CrawlerId, type SubnetId } from "#core/ids";
import type { CrawlerHello, ProbeMethod } from "#protocol/messages";
import { ChannelListener } from "../../database/channel-listener.ts";
import { clean, columnsOf } from "../../database/transaction.ts";
import { partitionOf } from "../domain-sets/partition.ts";
import {
  connectedState,
  crawlersLeave,
  type Departure,
  drainCrawler,
  hasJoined,
  mustJoin,
  resumeCrawler,
} from "./control-store.ts";
import { takeOverAtStart } from "./coordinator-presence-store.ts";
import type { Absence, CrawlerRecord, DrainedBy, PeerRtt } from "./crawler.ts";
import type { KeyHolder } from "./identity.ts";
import { crawlersOfKeys, measuresOnly, registerCrawler, type ShownKey } from "./identity-store.ts";
import type { Heard } from "./sessions.ts";

export type CrawlerStore = ReturnType<typeof createCrawlerStore>;

/** `coordinatorNumber` is the coordinator that records arrivals and departures. Null for tools that run no coordinator. */
export function createCrawlerStore(pool: Pool, coordinatorNumber: number | null = null) {
  const arrivals = gatherArrivals(
    async (given: readonly ArrivingCrawler[]) => await arrive(pool, given, coordinatorNumber),
  );
  const departures = gatherArrivals(
    async (given: readonly Departure[]) => await crawlersLeave(pool, given, coordinatorNumber),
  );
  const keys = gatherArrivals(async (shown: readonly ShownKey[]) => await crawlersOfKeys(pool, shown));
  const measured = gatherArrivals(
    async (reports: readonly MeasuredPeers[]) => await saveReports(pool, reports),
  );
  return {
    /** Adds a crawler or replaces the key of an existing one. Returns its id. The key is passed hashed. */
    register: async (crawler: Parameters<typeof registerCrawler>[1]): Promise<CrawlerId> =>
      await registerCrawler(pool, crawler),

    /** Returns the crawler that holds a valid key with this hash, or null. */
    authenticate: async (name: string, keyHash: string): Promise<KeyHolder | null> =>
      await keys.ask({ name, keyHash }),

    /** Records the hello and marks the crawler online. Returns the acknowledged sequence number of the spool. */
    arrive: async (arrival: {
      crawlerId: CrawlerId;
      hello: CrawlerHello;
      address: string | null;
      subnetId: SubnetId | null;
      now: Date;
    }): Promise<number> => await arrivals.ask(arrival),

    /**
     * `forGood` means that the crawler will not come back, so its subnets are handed over at once. Returns false, without
     * changes, if the crawler is now connected to another coordinator.
     */
    leave: async (departure: Departure): Promise<boolean> => await departures.ask(departure),

    /** Expects at most one heartbeat per crawler. */
    heartbeats: async (heard: readonly Heard[]): Promise<void> => await saveHeartbeats(pool, heard),

    /** All crawlers or those given, sorted by id. */
    list: async (crawlerIds?: readonly CrawlerId[]): Promise<CrawlerRecord[]> => await list(pool, crawlerIds),

    /** At a coordinator's start, marks all crawlers absent that are not connected to another running coordinator. */
    markAbsent: async (reason: string, now: Date): Promise<void> =>
      await takeOverAtStart(pool, coordinatorNumber, { reason, now }),

    /** `keptByEach` is the maximum number of pairs kept per measuring crawler, the most recent ones. Default: all. */
    saveRtts: async (
      rtts: readonly PeerRtt[],
      now: Date,
      keptByEach: number = Number.POSITIVE_INFINITY,
    ): Promise<void> => await measured.ask({ rtts, now, keptByEach }),

    /** All RTTs, or those measured by the given crawlers. */
    async rtts(from?: readonly CrawlerId[]): Promise<PeerRtt[]> {
      const all: PeerRtt[] = [];
      await readEachRtts(pool, (rtts) => all.push(...rtts), from);
      return all;
    },

    /** Visits all RTTs in portions, without building one list. */
    readEachRtts: async (visit: (rtts: readonly PeerRtt[]) => void): Promise<void> =>
      await readEachRtts(pool, visit),

    /** Marks the named crawler as draining and notifies coordinators. Returns false if there is none. Default: by operator. */
    drain: async (name: string, now: Date, by?: DrainedBy): Promise<boolean> =>
      await drainCrawler(pool, name, now, by),

    /**
     * Ends draining and notifies coordinators. Returns false if there is no such crawler, or if its partner may not resume it
     * because an operator drained it or it is not trusted.
     */
    resume: async (name: string, now: Date, by?: DrainedBy): Promise<boolean> =>
      await resumeCrawler(pool, name, now, by),

    /** Records that the crawler's subnets went to others. On its return it is to be given those nearest to it. */
    mustJoin: async (crawlerId: CrawlerId, now: Date): Promise<void> => await mustJoin(pool, crawlerId, now),

    /** Records that the crawler was given the subnets nearest to it. */
    hasJoined: async (crawlerId: CrawlerId): Promise<void> => await hasJoined(pool, crawlerId),

    /** Calls back whenever `drain` or `resume` has committed (Postgres NOTIFY `nearcrawl_fleet`). */
    onChange: async (changed: () => void): Promise<{ stop(): Promise<void> }> => {
      const listener = new ChannelListener(pool, "nearcrawl_fleet", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

/** A crawler that is offline by now keeps the time of its end. */
async function saveHeartbeats(pool: Pool, heard: readonly Heard[]): Promise<void> {
  const rows = heard.map(({ crawlerId, heartbeat: { type: _, ...said }, at }) => ({
    crawlerId,
    at,
    said: JSON.stringify(said),
  }));
  await pool.query(
    `update crawler c
     set heartbeat = given.said,
         last_seen_at = case when state = 'offline' then last_seen_at else greatest(last_seen_at, given.at) end
     from unnest($1::int[], $2::jsonb[], $3::timestamptz[]) as given (crawler_id, said, at)
     where c.crawler_id = given.crawler_id`,
    columnsOf(rows, ["crawlerId", "said", "at"]),
  );
}

type ArrivingCrawler = Parameters<CrawlerStore["arrive"]>[0];

/** Opens spools first. If recording the arrival then fails, the spool exists when the crawler retries. */
async function arrive(
  pool: Pool,
  arrivals: readonly ArrivingCrawler[],
  coordinatorNumber: number | null,
): Promise<number[]> {
  const acknowledged = await openSpools(pool, arrivals);
  await noteArrivals(pool, arrivals, coordinatorNumber);
  return acknowledged;
}

/** Returns the acknowledged sequence of each spool. */
async function openSpools(pool: Pool, arrivals: readonly ArrivingCrawler[]): Promise<number[]> {
  const crawlerIds = arrivals.map(({ crawlerId }) => crawlerId);
  const spoolIds = arrivals.map(({ hello }) => hello.spoolId);
  const { rows } = await pool.query<{ crawler_id: number; spool_id: string; acknowledged_sequence: string }>(
    `with given as (
       select distinct crawler_id, spool_id from unnest($1::int[], $2::uuid[]) as given (crawler_id, spool_id)
     ),
     opened as (
       insert into spool (crawler_id, spool_id)
       select crawler_id, spool_id from given
       order by crawler_id, spool_id
       on conflict (crawler_id, spool_id) do nothing
     )
     select s.crawler_id, s.spool_id, s.acknowledged_sequence
     from spool s
     join given using (crawler_id, spool_id)`,
    [crawlerIds, spoolIds],
  );
  const spools = new Map(
    rows.map((row) => [`${row.crawler_id} ${row.spool_id}`, Number(row.acknowledged_sequence)]),
  );
  return arrivals.map(({ crawlerId, hello }) => spools.get(`${crawlerId} ${hello.spoolId}`) ?? 0);
}

/** One statement for all, since a whole fleet may arrive at once. Every part of it sees the crawlers as they were before. */
async function noteArrivals(
  pool: Pool,
  arrivals: readonly ArrivingCrawler[],
  coordinatorNumber: number | null,
): Promise<void> {
  await pool.query(
    `with given as (
       select * from jsonb_to_recordset($1) as given (
         crawler_id int, address inet, subnet_id int, place text, country text,
         latitude double precision, longitude double precision,
         pages_per_day bigint, bytes_per_day bigint, concurrent_hosts int, probe_methods text[], speaks_ipv6 boolean,
         software_version text, at timestamptz, unlisted boolean, contact text, domain_sets text[],
         end_at timestamptz, end_words text
       )
     ),
     absent as (${notedAbsences}),
     forgotten as (${forgottenAbsences})
     update crawler c
     set address = given.address, subnet_id = given.subnet_id, place = given.place, country = given.country,
         latitude = given.latitude, longitude = given.longitude,
         pages_per_day = least(given.pages_per_day, granted_pages_per_day),
         bytes_per_day = least(given.bytes_per_day, granted_bytes_per_day),
         partner_pages_per_day = given.pages_per_day, partner_bytes_per_day = given.bytes_per_day,
         concurrent_hosts = given.concurrent_hosts, probe_methods = given.probe_methods,
         speaks_ipv6 = given.speaks_ipv6,
         -- A crawler that left for good is taken back when it returns. Draining that an operator requested stays.
         draining_since = case when drain_asked_by = 'crawler' then null else draining_since end,
         drain_asked_by = nullif(drain_asked_by, 'crawler'),
         state = case when drain_asked_by = 'crawler' then 'online' else ${connectedState} end,
         software_version = given.software_version, connected_at = given.at, last_seen_at = given.at,
         unlisted = given.unlisted, partner_contact = given.contact, partner_domain_sets = given.domain_sets,
         pace = null, pace_due_slices = null, pace_since = null, coordinator_number = $2,
         was_offline_since = case when offline_reason is null then was_offline_since else last_seen_at end,
         was_offline_reason = coalesce(offline_reason, was_offline_reason), offline_reason = null, offline_code = null
     from given
     where c.crawler_id = given.crawler_id`,
    [JSON.stringify(arrivals.map(asRecord)), coordinatorNumber],
  );
}

function asRecord({ crawlerId, hello, address, subnetId, now }: ArrivingCrawler): object {
  const { place, limits, lastEnd } = hello;
  return {
    crawler_id: crawlerId,
    address,
    subnet_id: subnetId,
    at: now,
    ...{
      place: place?.name,
      country: place?.country,
      latitude: place?.latitude,
      longitude: place?.longitude,
    },
    pages_per_day: limits.pagesPerDay,
    bytes_per_day: limits.bytesPerDay,
    concurrent_hosts: limits.concurrentHosts,
    probe_methods: hello.capabilities.probeMethods,
    speaks_ipv6: hello.capabilities.ipv6,
    software_version: hello.softwareVersion,
    unlisted: hello.listAddress === false,
    contact: hello.contact,
    domain_sets: hello.domainSets ?? [],
    end_at: lastEnd?.at,
    end_words: lastEnd ? clean(lastEnd.reason) : null,
  };
}

type SometimesTold =
  | "seenAddress"
  | "placedAt"
  | "coordinatorNumber"
  | "distrustedSince"
  | "probesDoubtedSince";

type CrawlerRow = Omit<CrawlerRecord, SometimesTold | "withoutIpv6" | "measuresOnly" | "partition"> & {
  [Name in SometimesTold]: CrawlerRecord[Name] | null;
} & {
  speaks_ipv6: boolean | null;
  measures_only: boolean;
  domain_sets: string[];
  partner_domain_sets: string[];
};

async function list(pool: Pool, crawlerIds?: readonly CrawlerId[]): Promise<CrawlerRecord[]> {
  const { rows } = await pool.query<CrawlerRow>(
    `select crawler_id as "crawlerId", name, host(address) as address, host(seen_address) as "seenAddress",
       subnet_id as "subnetId", country, place, latitude, longitude, pages_per_day as "pagesPerDay",
       bytes_per_day::float8 as "bytesPerDay", concurrent_hosts as "concurrentHosts", probe_methods as "probeMethods",
       speaks_ipv6, state, last_seen_at as "lastSeenAt", offline_reason as "offlineReason",
       draining_since as "drainingSince", joining_since as "joiningSince", placed_at as "placedAt",
       coordinator_number as "coordinatorNumber", distrusted_at as "distrustedSince",
       probes_doubted_at as "probesDoubtedSince", ${measuresOnly} as measures_only, domain_sets, partner_domain_sets
     from crawler
     left join crawler_trust using (crawler_id)
     ${crawlerIds === undefined ? "" : "where crawler_id = any($1)"}
     order by crawler_id`,
    crawlerIds === undefined ? [] : [crawlerIds],
  );
  return rows.map((row) => {
    const { speaks_ipv6, measures_only, domain_sets, partner_domain_sets, ...always } = row;
    const { seenAddress, placedAt, coordinatorNumber, distrustedSince, probesDoubtedSince, ...told } = always;
    return {
      ...told,
      ...(seenAddress && { seenAddress }),
      ...(speaks_ipv6 === false && { withoutIpv6: true }),
      ...(placedAt && { placedAt }),
      ...(coordinatorNumber !== null && { coordinatorNumber }),
      ...(measures_only && { measuresOnly: true }),
      ...(distrustedSince && { distrustedSince }),
      ...(probesDoubtedSince && { probesDoubtedSince }),
      ...(domain_sets.length + partner_domain_sets.length > 0 && {
        partition: partitionOf(domain_sets, partner_domain_sets),
      }),
    };
  });
}

/** In a large fleet an unchanged RTT is rewritten only this often, because most measurements repeat known values. */
const rttWrittenAgain = "interval '30 minutes'";

/** SQL: the RTT changed by no more than jitter (the rule of peer-matrix) and was written recently. */
const isWritten = `
  abs(r.rtt_ms - given.rtt_ms) <= 2 + 0.1 * r.rtt_ms and r.method = given.method
    and r.measured_at > $5::timestamptz - ${rttWrittenAgain} and r.measured_at <= $5::timestamptz`;

/**
 * Ignores peers that are not registered. If there are several values for a pair, the last counts. If a crawler has too many
 * pairs, those written longest ago are removed.
 */
async function saveRtts(pool: Pool, { rtts, now, keptByEach }: MeasuredPeers): Promise<void> {
  const latest = [...new Map(rtts.map((one) => [`${one.from}-${one.to}`, one])).values()];
  await pool.query(
    `insert into crawler_rtt (from_crawler_id, to_crawler_id, rtt_ms, method, measured_at)
     select given.from_id, given.to_id, given.rtt_ms, given.method, $5::timestamptz
     from unnest($1::int[], $2::int[], $3::real[], $4::text[]) as given (from_id, to_id, rtt_ms, method)
     join crawler f on f.crawler_id = given.from_id
     join crawler t on t.crawler_id = given.to_id
     left join crawler_rtt r on r.from_crawler_id = given.from_id and r.to_crawler_id = given.to_id
     where given.from_id <> given.to_id and ($6::boolean or (${isWritten}) is not true)
     order by given.from_id, given.to_id
     on conflict (from_crawler_id, to_crawler_id) do update
       set rtt_ms = excluded.rtt_ms, method = excluded.method, measured_at = excluded.measured_at`,
    [
      latest.map((one) => one.from),
      latest.map((one) => one.to),
      latest.map((one) => one.rttMs),
      latest.map((one) => one.method),
      now,
      keptByEach === Number.POSITIVE_INFINITY,
    ],
  );
  if (keptByEach === Number.POSITIVE_INFINITY) return;
  await pool.query(
    `delete from crawler_rtt r
     using (
       select given.from_id, old.to_crawler_id as to_id
       from unnest($1::int[]) as given (from_id)
       cross join lateral (
         select to_crawler_id
         from crawler_rtt
         where from_crawler_id = given.from_id
         order by measured_at desc, to_crawler_id
         offset $2
       ) old
     ) forgotten
     where r.from_crawler_id = forgotten.from_id and r.to_crawler_id = forgotten.to_id`,
    [[...new Set(latest.map(({ from }) => from))], keptByEach],
  );
}

interface MeasuredPeers {
  readonly rtts: readonly PeerRtt[];
  readonly now: Date;
  /** Infinity keeps all pairs and writes every value. */
  readonly keptByEach: number;
}

/** The reports arrived together, so the time and fleet size of the last one apply to all. */
async function saveReports(pool: Pool, reports: readonly MeasuredPeers[]): Promise<readonly undefined[]> {
  await saveRtts(pool, { ...reports.at(-1)!, rtts: reports.flatMap(({ rtts }) => rtts) });
  return reports.map(() => undefined);
}

/** Crawlers per query: some 20,000 rows. */
const rttsReadOf = 200;

/** All crawlers' RTTs, or those measured by the given ones. */
async function readEachRtts(
  pool: Pool,
  visit: (rtts: readonly PeerRtt[]) => void,
  from?: readonly CrawlerId[],
): Promise<void> {
  const { rows: crawlers } = await pool.query<{ crawler_id: number }>(
    "select crawler_id from crawler where $1::int[] is null or crawler_id = any($1) order by crawler_id",
    [from ?? null],
  );
  for (let start = 0; start < crawlers.length; start += rttsReadOf) {
    const { rows } = await pool.query<{ from: number; to: number; rtt_ms: number; method: ProbeMethod }>(
      `select from_crawler_id as "from", to_crawler_id as "to", rtt_ms, method
       from crawler_rtt
       where from_crawler_id = any($1::int[])
       order by from_crawler_id, to_crawler_id`,
      [crawlers.slice(start, start + rttsReadOf).map(({ crawler_id }) => crawler_id)],
    );
    visit(
      rows.map((row) => ({
        from: asCrawlerId(row.from),
        to: asCrawlerId(row.to),
        rttMs: row.rtt_ms,
        method: row.method,
      })),
    );
  }
}

/** Absences kept per crawler. */
export const mostAbsences = 100;

/** If a reported process end is earlier than the absence by more than this, it belongs to an earlier process. */
const endingMinutes = 10;

const wasAway = "c.offline_reason is not null and c.last_seen_at is not null";

/** SQL fragment of the arrivals statement over `given`: notes the absence before each arrival. */
const notedAbsences = `
  insert into crawler_absence (crawler_id, away_since, back_at, reason, last_words)
  select crawler_id, c.last_seen_at, greatest(given.at, c.last_seen_at), c.offline_reason,
    case when given.end_at > c.last_seen_at - interval '${endingMinutes} minutes' then given.end_words end
  from crawler c
  join given using (crawler_id)
  where ${wasAway}`;

/** SQL fragment of the same statement: deletes absences beyond the limit. */
const forgottenAbsences = `
  delete from crawler_absence a
  using given
  join crawler c using (crawler_id)
  where a.crawler_id = given.crawler_id and ${wasAway}
    and a.absence_id <= (
      select absence_id from crawler_absence
      where crawler_id = given.crawler_id
      order by absence_id desc
      offset ${mostAbsences - 1}
      limit 1
    )`;

/** Latest first. Empty if there are none or the crawler does not exist. */
export async function absencesOf(pool: Pool, name: string): Promise<Absence[]> {
  const { rows } = await pool.query<Absence>(
    `select a.away_since as since, a.back_at as until, a.reason, a.last_words as "lastWords"
     from crawler_absence a
     join crawler c using (crawler_id)
     where c.name = $1
     order by a.absence_id desc`,
    [name],
  );
  return rows;
}

/** SQL that returns the joined crawler as one value, or null if the outer join found none. */
export const crawlerJson = (alias: string): string =>
  `case when ${alias}.crawler_id is null then null else
     json_build_object('crawlerId', ${alias}.crawler_id, 'name', ${alias}.name, 'state', ${alias}.state) end`;

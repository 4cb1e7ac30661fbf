/** The reads of the fleet's pages; costly answers are cached. */
import type { Pool } from "pg";
import { keyThumbprint } from "#protocol/identity";
import { standingOf, trustList, trustReport, untoldByCrawler } from "../../crawl/trust/reads.ts";
import {
  defaultMostBytes,
  KeptAnswer,
  readRows,
  readsOver,
  roundedMs,
  sampleTables,
  toldRows,
} from "../../database/cached-read.ts";
import { absencesOf } from "../../place/crawlers/crawler-store.ts";
import { keysOfCrawler } from "../../place/crawlers/identity-store.ts";
import { moveList } from "../../place/crawlers/move-store.ts";
import { allCrawlers } from "../who/reads.ts";
import { subnetsOfCrawler } from "../who/subnet-reads.ts";
import type {
  CrawlerActivity,
  CrawlerDetail,
  CrawlerLogPage,
  CrawlerWork,
  OfferEntry,
} from "./crawler-api.ts";
import { failureShares, latestFailures } from "./failure-reads.ts";
import type { FleetEntry, FleetIdentity, FleetLine } from "./fleet-api.ts";

const hourMs = 3_600_000;

/**
 * An answer this fast is not cached, so that operators of a fleet of hundreds see their changes. For a fleet of 10,000, it is
 * cached for seconds.
 */
const smallFleetMs = 100;

/** `now` is the clock of cached figures; `nowMs` is monotonic. */
export function createFleetReads(pool: Pool, now: () => Date, nowMs: () => number) {
  const figures = new KeptAnswer(() => fleetFigures(pool, now()), nowMs);
  const since = (hours: number) => new Date(now().getTime() - hours * hourMs);
  const shares = {
    1: new KeptAnswer(() => failureShares(pool, since(1)), nowMs),
    24: new KeptAnswer(() => failureShares(pool, since(24)), nowMs),
  } as const;
  const kept = async () => await figures.get();
  const fleet = new KeptAnswer(async () => await fleetList(pool, now(), kept), nowMs, 0, smallFleetMs);
  return {
    /** The fleet's list, which may be some seconds old if the fleet is large. */
    fleet: async () => await fleet.get(),
    crawler: async (name: string, at: Date) => await fleetEntry(pool, name, at, kept),
    ...readsOver(pool, {
      activityOf,
      workOf: crawlerWork,
      absencesOf,
      keysOf: keysOfCrawler,
      logOf: crawlerLog,
    }),
    ...readsOver(pool, {
      offersOf,
      trustOf: trustReport,
      trust: trustList,
      moves: moveList,
      failures: latestFailures,
    }),
    failureShares: async (hours: 1 | 24) => await shares[hours].get(),
  };
}

export type FleetReads = ReturnType<typeof createFleetReads>;

// A crawler's recent fetches and probes, searched among the fleet's latest, so that no table is scanned.

/** How many of the latest fetches and probe rounds are searched. */
const window = 5000;

const fetchesShown = 10;

async function activityOf(pool: Pool, crawlerId: number): Promise<CrawlerActivity> {
  const [fetches, probes] = await Promise.all([fetchesOf(pool, crawlerId), probesOf(pool, crawlerId)]);
  return { fetches, probes };
}

async function fetchesOf(pool: Pool, crawlerId: number): Promise<CrawlerActivity["fetches"]> {
  const { rows } = await pool.query<CrawlerActivity["fetches"][number]>(
    `select f.fetched_at as at, u.url, f.outcome, f.blame, f.status, f.total_ms::float8 as "totalMs",
       f.body_bytes as "bodyBytes", f.shipped_bytes as "shippedBytes"
     from (
       select * from (select * from page_fetch order by fetched_at desc limit ${window}) latest
       where crawler_id = $1
       order by fetched_at desc
       limit ${fetchesShown}
     ) f
     left join frontier_url u on u.host_hash = f.host_hash and u.url_hash = f.url_hash
     order by f.fetched_at desc`,
    [crawlerId],
  );
  return rows;
}

async function probesOf(pool: Pool, crawlerId: number): Promise<CrawlerActivity["probes"]> {
  const { rows } = await pool.query<CrawlerActivity["probes"]>(
    `select count(p.round_id)::int as asked, count(*) filter (where p.outcome = 'measured')::int as measured,
       count(distinct r.round_id)::int as rounds
     from (select round_id from probe_round order by round_id desc limit ${window}) r
     left join probe p on p.round_id = r.round_id and p.crawler_id = $1`,
    [crawlerId],
  );
  return rows[0]!;
}

// The log of one crawler by time: absences, incidents, moves, keys, invitations, releases, trust, and people's changes
// (table audit_entry).

const logPageSize = 50;

/** Each source selects at, kind, words and by_whom of crawler `c`. */
const sources = [
  `select last_seen_at, 'away', offline_reason, null from c
   where offline_reason is not null and last_seen_at is not null`,
  `select connected_at, 'connected', 'connected', null from c
   where connected_at is not null
     and not exists (select from crawler_absence a where a.crawler_id = c.crawler_id and a.back_at = c.connected_at)`,
  `select a.away_since, 'away', a.reason, null from c join crawler_absence a using (crawler_id)`,
  `select a.back_at, 'connected',
     'connected again' || coalesce('; its process before ended with: ' || a.last_words, ''), null
   from c join crawler_absence a using (crawler_id)`,
  `select i.last_at, 'incident', i.kind || case when i.incidents > 1 then ' (' || i.incidents || ' times)' else '' end
     || ': ' || i.words, i.remote_address
   from c join incident i using (crawler_id)`,
  `select m.changed_at, 'move',
     m.name || ' to the host of ' || m.other_name || ': ' || m.step || case when m.words = '' then '' else ': ' || m.words end,
     null
   from c join crawler_move m on c.crawler_id in (m.crawler_id, m.other_crawler_id)`,
  `select k.created_at, 'key', 'was issued key ' || k.key_id, null from c join crawler_key k using (crawler_id)`,
  `select k.revoked_at, 'key', 'key ' || k.key_id || ' was revoked', null
   from c join crawler_key k using (crawler_id) where k.revoked_at is not null`,
  `select i.created_at, 'invitation',
     case when i.renews then 'reinvited' else 'invited' end || ' (invitation ' || i.invitation_id || ')', i.created_by
   from c join invitation i on i.name = c.name`,
  `select i.redeemed_at, 'invitation', 'joined with invitation ' || i.invitation_id, null
   from c join invitation i using (crawler_id) where i.redeemed_at is not null`,
  `select o.offered_at, 'release', 'was offered release ' || o.version, null from c join release_offer o using (crawler_id)`,
  `select o.reported_at, 'release',
     'release ' || o.version || ': ' || o.state || case when o.reason = '' then '' else ': ' || o.reason end, null
   from c join release_offer o using (crawler_id) where o.reported_at is not null and o.state is not null`,
  `select t.distrusted_at, 'trust', 'is not trusted any more: ' || coalesce(t.distrust_words, ''), null
   from c join crawler_trust t using (crawler_id) where t.distrusted_at is not null`,
  `select t.probes_doubted_at, 'trust', 'its probe reports are no longer trusted: ' || coalesce(t.probes_words, ''), null
   from c join crawler_trust t using (crawler_id) where t.probes_doubted_at is not null`,
  `select e.at, 'change', e.words, e.actor from c join audit_entry e on e.target = c.name`,
];

const sql = `with c as (select * from crawler where name = $1)
  select at, kind, words, by_whom as by
  from (${sources.join("\n union all ")}) as noted (at, kind, words, by_whom)
  order by at desc, kind, words
  limit ${logPageSize + 1} offset $2`;

/** Returns the latest first. `page` counts from 1. Empty if there is no such crawler. */
export async function crawlerLog(pool: Pool, name: string, page: number): Promise<CrawlerLogPage> {
  const { rows } = await pool.query<CrawlerLogPage["lines"][number]>(sql, [name, (page - 1) * logPageSize]);
  return { lines: rows.slice(0, logPageSize), page, more: rows.length > logPageSize };
}

const mostListed = 10;

async function offersOf(pool: Pool, crawlerId: number): Promise<OfferEntry[]> {
  const { rows } = await pool.query<OfferEntry>(
    `select version, offered_at as "offeredAt", state, reason, reported_at as "reportedAt"
     from release_offer
     where crawler_id = $1
     order by coalesce(reported_at, offered_at) desc
     limit ${mostListed}`,
    [crawlerId],
  );
  return rows;
}

/** The source of the figures, which may be cached. By default they are counted now. */
type FiguresNow = () => Promise<ReadonlyMap<number, FleetFigures>>;

/** Returns the crawlers by name. */
export async function fleetList(
  pool: Pool,
  now: Date,
  figures: FiguresNow = () => fleetFigures(pool, now),
): Promise<FleetEntry[]> {
  return await entries(pool, { name: null, now, figures });
}

/** Returns null if there is no such crawler. */
export async function fleetEntry(
  pool: Pool,
  name: string,
  now: Date,
  figures: FiguresNow = () => fleetFigures(pool, now),
): Promise<FleetEntry | null> {
  return (await entries(pool, { name, now, figures }))[0] ?? null;
}

async function entries(
  pool: Pool,
  asked: { readonly name: string | null; readonly now: Date; readonly figures: FiguresNow },
): Promise<FleetEntry[]> {
  const rows = await readRows<FleetRow>(
    pool,
    `select c.crawler_id as "crawlerId", c.name, c.place, c.country, c.state, c.offline_reason as "offlineReason", c.offline_code as "offlineCode",
       c.last_seen_at as "lastSeenAt", c.connected_at as "connectedAt", c.revoked_at is not null as revoked,
       c.software_version as "softwareVersion", c.pages_per_day as "pagesPerDay",
       c.bytes_per_day::float8 as "bytesPerDay", c.joining_since as "joiningSince",
       coalesce(i.incidents, 0)::float8 as incidents,
       jsonb_build_object('pagesPerDay', c.granted_pages_per_day, 'bytesPerDay', c.granted_bytes_per_day) as granted,
       jsonb_build_object('pagesPerDay', c.partner_pages_per_day, 'bytesPerDay', c.partner_bytes_per_day)
         as "partnerAllows",
       case when c.release_version is not null then jsonb_build_object('version', c.release_version,
         'dockVersion', coalesce(c.dock_version, ''), 'policy', coalesce(c.release_policy, '')) end as release,
       c.draining_since as "draining.since", coalesce(c.drain_asked_by, 'operator') as "draining.askedBy",
       c.drain_subnets as "draining.subnets",
       t.distrusted_at as "distrustedAt", t.probes_doubted_at as "probesDoubtedAt",
       coalesce(t.watched_until_page > t.pages, false) as watched
     from crawler c
     left join crawler_trust t using (crawler_id)
     left join (
       select crawler_id, sum(incidents) as incidents
       from incident
       where last_at > $1::timestamptz - interval '7 days'
       group by crawler_id
     ) i using (crawler_id)
     where $2::text is null or c.name = $2
     order by c.name`,
    [asked.now, asked.name],
  );
  if (rows.length === 0) return [];
  const ids = rows.map(({ crawlerId }) => crawlerId);
  const [identities, figures] = await Promise.all([fleetIdentities(pool, asked.now, ids), asked.figures()]);
  return rows.flatMap(({ distrustedAt, probesDoubtedAt, watched, ...entry }) => {
    const { comparisons: told, untold, ...had } = figures.get(entry.crawlerId) ?? noFigures;
    const identity = identities.get(entry.crawlerId);
    const trust = standingOf({ distrustedAt, probesDoubtedAt, watched, told, untold });
    return identity === undefined ? [] : [{ ...entry, ...had, trust, identity }];
  });
}

interface FleetRow extends Omit<FleetEntry, Figure | "trust" | "identity"> {
  readonly distrustedAt: Date | null;
  readonly probesDoubtedAt: Date | null;
  readonly watched: boolean;
}

/** Reads the domain sets and pace of a crawler; both are empty if it is unknown. */
export async function crawlerWork(pool: Pool, name: string): Promise<CrawlerWork> {
  const rows = await readRows<CrawlerWork>(
    pool,
    `select domain_sets as "domainSets.operator", partner_domain_sets as "domainSets.partner", pace as "pace.pace",
       pace_due_slices as "pace.dueSlices", pace_since as "pace.since"
     from crawler
     where name = $1`,
    [name],
  );
  return rows[0] ?? { domainSets: { operator: [], partner: [] }, pace: null };
}

// Each crawler's subnets and work of today. Counting takes a moment on a large frontier, so pages cache it.

type Figure =
  | "subnets"
  | "unmeasured"
  | "meanRttMs"
  | "openLeases"
  | "pagesToday"
  | "bytesToday"
  | "bodyBytesToday"
  | "shippedBytesToday";

interface FleetFigures extends Pick<FleetEntry, Figure> {
  /** How many comparisons of its pages with others' were made. */
  readonly comparisons: number;
  /** How many of them were inconclusive. */
  readonly untold: number;
}

const noFigures: FleetFigures = {
  subnets: 0,
  unmeasured: 0,
  meanRttMs: null,
  openLeases: 0,
  pagesToday: 0,
  bytesToday: 0,
  bodyBytesToday: 0,
  shippedBytesToday: 0,
  comparisons: 0,
  untold: 0,
};

/** Returns the figures by crawler id. */
export async function fleetFigures(pool: Pool, now: Date): Promise<ReadonlyMap<number, FleetFigures>> {
  const { rows } = await pool.query<FleetFigures & { readonly crawlerId: number }>(
    `select c.crawler_id as "crawlerId", coalesce(d.subnets, 0)::int as subnets,
       coalesce(d.unmeasured, 0)::int as unmeasured,
       ${roundedMs("d.mean_rtt_ms")} as "meanRttMs", coalesce(l.leases, 0)::int as "openLeases",
       coalesce(f.pages, 0)::int as "pagesToday", coalesce(f.bytes, 0)::float8 as "bytesToday",
       coalesce(f.body_bytes, 0)::float8 as "bodyBytesToday",
       coalesce(f.shipped_bytes, 0)::float8 as "shippedBytesToday", coalesce(o.comparisons, 0)::int as comparisons,
       coalesce(u.untold, 0)::int as untold
     from crawler c
     left join (
       select crawler_id, count(*) as subnets, count(*) filter (where not measured) as unmeasured, avg(rtt_ms) as mean_rtt_ms
       from delegation
       group by crawler_id
     ) d using (crawler_id)
     left join (
       select crawler_id, count(*) as leases from lease where closed_at is null group by crawler_id
     ) l using (crawler_id)
     left join (
       select crawler_id, count(*) as pages, sum(wire_bytes) as bytes, sum(body_bytes) as body_bytes,
         sum(shipped_bytes) as shipped_bytes
       from page_fetch
       where fetched_at >= date_trunc('day', $1::timestamptz, 'UTC')
       group by crawler_id
     ) f using (crawler_id)
     left join (
       select crawler_id, count(*) as comparisons from check_outcome group by crawler_id
     ) o using (crawler_id)
     left join (${untoldByCrawler}) u using (crawler_id)`,
    [now],
  );
  return new Map(rows.map(({ crawlerId, ...row }) => [crawlerId, row]));
}

/** Reads identities, keys, addresses, reasons of absence and last words, by crawler id. */
export async function fleetIdentities(
  pool: Pool,
  now: Date,
  crawlerIds: readonly number[],
): Promise<ReadonlyMap<number, FleetIdentity>> {
  const rows = await readRows<FleetIdentity & { readonly crawlerId: number }>(
    pool,
    `select c.crawler_id as "crawlerId", c.public_key as "publicKey", k.created_at as "keySince",
       coalesce(k.scopes, '{}') as scopes, host(c.seen_address) as "seenAddress",
       host(c.expected_address) as "addressBefore", c.address_changed_at as "addressChangedAt",
       case when c.was_offline_reason is not null then c.was_offline_since end as "lastAway.since",
       c.was_offline_reason as "lastAway.reason",
       case when c.last_words is not null then c.last_end_at end as "lastEnd.at", c.last_words as "lastEnd.reason",
       i.copied_at as "copiedAt", c.partner_contact as contact,
       not c.unlisted as "isListed", s.public_key as "signingKey.publicKey",
       s.announced_at as "signingKey.since", s.expires_at as "signingKey.until"
     from crawler c
     left join lateral (
       select public_key, announced_at, expires_at
       from crawler_signing_key
       where crawler_id = c.crawler_id and identity_key = c.public_key and expires_at > $1 and c.revoked_at is null
       order by announced_at desc
       limit 1
     ) s on true
     left join lateral (
       select created_at, scopes
       from crawler_key
       where crawler_id = c.crawler_id and revoked_at is null and kept_at is not null
         and (expires_at is null or expires_at > $1)
       order by key_id desc
       limit 1
     ) k on true
     left join (
       select i.crawler_id, max(i.last_at) as copied_at
       from incident i
       left join (
         select crawler_id, max(redeemed_at) as renewed_at from invitation group by crawler_id
       ) r using (crawler_id)
       where i.kind = 'copied-folder' and i.hour > $1::timestamptz - interval '7 days'
         -- A new identity has put an end to it.
         and i.last_at > coalesce(r.renewed_at, '-infinity')
       group by i.crawler_id
     ) i on i.crawler_id = c.crawler_id
     where c.crawler_id = any($2)`,
    [now, crawlerIds],
  );
  return new Map(
    rows.map(({ crawlerId, signingKey: key, ...row }) => {
      return [crawlerId, { ...row, signingKey: key && { ...key, keyId: keyThumbprint(key.publicKey) } }];
    }),
  );
}

const subnetsShown = 50;
/** How many of the nearest peers are shown. */
const peersShown = 1000;
/** How many of the latest fetches outcomes are counted over. */
const outcomeWindow = 5000;

/** `nowMs` is monotonic. */
export function createFleetLines(pool: Pool, nowMs: () => number) {
  const shares = new KeptAnswer(() => fleetShares(pool), nowMs);
  return {
    ...readsOver(pool, { crawlerDetail }),
    fleet: async (): Promise<FleetLine[]> => {
      const [crawlers, shareOf] = await Promise.all([allCrawlers(pool), shares.get()]);
      return crawlers.map((crawler) => ({ ...crawler, ...(shareOf.get(crawler.crawlerId) ?? noShare) }));
    },
  };
}

type Share = Pick<FleetLine, "subnets" | "pages" | "bodyBytes" | "shippedBytes" | "meanRttMs" | "openLeases">;

/** Reads what each crawler owns and has fetched. Large tables are sampled, and callers cache the answer. */
async function fleetShares(pool: Pool, mostBytes = defaultMostBytes): Promise<Map<number, Share>> {
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

/** Reads what its page shows besides the crawler itself. */
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

/** Counts outcomes over the fleet's latest fetches, the most frequent first. */
async function crawlerOutcomes(pool: Pool, crawlerId: number): Promise<CrawlerDetail["outcomes"]> {
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

const noShare: Share = {
  ...{ subnets: 0, pages: 0, bodyBytes: 0, shippedBytes: 0, meanRttMs: null, openLeases: 0 },
};

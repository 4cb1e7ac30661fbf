/** Every read of the fleet's pages; what grows with the tables is asked seldom and kept meanwhile. */
import type { Pool } from "pg";
import { trustList, trustReport } from "../../crawl/trust/reads.ts";
import { KeptAnswer, readsOver } from "../../database/cached-read.ts";
import { absencesOf } from "../../place/crawlers/crawler-store.ts";
import { keysOfCrawler } from "../../place/crawlers/identity-store.ts";
import { moveList } from "../../place/crawlers/move-store.ts";
import type { CrawlerActivity, CrawlerLogPage, OfferEntry } from "./crawler-api.ts";
import { failureShares, latestFailures } from "./failure-reads.ts";
import { crawlerWork, fleetEntry, fleetFigures, fleetList } from "./fleet-list-reads.ts";

const hourMs = 3_600_000;

/** Reading a fleet of some hundreds: what operators have just changed is to be seen. One of 10,000 is kept for seconds. */
const smallFleetMs = 100;

/** `now` is the clock of the figures that are kept; `nowMs` one that never goes back. */
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
    /** Of a large fleet, as it was some seconds ago. */
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

// What one crawler did of late: its fetches and probes among the latest of the fleet, so that no table is read through.

/** Latest fetches, and latest probe rounds, that are looked through. */
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

// Everything that was noted of one crawler as one list by time: connections and absences, incidents, moves, keys,
// invitations, releases, trust, and what people changed (table audit_entry).

const logPageSize = 50;

/** Each selects at, kind, words, by_whom of crawler `c`, whose absences, keys … are few. */
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

/** The latest first; `page` from 1. Empty when there is no crawler of that name. */
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

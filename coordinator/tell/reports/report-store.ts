/** The basis of reports: pieces of the crawl, the fleet, measurements, and names. */
import type { Pool } from "pg";
import type { CrawlerId, HolderId, SubnetId } from "#core/ids";
import type { TimeRange } from "#core/time-range";
import { rangeText } from "#db/range-text";
import { alone } from "../../database/bounded-work.ts";
import { defaultMostBytes, readsOver, sampleTables } from "../../database/cached-read.ts";
import { columnsOf } from "../../database/transaction.ts";
import type { PeerRtt } from "../../place/crawlers/crawler.ts";
import { pagesPerDaySql, probedRtts } from "../../place/delegation/load-store.ts";
import type { CrawlPiece, MeasuredRtt, ReportedCrawler } from "./crawl-pieces.ts";

const mostCrawlers = 10_000;

export type ReportReads = ReturnType<typeof createReportReads>;

/** Assumes that every page is fetched once in `recrawlDays`. */
export function createReportReads(pool: Pool, recrawlDays: () => number) {
  return {
    ...readsOver(pool, { crawlers, measuredRtts, peerRtts, denyLists, namedSubnets, organisations }),
    ...readsOver(pool, { coverageOn, coverageOverTime }),
    crawlPieces: async () => await crawlPieces(pool, recrawlDays()),
  };
}

/** Reads the pieces in one pass over all hosts. */
export async function crawlPieces(pool: Pool, recrawlDays: number): Promise<CrawlPiece[]> {
  const { rows } = await pool.query<CrawlPiece>(
    `select s.subnet_id as "subnetId", coalesce(f.crawler_id, d.crawler_id) as "crawlerId",
       case when f.finer_id is not null then f.rtt_ms when not d.anycast then d.rtt_ms end as "rttMs",
       coalesce(d.anycast and f.finer_id is null, false) as "isAnycast",
       coalesce(d.cause = 'overload' and f.finer_id is null, false) as "isDisplaced",
       coalesce(f.delegated_at, d.delegated_at) as "decidedAt",
       s.country, s.holder_id as "holderId", h.hosts, h.pages, h.pages_per_day as "pagesPerDay"
     from (
       select subnet_id, finer_id, count(*)::int as hosts, sum(good_pages + near_duplicates)::float8 as pages,
         sum(${pagesPerDaySql("$1")})::float8 as pages_per_day
       from frontier_host
       where state = 'resolved' and subnet_id is not null
       group by subnet_id, finer_id
     ) h
     join subnet s using (subnet_id)
     left join delegation d using (subnet_id)
     left join finer_delegation f on f.finer_id = h.finer_id`,
    [recrawlDays],
  );
  return rows;
}

export async function crawlers(pool: Pool): Promise<ReportedCrawler[]> {
  const { rows } = await pool.query<ReportedCrawler>(
    `select crawler_id as "crawlerId", name, country,
       case when draining_since is not null and state = 'online' then 'draining' else state end as state,
       revoked_at is null and t.distrusted_at is null as "isTrusted"
     from crawler
     left join crawler_trust t using (crawler_id)
     order by crawler_id
     limit ${mostCrawlers}`,
  );
  return rows;
}

/** How many subnets' RTTs are read at once. */
const batchSize = 1000;

export async function measuredRtts(pool: Pool, subnetIds: readonly SubnetId[]): Promise<MeasuredRtt[]> {
  const measured: MeasuredRtt[] = [];
  for (let start = 0; start < subnetIds.length; start += batchSize)
    measured.push(...(await probedRtts(pool, subnetIds.slice(start, start + batchSize))));
  return measured;
}

export async function peerRtts(
  pool: Pool,
  crawlerIds: readonly CrawlerId[],
): Promise<Omit<PeerRtt, "method">[]> {
  const { rows } = await pool.query<Omit<PeerRtt, "method">>(
    `select from_crawler_id as "from", to_crawler_id as "to", rtt_ms as "rttMs"
     from crawler_rtt
     where from_crawler_id = any($1::int[]) and to_crawler_id = any($1::int[])`,
    [crawlerIds],
  );
  return rows;
}

/** Reads the deny lists of the crawlers' last hellos. */
export async function denyLists(pool: Pool) {
  type Denied = { readonly crawlerId: CrawlerId; readonly denies: { networks: string[]; domains: string[] } };
  const { rows } = await pool.query<Denied>(
    `select crawler_id as "crawlerId", denies from crawler_denies limit ${mostCrawlers}`,
  );
  return rows;
}

export interface NamedSubnet {
  readonly range: string;
  readonly name: string;
  readonly holder: string | null;
}

type Numbered = Pick<CrawlPiece, "subnetId">;

export async function namedSubnets(
  pool: Pool,
  subnetIds: readonly SubnetId[],
): Promise<Map<SubnetId, NamedSubnet>> {
  const { rows } = await pool.query<Omit<NamedSubnet, "range"> & Record<"first" | "last", string> & Numbered>(
    `select subnet_id as "subnetId", host(first_address) as first, host(last_address) as last, s.name, h.name as holder
     from subnet s
     left join holder h using (holder_id)
     where subnet_id = any($1::int[])`,
    [subnetIds],
  );
  return new Map(
    rows.map(({ subnetId, first, last, ...row }) => [subnetId, { ...row, range: rangeText(first, last) }]),
  );
}

interface OrganisationRow {
  readonly holderId: HolderId | null;
  readonly name: string | null;
  readonly handle: string | null;
  /** The country of most of its pages. */
  readonly country: string | null;
  readonly subnets: number;
  readonly hosts: number;
  readonly pages: number;
  readonly bytes: number;
}

/** Reads the organisations with the most pages, and the totals. Pages without a holder are one nameless row. */
export async function organisations(pool: Pool, most: number) {
  const { rows } = await pool.query<OrganisationRow & { allOf: Record<string, number> }>(
    `with place as (
       select holder_id, country, subnet_id, count(*)::int as hosts, sum(pages)::float8 as pages,
         sum(bytes)::float8 as bytes
       from site
       where subnet_id is not null
       group by holder_id, country, subnet_id
     ),
     held as (
       select holder_id, count(distinct subnet_id) as subnets, sum(hosts) as hosts, sum(pages) as pages, sum(bytes) as bytes
       from place
       group by holder_id
     ),
     total as (
       select count(holder_id) as organisations, coalesce(sum(subnets), 0) as subnets, coalesce(sum(hosts), 0) as hosts,
         coalesce(sum(pages), 0) as pages, coalesce(sum(bytes), 0) as bytes
       from held
     ),
     most as (
       select * from held order by pages desc, bytes desc, holder_id limit $1
     )
     select m.holder_id as "holderId", h.name, h.handle, at.country, coalesce(m.subnets, 0)::int as subnets,
       coalesce(m.hosts, 0)::int as hosts, coalesce(m.pages, 0)::float8 as pages, coalesce(m.bytes, 0)::float8 as bytes,
       json_build_object('organisations', total.organisations, 'subnets', total.subnets, 'hosts', total.hosts,
         'pages', total.pages, 'bytes', total.bytes) as "allOf"
     from total
     left join most m on true
     left join holder h on h.holder_id = m.holder_id
     left join lateral (
       select country
       from place
       where place.holder_id is not distinct from m.holder_id and country is not null
       group by country
       order by sum(pages) desc, country
       limit 1
     ) at on true
     order by m.pages desc, m.bytes desc, m.holder_id`,
    [most],
  );
  const { organisations = 0, subnets = 0, hosts = 0, pages = 0, bytes = 0 } = rows[0]?.allOf ?? {};
  return {
    rows: rows.filter(({ hosts: own }) => own > 0).map(({ allOf: _, ...row }) => row),
    all: { organisations, subnets, hosts, pages, bytes },
  };
}

// Table coverage_day: hosts, pages and freshness by country and language, counted hourly and kept per day. Hosts, pages and
// bytes come from the whole list of sites. Page ages come from the index. A large index is sampled, always from the same
// random blocks, so that shares do not fluctuate.

const lockName = "nearcrawl-coverage-day";

/**
 * Writes this day's figures (UTC) over earlier ones. Returns null while the list of sites is incomplete or another
 * coordinator is counting.
 */
export async function countCoverage(
  pool: Pool,
  now: Date,
  mostBytes = defaultMostBytes,
): Promise<{ readonly rows: number } | null> {
  return await alone(pool, lockName, async () => {
    const counted = await countOf(pool, now, mostBytes);
    // A missing count must not become zero.
    if (counted === null) return null;
    await pool.query(
      `with given as (
         select * from unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::float8[],
           $9::float8[]) as given (country, language, hosts, pages, bytes, sampled, fresh_7, fresh_30)
       ),
       gone as (
         delete from coverage_day
         where day = ($1::timestamptz at time zone 'UTC')::date
           and not exists (select from given k where k.country = coverage_day.country and k.language = coverage_day.language)
       )
       insert into coverage_day (day, country, language, hosts, pages, bytes, sampled_pages, fresh_7, fresh_30, counted_at)
       select ($1::timestamptz at time zone 'UTC')::date, country, language, hosts, pages, bytes, sampled, fresh_7, fresh_30, $1
       from given
       on conflict (day, country, language) do update
       set hosts = excluded.hosts, pages = excluded.pages, bytes = excluded.bytes, sampled_pages = excluded.sampled_pages,
         fresh_7 = excluded.fresh_7, fresh_30 = excluded.fresh_30, counted_at = excluded.counted_at`,
      [now, ...columnsOf(counted, ["country", "language", ...countedNames])],
    );
    return { rows: counted.length };
  });
}

const countedNames = ["hosts", "pages", "bytes", "sampled", "fresh_7", "fresh_30"] as const;

type Counted = { readonly country: string; readonly language: string } & Record<
  (typeof countedNames)[number],
  number
>;

/** Returns null while the list of sites is incomplete. */
async function countOf(pool: Pool, now: Date, mostBytes: number): Promise<Counted[] | null> {
  const { rowCount: lacking } = await pool.query("select from site_upkeep where finished_at is null");
  if (lacking !== 0) return null;
  const { page } = await sampleTables(pool, ["page"], mostBytes);
  const { rows } = await pool.query<Counted>(
    `with known as (
       select coalesce(country, '') as country, coalesce(language, '') as language, count(*) as hosts,
         sum(pages) as pages, sum(bytes) as bytes
       from site
       group by 1, 2
     ),
     aged as (
       select coalesce(s.country, '') as country, coalesce(s.language, '') as language, count(*) as sampled,
         count(*) filter (where p.fetched_at > $1::timestamptz - interval '7 days') as fresh_7,
         count(*) filter (where p.fetched_at > $1::timestamptz - interval '30 days') as fresh_30
       from page p ${page.clause}
       join site s using (host_hash)
       group by 1, 2
     )
     select k.country, k.language, k.hosts::float8, k.pages::float8, k.bytes::float8,
       coalesce(a.sampled, 0)::float8 as sampled, coalesce(a.fresh_7, 0)::float8 as fresh_7,
       coalesce(a.fresh_30, 0)::float8 as fresh_30
     from known k
     left join aged a using (country, language)`,
    [now],
  );
  return rows;
}

const figures = `
  hosts::float8, pages::float8, bytes::float8, sampled_pages::float8 as "sampledPages", fresh_7::float8 as fresh7,
  fresh_30::float8 as fresh30`;

export interface CoverageFigures {
  readonly hosts: number;
  readonly pages: number;
  readonly bytes: number;
  /** How many pages' ages are known: all, or a sample of a large index. */
  readonly sampledPages: number;
  /** How many sampled pages were fetched within 7 and 30 days. */
  readonly fresh7: number;
  readonly fresh30: number;
}

/** One day's figures of a country and language; an unknown one is empty. */
export interface CoverageRow extends CoverageFigures {
  readonly country: string;
  readonly language: string;
}

export interface CoverageFilter {
  /** Such as `2026-03-01`; null means the latest. */
  readonly day: string | null;
  readonly country: string | null;
  readonly language: string | null;
}

interface CoverageDay {
  /** Such as `2026-03-01`. */
  readonly day: string;
  readonly countedAt: Date;
  readonly rows: readonly CoverageRow[];
}

/** Returns the figures of that day, or of the last counted day before it, or null. */
export async function coverageOn(pool: Pool, day: string): Promise<CoverageDay | null> {
  const { rows } = await pool.query<CoverageRow & { day: string; countedAt: Date }>(
    `select to_char(day, 'YYYY-MM-DD') as day, counted_at as "countedAt", country, language, ${figures}
     from coverage_day
     where day = (select max(day) from coverage_day where day <= $1::date)`,
    [day],
  );
  const [first] = rows;
  if (first === undefined) return null;
  return {
    day: first.day,
    countedAt: first.countedAt,
    rows: rows.map(({ day: _, countedAt: __, ...row }) => row),
  };
}

interface CoveragePoint extends CoverageFigures {
  readonly day: string;
}

/** Returns daily figures of one country or language, or of all, for at most two years. */
export async function coverageOverTime(
  pool: Pool,
  asked: Omit<CoverageFilter, "day"> & Pick<TimeRange, "since" | "until">,
): Promise<CoveragePoint[]> {
  const { rows } = await pool.query<CoveragePoint>(
    `select to_char(day, 'YYYY-MM-DD') as day, ${figures}
     from (
       select day, sum(hosts) as hosts, sum(pages) as pages, sum(bytes) as bytes, sum(sampled_pages) as sampled_pages,
         sum(fresh_7) as fresh_7, sum(fresh_30) as fresh_30
       from coverage_day
       where day between ($1::timestamptz at time zone 'UTC')::date and ($2::timestamptz at time zone 'UTC')::date
         and ($3::text is null or country = $3) and ($4::text is null or language = $4)
       group by day
     ) d
     order by day desc
     limit 750`,
    [asked.since, asked.until, asked.country, asked.language],
  );
  return rows.reverse();
}

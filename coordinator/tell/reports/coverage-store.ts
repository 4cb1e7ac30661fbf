/**
 * Table coverage_day: what is crawled of each country and language, counted once an hour and kept as the figures of that
 * day. Hosts, pages and bytes come from the list of sites, whole: a narrow row for each host. How old pages are is counted
 * in the index itself, of which a part is read where it is large: the same random blocks every time, so that a share does
 * not tremble from hour to hour.
 */
import type { Pool } from "pg";
import type { TimeRange } from "#core/time-range";
import { alone } from "../../database/bounded-work.ts";
import { defaultMostBytes, sampleTables } from "../../database/cached-read.ts";
import { columnsOf } from "../../database/transaction.ts";
import type { CoverageFigures, CoverageFilter, CoverageRow } from "./coverage.ts";

const lockName = "nearcrawl-coverage-day";

/**
 * Writes this day's figures (UTC) over earlier ones. Returns null while the list of sites is incomplete or another coordinator
 * counts.
 */
export async function countCoverage(
  pool: Pool,
  now: Date,
  mostBytes = defaultMostBytes,
): Promise<{ readonly rows: number } | null> {
  return await alone(pool, lockName, async () => {
    const counted = await countOf(pool, now, mostBytes);
    // A missing count is not zero.
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

interface CoverageDay {
  /** `2026-03-01`. */
  readonly day: string;
  readonly countedAt: Date;
  readonly rows: readonly CoverageRow[];
}

/** The figures of that day or the last counted day before it, or null. */
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

/** Daily figures of one country or language, or of all; at most two years. */
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

/**
 * What the crawl itself tells of the figures that an estimate assumes: pages a second of a crawler, bytes up per page,
 * links on a page, bytes per URL, how many revisited pages had changed. From the latest fetches and a part of the URLs.
 */
import type { Pool } from "pg";
import { defaultMostBytes, sampleTables } from "../database/cached-read.ts";

export interface CrawlMeasures {
  /** Pages that were fetched or found unchanged, among the latest fetches. */
  readonly pages: number;
  readonly crawlers: number;
  readonly since: string | null;
  readonly until: string | null;
  /** Of one crawler between its first and its last page; null: no crawler has two. */
  readonly pagesPerSecondPerCrawler: number | null;
  /** Shipped per page, compressed as on the wire; null: no page. */
  readonly bytesUpPerPage: number | null;
  /** Of compared revisits the share that found other content; null: none was compared. */
  readonly changedShare: number | null;
  /** Links of pages whose links are known, and how many pages those are; null: of none. */
  readonly outDegree: number | null;
  readonly pagesWithLinks: number;
  /** Characters of a URL (ASCII); null: no URL. */
  readonly urlBytes: number | null;
  /** What its row takes with every index; null: too few URLs to tell. */
  readonly storedBytesPerUrl: number | null;
}

/** With fewer URLs it is the empty parts and indexes of a new table that take the room. */
const leastUrls = 4000;

/** The latest fetches that are looked at, at most; and not what is older than a day before the last. */
const latestFetches = 200_000;

export async function measureCrawl(pool: Pool): Promise<CrawlMeasures> {
  const [fetches, urls] = await Promise.all([fetchMeasures(pool), urlMeasures(pool)]);
  return { ...fetches, ...urls };
}

async function fetchMeasures(pool: Pool) {
  const { rows } = await pool.query<{
    pages: number;
    crawlers: number;
    since: Date | null;
    until: Date | null;
    rate: number | null;
    bytes_up: number | null;
    changed_share: number | null;
  }>(
    `with latest as (
       select crawler_id, fetched_at, shipped_bytes, changed
       from page_fetch
       where fetched_at > (select max(fetched_at) - interval '1 day' from page_fetch)
         and outcome in ('fetched', 'unchanged')
       order by fetched_at desc
       limit ${latestFetches}
     ), by_crawler as (
       select count(*) as pages, min(fetched_at) as since, max(fetched_at) as until, sum(shipped_bytes) as bytes,
         count(changed) as compared, count(*) filter (where changed) as changed
       from latest
       group by crawler_id
     )
     select coalesce(sum(pages), 0)::float8 as pages, count(*)::int as crawlers, min(since) as since, max(until) as until,
       ((sum(pages - 1) filter (where until > since))
         / (sum(extract(epoch from until - since)) filter (where until > since)))::float8 as rate,
       (sum(bytes) / sum(pages))::float8 as bytes_up,
       (sum(changed) / nullif(sum(compared), 0))::float8 as changed_share
     from by_crawler`,
  );
  const row = rows[0]!;
  return {
    pages: row.pages,
    crawlers: row.crawlers,
    since: row.since?.toISOString() ?? null,
    until: row.until?.toISOString() ?? null,
    pagesPerSecondPerCrawler: row.rate,
    bytesUpPerPage: row.bytes_up,
    changedShare: row.changed_share,
  };
}

async function urlMeasures(pool: Pool) {
  const { frontier_url: sample } = await sampleTables(pool, ["frontier_url"], defaultMostBytes);
  const { rows } = await pool.query<{
    urls: number;
    url_bytes: number | null;
    out_degree: number | null;
    with_links: number;
    bytes: number;
  }>(
    `select count(*)::float8 as urls, avg(octet_length(url))::float8 as url_bytes, avg(out_links)::float8 as out_degree,
       count(out_links)::float8 as with_links,
       (select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::float8
        from pg_inherits
        where inhparent = to_regclass('frontier_url')) as bytes
     from frontier_url ${sample.clause}`,
  );
  const row = rows[0]!;
  return {
    outDegree: row.out_degree,
    pagesWithLinks: Math.round(row.with_links * sample.factor),
    urlBytes: row.url_bytes,
    storedBytesPerUrl: row.urls < leastUrls ? null : row.bytes / (row.urls * sample.factor),
  };
}

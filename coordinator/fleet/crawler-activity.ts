/** What one crawler did of late: its fetches and probes among the latest of the fleet, so that no table is read through. */
import type { Pool } from "pg";
import type { CrawlerActivity, FetchedOfLate } from "./fleet-ports.ts";

/** Latest fetches, and latest probe rounds, that are looked through. */
const window = 5000;
const fetchesShown = 10;

export async function crawlerActivity(pool: Pool, crawlerId: number): Promise<CrawlerActivity> {
  const [fetches, probes] = await Promise.all([fetchesOf(pool, crawlerId), probesOf(pool, crawlerId)]);
  return { fetches, probes };
}

async function fetchesOf(pool: Pool, crawlerId: number): Promise<FetchedOfLate[]> {
  const { rows } = await pool.query<FetchedOfLate>(
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

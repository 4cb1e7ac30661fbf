/**
 * What each crawler has and did today. Counts delegations and the day's fetches, so it takes a moment on a large
 * frontier: pages keep the answer a while.
 */
import type { Pool } from "pg";
import { roundMs } from "../database/cached-read.ts";

export interface FleetFigures {
  readonly subnets: number;
  readonly meanRttMs: number | null;
  readonly openLeases: number;
  readonly pagesToday: number;
  readonly bytesToday: number;
  readonly bodyBytesToday: number;
  readonly shippedBytesToday: number;
  /** Comparisons of its pages with others', ever. */
  readonly comparisons: number;
  /** Those that came to nothing that can be concluded. */
  readonly untold: number;
}

export const noFigures: FleetFigures = {
  subnets: 0,
  meanRttMs: null,
  openLeases: 0,
  pagesToday: 0,
  bytesToday: 0,
  bodyBytesToday: 0,
  shippedBytesToday: 0,
  comparisons: 0,
  untold: 0,
};

interface FiguresRow extends FleetFigures {
  readonly crawlerId: number;
}

/** SQL: by crawler, its comparisons that came to nothing since it was restored. */
export const untoldByCrawler = `
  select n.crawler_id, count(*) as untold
  from double_check n
  left join crawler_trust t using (crawler_id)
  where n.verdict = 'cannot-tell' and n.decided_at >= coalesce(t.restored_at, '-infinity')
  group by n.crawler_id`;

/** By the crawler's number. */
export async function fleetFigures(pool: Pool, now: Date): Promise<ReadonlyMap<number, FleetFigures>> {
  const { rows } = await pool.query<FiguresRow>(
    `select c.crawler_id as "crawlerId", coalesce(d.subnets, 0)::int as subnets,
       d.mean_rtt_ms::float8 as "meanRttMs", coalesce(l.leases, 0)::int as "openLeases",
       coalesce(f.pages, 0)::int as "pagesToday", coalesce(f.bytes, 0)::float8 as "bytesToday",
       coalesce(f.body_bytes, 0)::float8 as "bodyBytesToday",
       coalesce(f.shipped_bytes, 0)::float8 as "shippedBytesToday", coalesce(o.comparisons, 0)::int as comparisons,
       coalesce(u.untold, 0)::int as untold
     from crawler c
     left join (
       select crawler_id, count(*) as subnets, avg(rtt_ms) as mean_rtt_ms from delegation group by crawler_id
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
  return new Map(rows.map((row) => [row.crawlerId, { ...row, meanRttMs: roundMs(row.meanRttMs) }]));
}

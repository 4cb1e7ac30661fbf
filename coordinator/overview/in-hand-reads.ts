/** Hosts that crawlers have in hand now: since when, how fast, and what keeps them from going faster. */

import type { Pool } from "pg";
import { iso, isoOrNull } from "../database/cached-read.ts";
import type { HostInHand, HostsInHand, InHandSort, PaceLimit } from "./queue-api.ts";
import type { LimitCount } from "./verdict.ts";

const backOffEnd = "h.backed_off_at + h.back_off_ms * interval '1 millisecond'";

/** SQL: until then the host `h` is left alone; null: there is no back-off. $1 is now. */
const backOffUntil = `case when h.back_off_ms > 0 and ${backOffEnd} > $1 then ${backOffEnd} end`;

/** A crawler rests five times as long as the last answer took (responseTimeFactor): over 2 s, that is long. */
const slowAnswerMs = 2000;

/** Of the usual pace, a request a second. */
const usualPerHour = 3600;

/** SQL: the `PaceLimit` of the host `h`. $1 is now. */
export const paceLimit = `case
    when h.back_off_ms > 0 and ${backOffEnd} > $1 then 'back-off'
    when h.cap_delay_ms > 0 and h.cap_delay_ms >= coalesce(h.crawl_delay_ms, 0) then 'site-cap'
    when h.crawl_delay_ms > 0 then 'crawl-delay'
    when (h.tolerated ->> 'perHour')::float8 < ${usualPerHour} then 'tolerated-rate'
    when h.usual_ms >= ${slowAnswerMs} then 'slow-answers'
    else 'usual-pace'
  end`;

/** Without comparisons: those are of crawlers, not of the crawl. */
const inHand = `lease l
     join frontier_host h on h.host_hash = l.host_hash
     join crawler c on c.crawler_id = l.crawler_id
     where l.closed_at is null and not l.is_check`;

interface InHandRow {
  host: string;
  crawler: string;
  granted_at: Date;
  expires_at: Date;
  urls: number;
  open_urls: number;
  per_minute: number;
  pace_limit: PaceLimit;
  delay_ms: number | null;
  back_off_until: Date | null;
  all_hosts: number;
}

const orders: Readonly<Record<InHandSort, string>> = {
  rate: "per_minute desc, host",
  open: "open_urls desc, host",
  since: "granted_at, host",
  host: "host",
};

export async function hostsInHand(
  pool: Pool,
  { sort, most }: { readonly sort: InHandSort; readonly most: number },
  now: Date,
): Promise<HostsInHand> {
  const { rows } = await pool.query<InHandRow>(
    `select l.host, c.name as crawler, l.granted_at, l.expires_at, l.url_count as urls, l.open_urls,
       (60 * (l.url_count - l.open_urls) / greatest(1, extract(epoch from $1::timestamptz - l.granted_at)))::float8
         as per_minute,
       ${paceLimit} as pace_limit, greatest(h.crawl_delay_ms, h.cap_delay_ms) as delay_ms,
       ${backOffUntil} as back_off_until, count(*) over ()::float8 as all_hosts
     from ${inHand}
     order by ${orders[sort]}
     limit $2`,
    [now, most],
  );
  return { at: iso(now), hosts: rows[0]?.all_hosts ?? 0, shown: rows.map(hostOf) };
}

function hostOf(row: InHandRow): HostInHand {
  return {
    host: row.host,
    crawler: row.crawler,
    since: iso(row.granted_at),
    expiresAt: iso(row.expires_at),
    urls: row.urls,
    openUrls: row.open_urls,
    urlsPerMinute: Math.round(row.per_minute * 10) / 10,
    limit: row.pace_limit,
    delayMs: row.delay_ms === 0 ? null : row.delay_ms,
    backOffUntil: isoOrNull(row.back_off_until),
  };
}

export async function limitsInHand(pool: Pool, now: Date): Promise<LimitCount[]> {
  const { rows } = await pool.query<{ limit: PaceLimit; hosts: number }>(
    `select ${paceLimit} as limit, count(*)::float8 as hosts
     from ${inHand}
     group by 1`,
    [now],
  );
  return rows;
}

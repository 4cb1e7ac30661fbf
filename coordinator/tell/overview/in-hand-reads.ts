/** Hosts that crawlers have in hand now: since when, how fast, and what keeps them from going faster. */

import type { Pool } from "pg";
import { toldRows } from "../../database/cached-read.ts";
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

const orders: Readonly<Record<InHandSort, string>> = {
  rate: `"urlsPerMinute" desc, host`,
  open: `"openUrls" desc, host`,
  since: "since, host",
  host: "host",
};

export async function hostsInHand(
  pool: Pool,
  { sort, most }: { readonly sort: InHandSort; readonly most: number },
  now: Date,
): Promise<HostsInHand> {
  const rows = await toldRows<HostInHand & { readonly all: number }>(
    pool,
    `select l.host, c.name as crawler, l.granted_at as since, l.expires_at as "expiresAt", l.url_count as urls,
       l.open_urls as "openUrls",
       round(
         60 * (l.url_count - l.open_urls) / greatest(1, extract(epoch from $1::timestamptz - l.granted_at)), 1
       )::float8 as "urlsPerMinute",
       ${paceLimit} as limit, nullif(greatest(h.crawl_delay_ms, h.cap_delay_ms), 0) as "delayMs",
       ${backOffUntil} as "backOffUntil", count(*) over ()::float8 as all
     from ${inHand}
     order by ${orders[sort]}
     limit $2`,
    [now, most],
  );
  const shown = rows.map(({ all: _, ...host }) => host);
  return { at: now.toISOString(), hosts: rows[0]?.all ?? 0, shown };
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

/** What the fleet fetched, again and for the first time, what it may, and how much of its work is late. */
import type { Pool } from "pg";
import type { MeasuredFetches } from "./measured-capacity.ts";

const dayMs = 86_400_000;

export async function measuredFetches(
  pool: Pool,
  window: { readonly from: Date; readonly last: Date; readonly now: Date; readonly lateSeconds: number },
): Promise<MeasuredFetches> {
  const { from, last, now, lateSeconds } = window;
  const { rows } = await pool.query<{ again: number; first: number; late_share: number }>(
    `select fetches.again, fetches.first, hosts.late_share
     from (
       select count(gap_seconds)::float8 as again, (count(*) - count(gap_seconds))::float8 as first
       from page_fetch
       where fetched_at > $1 and fetched_at <= $2 and outcome not in ('refused-by-robots', 'refused-address')
     ) fetches, (
       select coalesce(avg(case when due_at < $3 then 1 else 0 end), 0)::float8 as late_share
       from frontier_host
       where state = 'resolved' and fetched_urls > 0 and opt_out_id is null
     ) hosts`,
    [from, now, new Date(now.getTime() - lateSeconds * 1000)],
  );
  const { again, first, late_share: lateShare } = rows[0]!;
  // A clock that was set back leaves no window.
  const days = (since: Date) => Math.max(0, (now.getTime() - since.getTime()) / dayMs);
  return { windowDays: days(from), sinceLastDays: days(last), again, first, lateShare };
}

export async function allowedPerDay(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pages: number }>(
    `select coalesce(sum(pages_per_day), 0)::float8 as pages
     from crawler
     where state = 'online' and revoked_at is null`,
  );
  return rows[0]!.pages;
}

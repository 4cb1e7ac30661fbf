/** Removes leases some time after they closed. The deleting statement counts how they ended, by day, in table day_figures. */
import type { Pool } from "pg";
import { alone, inTurns, type TurnClock } from "../../database/bounded-work.ts";

const lockName = "nearcrawl-closed-leases";

const deletedAtOnce = 5000;

/**
 * Removes leases closed before then; returns null when another coordinator is doing so. Walks leases in the order
 * granted up to the first younger one, since none closes before it is granted.
 */
export async function forgetClosedLeases(pool: Pool, before: Date, turn: TurnClock): Promise<number | null> {
  return await alone(pool, lockName, async () => {
    let [after, deleted] = ["0", 0];
    await inTurns(turn, async () => {
      const { rows } = await pool.query<{ last: string | null; more: boolean; deleted: number }>(forgetSql, [
        after,
        deletedAtOnce,
        before,
      ]);
      const [{ last, more, deleted: now }] = rows as [(typeof rows)[number]];
      deleted += now;
      after = last ?? after;
      return more ? 1 : 0;
    });
    return deleted;
  });
}

const forgetSql = `
  with looked as materialized (
    select lease_id, granted_at, closed_at
    from lease
    where lease_id > $1::bigint
    order by lease_id
    limit $2
  ), gone as (
    delete from lease
    where lease_id = any (array (select lease_id from looked where closed_at < $3))
    returning closed_at, ending, url_count
  ), counted as (
    insert into day_figures as d (day, leases_done, leases_expired, leases_returned, leased_urls)
    select (closed_at at time zone 'UTC')::date, count(*) filter (where ending = 'done'),
      count(*) filter (where ending = 'expired'), count(*) filter (where ending = 'returned'), sum(url_count)
    from gone
    group by 1
    order by 1
    on conflict (day) do update
    set leases_done = d.leases_done + excluded.leases_done,
        leases_expired = d.leases_expired + excluded.leases_expired,
        leases_returned = d.leases_returned + excluded.leases_returned,
        leased_urls = d.leased_urls + excluded.leased_urls
  )
  select max(lease_id) as last, count(*) = $2 and bool_and(granted_at < $3) as more,
    (select count(*)::int from gone) as deleted
  from looked`;

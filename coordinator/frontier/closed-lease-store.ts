/**
 * Closed leases are let go after a while: a lease is needed while it is open. Table day_figures, which is shared, keeps how they
 * ended. The slice counts them by day in the statement that deletes them; then it makes a report of what it has counted, with
 * a number; the shared side adds up a report whose number is larger than the last one's; the slice forgets it. Whoever is ended
 * in between goes on with the same report.
 */
import type { Pool } from "pg";
import { alone, inTurns, type TurnClock } from "../database/bounded-work.ts";
import { inTransaction } from "../database/transaction.ts";

const lockName = "nearcrawl-closed-leases";

const deletedAtOnce = 5000;

/**
 * Of a slice (`pool`) those that closed before then; null: another coordinator is at it. Leases are walked in the order in which
 * they were granted, up to the first that is younger: no lease was closed before it was granted. `shared`: where the shared
 * tables are written.
 */
export async function forgetClosedLeases(
  pool: Pool,
  before: Date,
  turn: TurnClock,
  shared: Pool = pool,
): Promise<number | null> {
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
    await reportClosedLeases(pool, shared);
    return deleted;
  });
}

/** A report that was under way when somebody was ended goes first. Nothing was counted: nothing is reported. */
export async function reportClosedLeases(pool: Pool, shared: Pool): Promise<void> {
  for (let report = await underWay(pool); report !== null; report = await nextReport(pool)) {
    await receive(shared, report);
    await pool.query("update closed_lease_report set days = null where report_number = $1", [
      report.report_number,
    ]);
  }
}

interface Report {
  readonly slice_number: number;
  readonly report_number: string;
  readonly days: unknown;
}

async function underWay(pool: Pool): Promise<Report | null> {
  const { rows } = await pool.query<Report>(
    `select s.slice_number, r.report_number, r.days
     from closed_lease_report r
     cross join slice_self s
     where r.days is not null`,
  );
  return rows[0] ?? (await nextReport(pool));
}

/** Its number is a time, so that a slice that was restored from a copy tells none that it has told already. */
async function nextReport(pool: Pool): Promise<Report | null> {
  const { rows } = await pool.query<Report>(
    `with taken as (
       delete from closed_lease_day returning *
     ),
     made as (
       update closed_lease_report
       set report_number = greatest(report_number + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint),
           days = (select jsonb_agg(to_jsonb(taken)) from taken)
       where exists (select from taken)
       returning report_number, days
     )
     select s.slice_number, made.report_number, made.days
     from made
     cross join slice_self s`,
  );
  return rows[0] ?? null;
}

async function receive(shared: Pool, report: Report): Promise<void> {
  await inTransaction(shared, async (client) => {
    const { rowCount } = await client.query(
      `insert into closed_lease_receipt as known (slice_number, report_number)
       values ($1, $2)
       on conflict (slice_number) do update set report_number = excluded.report_number
       where known.report_number < excluded.report_number`,
      [report.slice_number, report.report_number],
    );
    if (rowCount === 0) return;
    await client.query(
      `insert into day_figures as d (day, leases_done, leases_expired, leases_returned, leased_urls)
       select day, leases_done, leases_expired, leases_returned, leased_urls
       from jsonb_to_recordset($1) as given
         (day date, leases_done bigint, leases_expired bigint, leases_returned bigint, leased_urls bigint)
       order by day
       on conflict (day) do update
       set leases_done = d.leases_done + excluded.leases_done,
           leases_expired = d.leases_expired + excluded.leases_expired,
           leases_returned = d.leases_returned + excluded.leases_returned,
           leased_urls = d.leased_urls + excluded.leased_urls`,
      [JSON.stringify(report.days)],
    );
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
    insert into closed_lease_day as d (day, leases_done, leases_expired, leases_returned, leased_urls)
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

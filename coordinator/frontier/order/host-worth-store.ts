/**
 * Column worth of frontier_host: what the best due URL of a host is worth under the frontier's order. A lease leaves it
 * as it is without the URLs that it takes (lease-hosts.ts); what links, ranks and time make of it is reckoned here, host
 * after host in the order in which they are due, and from the start again.
 */
import type { Pool } from "pg";
import { worthSql } from "./order-sql.ts";
import type { OrderName } from "./strategies.ts";

/** The last host that was reckoned: when it became due, and its hash. */
export interface ReckonedUntil {
  readonly dueAt: string;
  readonly hostHash: string;
}

/** At the start of a round. */
export const reckonFromStart: ReckonedUntil = { dueAt: "-infinity", hostHash: String(-(2n ** 63n)) };

const hostsAtATime = 100;

/** Less is no other worth: scores that go by age grow all the time. */
const noticeable = 0.02;

/** The next hosts; null: all that are due were reckoned. Hosts that others have in hand are passed over. */
export async function reckonWorths(
  pool: Pool,
  order: OrderName,
  at: { readonly after: ReckonedUntil; readonly now: Date },
): Promise<ReckonedUntil | null> {
  const { rows } = await pool.query<ReckonedUntil>(reckonStatement(order), [
    at.now,
    at.after.dueAt,
    at.after.hostHash,
  ]);
  return rows.length < hostsAtATime ? null : rows.at(-1)!;
}

const reckonStatement = (order: OrderName) => `
  with h as materialized (
    select host_hash, due_at, worth
    from frontier_host
    where state = 'resolved' and lease_id is null and due_at <= $1
      and (due_at, host_hash) > ($2::timestamptz, $3::bigint)
    order by due_at, host_hash
    limit ${hostsAtATime}
  ), reckoned as materialized (
    select h.host_hash, h.worth as before, ${worthSql(order, "$1")} as worth
    from h
  ), free as materialized (
    select own.host_hash
    from frontier_host own
    where own.lease_id is null
      and own.host_hash = any(array(
        select r.host_hash
        from reckoned r
        where r.worth is distinct from r.before
          and coalesce(abs(r.worth - r.before) > ${noticeable} * abs(r.before), true)
      ))
    order by own.host_hash
    for update skip locked
  ), written as (
    update frontier_host own
    set worth = r.worth
    from reckoned r
    join free using (host_hash)
    where own.host_hash = r.host_hash
  )
  select text(h.due_at) as "dueAt", h.host_hash as "hostHash"
  from h
  order by h.due_at, h.host_hash`;

/** Where the order does not ask for them; a batch, true: there may be more. */
export async function forgetWorths(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update frontier_host own
     set worth = null
     from (
       select host_hash
       from frontier_host
       where worth is not null and lease_id is null and state = 'resolved'
       order by worth desc, host_hash
       limit ${hostsAtATime}
       for update skip locked
     ) free
     where own.host_hash = free.host_hash`,
  );
  return rowCount === hostsAtATime;
}

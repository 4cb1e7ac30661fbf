/**
 * The strategies of core/order as SQL, over a row `u` of frontier_url and a row `r` of url_rank, so that the most urgent
 * URLs of a host are found where they are. A test holds both against each other. Postgres raises an error where exp()
 * underflows, which JavaScript calls 0: beyond e^-700 it is not asked.
 */

import type { Pool } from "pg";
import { mostOwed, roundingError } from "./mix.ts";
import {
  crawlSeconds,
  type FrontierOrder,
  type OrderName,
  unknownChangeRatio,
  unknownChangesPerDay,
} from "./strategies.ts";

/** Due URLs of a host that are looked at, the longest due: what a lease of a host with a billion of them costs. */
export const dueUrlsLookedAt = 2000;

/** Of a row `u`, with `now` as the instant's parameter. New: it was never visited. */
export const isNewSql = "u.last_fetched_at is null";

const ageSeconds = (now: string) =>
  `greatest(0, extract(epoch from ${now}::timestamptz - u.last_fetched_at))::float8`;

const staleness = (now: string) =>
  `case when ${isNewSql} then 1
     else 1 - exp(greatest(-700, -coalesce(u.changes_per_day::float8, ${unknownChangesPerDay}) * ${ageSeconds(now)} / 86400)) end`;

const scores: Readonly<Record<OrderName, (now: string) => string>> = {
  "breadth-first": (now) => `extract(epoch from ${now}::timestamptz - u.next_fetch_at)::float8`,
  "back-links": () => "u.back_links::float8",
  anansi: (now) =>
    `case when ${isNewSql} then u.back_links::float8
       else coalesce(u.change_ratio::float8, ${unknownChangeRatio}) * (${ageSeconds(now)} / ${crawlSeconds})
         * (u.back_links + coalesce(u.out_links, 0)) end`,
  pagerank: () => "coalesce(r.page_rank::float8, 0)",
  freshness: (now) => `(${staleness(now)}) * (1 + u.back_links)::float8`,
};

/** Higher goes first. */
export function scoreSql(name: OrderName, now: string): string {
  return scores[name](now);
}

/** The row `r` where a strategy asks for it, and nothing elsewhere. */
export function rankJoin(name: OrderName): string {
  if (name !== "pagerank") return "";
  return "left join url_rank r on r.host_hash = u.host_hash and r.url_hash = u.url_hash";
}

/**
 * The due URLs of host `h` as they follow each other: `url_hash`, `is_new`, the `score`, and the `place` in its list (1:
 * first).
 * Looked at are the longest due (dueUrlsLookedAt), without those of `except`, an array of hashes. `now`: the instant's
 * parameter.
 */
export function placedUrls(name: OrderName, now: string, except?: string): string {
  return `
         select u.url_hash, ${isNewSql} as is_new, ${scoreSql(name, now)} as score,
           row_number() over (
             partition by ${isNewSql}
             order by ${scoreSql(name, now)} desc, u.next_fetch_at, u.depth, u.url_hash
           ) as place
         from (
           select *
           from frontier_url
           where host_hash = h.host_hash and state = 'due' and next_fetch_at <= ${now}
             ${except === undefined ? "" : `and url_hash <> all(${except})`}
           order by next_fetch_at
           limit ${dueUrlsLookedAt}
         ) u
         ${rankJoin(name)}`;
}

/** The best score of the new URLs that are due of host `h`, as frontier/order/host-turns has it; as above otherwise. */
export function worthSql(name: OrderName, now: string): string {
  return `(select max(placed.score) filter (where placed.is_new) from (${placedUrls(name, now)}) placed)`;
}

/** How a lease's URLs of one host are chosen, as frontier/order/mix and host-turns do it. */
export interface LeaseOrder {
  /**
   * One row about host `h`: the keys of its `items` in their order, `is_mixed`, and `rest_worth`, what its best new URL
   * is worth without them. `$2` is the instant, `$7` the most of them, `$8` the share for new ones, `$9`, beside the hosts
   * of `$4`, the least score of those that go by their worth (null: new and old ones are mixed).
   */
  readonly picked: string;
  /** `$8`. */
  readonly newShare: number;
}

/** Null: the longest due first, which needs none of this. */
export function leaseOrder(order: FrontierOrder | undefined): LeaseOrder | null {
  if (order === undefined || order.name === "breadth-first") return null;
  return { picked: picked(order.name), newShare: order.newShare };
}

/** Of host `h`, a row of frontier_host. */
const carried = (h: string) =>
  `coalesce(${h}.mix_carry, ((${h}.host_hash % 1000 + 1000) % 1000) / 1000.0::float8)`;

const exactSlots = (h: string) => `($7::int * $8::float8 + ${carried(h)})`;
const wholeSlots = (h: string) => `least($7::int, greatest(0, floor(${exactSlots(h)} + ${roundingError})))`;

/** What host `h`, a row of frontier_host, carries to its next lease, after `taken` URLs in one that was mixed or not. */
export const nextCarry = (h: string, { isMixed, taken }: { isMixed: string; taken: string }): string => `case
          when ${isMixed} then least(1, ${exactSlots(h)} - ${wholeSlots(h)})
          else greatest(-${mostOwed}, ${carried(h)} - ${taken} * (1 - $8::float8)) end`;

const leastScore = "($9::float8[])[array_position($4::bigint[], h.host_hash)]";

const picked = (name: OrderName) => `
       select array_agg(url_hash order by turn) filter (where is_taken) as items, not bool_or(is_worthy) as is_mixed,
         max(score) filter (where is_new and not is_taken) as rest_worth
       from (
         select *, turn <= $7::int and (is_worthy or not bool_or(is_worthy) over ()) as is_taken
         from (
           select url_hash, is_new, score, coalesce(is_new and score >= ${leastScore}, false) as is_worthy,
             row_number() over (
               order by coalesce(is_new and score >= ${leastScore}, false) desc, place / greatest(quota, 0.5), is_new desc
             ) as turn
           from (
             select url_hash, is_new, score, place,
               case when is_new then mix.for_new else $7::int - mix.for_new end as quota
             from (select ${wholeSlots("own")} as for_new from frontier_host own where own.host_hash = h.host_hash) mix
             cross join (${placedUrls(name, "$2")}) placed
           ) listed
         ) in_turn
       ) told`;

// Column worth of frontier_host: what the best due URL of a host is worth under the frontier's order. A lease leaves it
// as it is without the URLs that it takes (lease-hosts.ts); what links, ranks and time make of it is reckoned here, host
// after host in the order in which they are due, and from the start again.

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

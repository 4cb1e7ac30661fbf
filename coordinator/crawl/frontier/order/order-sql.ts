/**
 * The strategies of strategies.ts as SQL over rows `u` of frontier_url and `r` of url_rank, to find a host's most
 * urgent URLs in the database. A test compares both.
 */

import type { Pool } from "pg";
import { firstHosts } from "../budgets.ts";
import {
  crawlSeconds,
  type FrontierOrder,
  mostOwed,
  type OrderName,
  roundingError,
  unknownChangeRatio,
} from "./strategies.ts";

/** Maximum due URLs examined per host, longest due first. It bounds the cost for a host with a billion. */
export const dueUrlsLookedAt = 2000;

export const isNewSql = "u.last_fetched_at is null";

const ageSeconds = (now: string) =>
  `greatest(0, extract(epoch from ${now}::timestamptz - u.last_fetched_at))::float8`;

/** Higher goes first. `now` is the parameter of the time. */
const scores: Readonly<Record<OrderName, (now: string) => string>> = {
  "breadth-first": (now) => `extract(epoch from ${now}::timestamptz - u.next_fetch_at)::float8`,
  "back-links": () => "u.back_links::float8",
  anansi: (now) =>
    `case when ${isNewSql} then u.back_links::float8
       else coalesce(u.change_ratio::float8, ${unknownChangeRatio}) * (${ageSeconds(now)} / ${crawlSeconds})
         * (u.back_links + coalesce(u.out_links, 0)) end`,
  pagerank: () => "coalesce(r.page_rank::float8, 0)",
};

const soonFirst = "u.score desc, u.next_fetch_at, u.depth, u.url_hash";

/**
 * The examined due URLs of host `h` (dueUrlsLookedAt), except the hashes in `except`: `url_hash`, `is_new`, the `score` and
 * the tie-breakers. `now` is the parameter of the time.
 */
function scoredUrls(name: OrderName, now: string, except?: string): string {
  const looked = `
           select *
           from frontier_url
           where host_hash = h.host_hash and state = 'due' and next_fetch_at <= ${now}
             ${except === undefined ? "" : `and url_hash <> all(${except})`}
           order by next_fetch_at
           limit ${dueUrlsLookedAt}`;
  const columns = `u.url_hash, ${isNewSql} as is_new, ${scores[name](now)} as score, u.next_fetch_at, u.depth`;
  if (name !== "pagerank") return `select ${columns} from (${looked}) u`;
  return `
         with looked as materialized (${looked}
         )
         select ${columns}
         from looked u
         left join (${ranksOf("h.host_hash", "array(select url_hash from looked)")}) r on r.url_hash = u.url_hash`;
}

/** The offset makes the planner look up only these URLs. */
const ranksOf = (hostHash: string, urlHashes: string) =>
  `select url_hash, page_rank from url_rank where host_hash = ${hostHash} and url_hash = any(${urlHashes}) offset 0`;

/** The due URLs of host `h` in order: `url_hash`, `is_new`, `score` and 1-based `place` in its list. Parameters as above. */
export function placedUrls(name: OrderName, now: string, except?: string): string {
  return `
         select u.url_hash, u.is_new, u.score, row_number() over (partition by u.is_new order by ${soonFirst}) as place
         from (${scoredUrls(name, now, except)}) u`;
}

/**
 * SQL parts that choose leases' URLs as `shareOf` and `spreadLists` do: `before` precedes the part `due`, and `after` follows
 * it. `$2` is the time, `$4` the hosts, `$7` the maximum URLs of each, `$8` the share for new ones, `$9` the minimum score
 * for hosts chosen by worth (null mixes new and old), `$10` each host's carry.
 */
export interface LeaseOrder {
  readonly before: string;
  /** The URLs leased of each host, in order (`host_hash`, `turn`, `is_new`, columns of frontier_url). */
  readonly due: string;
  /** Ends with `left_over` per host: `rest_worth` (its best remaining new URL's worth) and `next_carry`. */
  readonly after: string;
  readonly newShare: number;
}

/** Null for longest due first, which needs none of this SQL. */
export function leaseOrder(order: FrontierOrder | undefined): LeaseOrder | null {
  if (order === undefined || order.name === "breadth-first") return null;
  return { before: before(order.name), due, after: after(order.name), newShare: order.newShare };
}

// Table url_shortlist: the first entries of both lists of a host with many due URLs, so that not every lease scores all of
// them. A lease takes the next entries that are still due. It rebuilds a shortlist that is used up, old or made for another
// order. URLs that become due or gain links meanwhile wait for the next shortlist.

/** Hosts with fewer due URLs have no shortlist. */
const fewUrls = 100;

/** Maximum entries of each list, new and old: fifteen slices of twenty. */
const listedUrls = 300;

/** Age at which a shortlist is rebuilt. A host asked once a second has fifteen to thirty slices of twenty fetched by then. */
const listMinutes = 10;

/** Extra entries examined, since some may no longer be due. */
const spareUrls = 4;

const carried = "coalesce(h.mix_carry, ((h.host_hash % 1000 + 1000) % 1000) / 1000.0::float8)";

/** Merges both lists in proportion to their quotas (spreadLists in strategies.ts). */
const byQuota = (u: string, h: string) =>
  `${u}.place / greatest(case when ${u}.is_new then ${h}.for_new else ${h}.slots - ${h}.for_new end, 0.5), ${u}.is_new desc`;

/** The list's next entries from `used` that a lease may need. One more shows the next score. */
const nextOf = (list: string, used: string) => `${list}[${used} + 1:${used} + h.slots + ${spareUrls + 1}]`;

const urgentFirst = (which: string) => `(
      select * from scored u where ${which} order by ${soonFirst} limit h.slots + ${listedUrls}
    ) u`;

/**
 * Both lists of each host, stored (`kept`) or rebuilt (`made`). `listed` combines what is examined, in order, and
 * `due` is the part that is leased.
 */
const before = (name: OrderName) => `
  asked as materialized (
    select *, least(slots, greatest(0, floor(exact + ${roundingError})))::int as for_new
    from (
      select h.host_hash, h.slots, h.least_worth, ${carried} as carried, h.slots * $8::float8 + ${carried} as exact
      from unnest($4::bigint[], $7::int[], $9::float8[], $10::float8[]) as h (host_hash, slots, least_worth, mix_carry)
    ) h
  ), kept as materialized (
    select h.*, ${nextOf("s.new_urls", "s.new_used")} as new_urls, ${nextOf("s.old_urls", "s.old_used")} as old_urls,
      ${nextOf("s.new_worths", "s.new_used")} as worths
    from asked h
    cross join lateral (select * from url_shortlist where host_hash = h.host_hash offset 0) s
    where s.order_name = '${name}'
      and s.made_at > $2::timestamptz - interval '${listMinutes} min'
      and s.made_at < $2::timestamptz + interval '${listMinutes} min'
  ), enough as materialized (
    select * from kept where cardinality(new_urls) + cardinality(old_urls) > slots
  ), made as materialized (
    select h.*, m.looked_at, coalesce(m.new_urls, '{}') as new_urls, coalesce(m.worths, '{}') as worths,
      coalesce(m.old_urls, '{}') as old_urls
    from asked h
    cross join lateral (
      with scored as materialized (${scoredUrls(name, "$2")})
      select looked.looked_at, new_ones.urls as new_urls, new_ones.worths, old_ones.urls as old_urls
      from (select count(*) as looked_at from scored) looked,
        (select array_agg(url_hash) as urls, array_agg(score) as worths from ${urgentFirst("u.is_new")}) new_ones,
        (select array_agg(url_hash) as urls from ${urgentFirst("not u.is_new")}) old_ones
    ) m
    where h.host_hash <> all(array(select host_hash from enough))
  ), listed as materialized (
    select l.host_hash, l.slots, l.for_new, l.exact, l.carried, l.worths, l.is_made, worthy = 0 as is_mixed,
      l.new_urls[:case when worthy > 0 then worthy
        else ${spareUrls} + greatest(for_new, slots - cardinality(l.old_urls)) end] as new_urls,
      case when worthy > 0 then '{}' else
        l.old_urls[:${spareUrls} + greatest(slots - for_new, slots - cardinality(l.new_urls))] end as old_urls
    from (
      select host_hash, slots, for_new, exact, carried, new_urls, old_urls, worths::float8[] as worths, false as is_made,
        (select count(*)::int from unnest(worths[:slots + ${spareUrls}]) as worth where worth >= least_worth::real) as worthy
      from enough
      union all
      select host_hash, slots, for_new, exact, carried, ${nextOf("new_urls", "0")}, ${nextOf("old_urls", "0")},
        ${nextOf("worths", "0")}, true,
        (select count(*)::int from unnest(worths[:slots]) as worth where worth >= least_worth)
      from made h
    ) l
  ), `;

const due = `
    select l.host_hash, u.url_hash, row_number() over () as turn, u.is_new, u.listed_at, ${leasedColumns("u")}
    from listed l
    cross join lateral (
      select *
      from (
        select *, row_number() over (partition by is_new order by listed_at) as place
        from (
          select one.url_hash, ${leasedColumns("one")}, one.url_hash = any(l.new_urls) as is_new,
            coalesce(array_position(l.new_urls, one.url_hash), array_position(l.old_urls, one.url_hash)) as listed_at
          from (
            -- Looked up by key: since most hosts have few URLs, the planner would otherwise read all due ones of a
            -- host.
            select *
            from frontier_url
            where host_hash = l.host_hash and url_hash = any(l.new_urls || l.old_urls)
            offset 0
          ) one
          where state = 'due' and next_fetch_at <= $2
        ) u
      ) u
      order by ${byQuota("u", "l")}
      limit l.slots
    ) u`;

export function leasedColumns(u: string): string {
  return ["url", "depth", "etag", "last_modified", "digest", "redirects"]
    .map((name) => `${u}.${name}`)
    .join(", ");
}

/** SQL: the carry after a lease, whether mixed or of new URLs only. */
const carryAfter = (one: { isMixed: string; placesOfNew: string; taken: string }) => `case
        when ${one.isMixed} then least(1, h.exact - ${one.placesOfNew})
        else greatest(-${mostOwed}, h.carried - ${one.taken} * (1 - $8::float8)) end`;

const after = (name: OrderName) => `, used as materialized (
    -- Moves past entries before the leased ones that were no longer due, or past all that were examined.
    select l.host_hash, l.is_made, l.is_mixed, l.exact, l.for_new, l.carried, taken.urls, l.worths,
      coalesce(taken.last_new, case when taken.urls is null then cardinality(l.new_urls) else 0 end) as new_used,
      coalesce(taken.last_old, case when taken.urls is null then cardinality(l.old_urls) else 0 end) as old_used
    from listed l
    left join (
      select host_hash, count(*) as urls, max(listed_at) filter (where is_new) as last_new,
        max(listed_at) filter (where not is_new) as last_old
      from due
      group by host_hash
    ) taken using (host_hash)
    where cardinality(l.new_urls) + cardinality(l.old_urls) > 0
  ), list_used as (
    update url_shortlist s
    set new_used = s.new_used + u.new_used, old_used = s.old_used + u.old_used
    from used u
    where s.host_hash = u.host_hash and not u.is_made
      and s.host_hash = any($4::bigint[])
  ), list_made as (
    insert into url_shortlist (host_hash, order_name, made_at, new_urls, new_worths, old_urls, new_used, old_used)
    select m.host_hash, '${name}', $2, m.new_urls, m.worths, m.old_urls, u.new_used, u.old_used
    from made m
    join used u using (host_hash)
    where m.looked_at > ${fewUrls}
    on conflict (host_hash) do update
    set order_name = excluded.order_name, made_at = excluded.made_at, new_urls = excluded.new_urls,
      new_worths = excluded.new_worths, old_urls = excluded.old_urls, new_used = excluded.new_used,
      old_used = excluded.old_used
  ), left_over as (
    select h.host_hash, h.worths[h.new_used + 1] as rest_worth,
      ${carryAfter({ isMixed: "h.is_mixed", placesOfNew: "h.for_new", taken: "h.urls" })} as next_carry
    from used h
  )`;

/** Removes a batch of shortlists that no lease will use. Returns true if there may be more. */
export async function forgetShortlists(pool: Pool, now: Date): Promise<boolean> {
  const { rowCount } = await pool.query(
    `delete from url_shortlist
     where host_hash = any(array(
       select host_hash
       from url_shortlist
       where made_at < $1::timestamptz - interval '${listMinutes} min'
       order by made_at
       limit ${hostsAtATime}
       for update skip locked
     ))`,
    [now],
  );
  return rowCount === hostsAtATime;
}

// Column worth of frontier_host: the worth of its best due URL under the frontier's order. A lease updates it for the URLs it
// takes (host-lease-writes.ts). Changes by links, ranks and time are computed here, host by host in due order, over and over.

export interface ReckonedUntil {
  readonly dueAt: string;
  readonly hostHash: string;
}

export const reckonFromStart: ReckonedUntil = { dueAt: "-infinity", hostHash: String(-(2n ** 63n)) };

const hostsAtATime = 100;

/** Smaller changes are not written, since scores by age grow all the time. */
const noticeable = 0.02;

/** Computes the next hosts. Returns null after the last due one. Skips locked hosts. */
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

/** SQL: the worth of host `h`. Null for hosts beyond their domain's first ones, which go by due time. */
export const ofFirstHosts = (worth: string): string =>
  `case when h.domain_place < ${firstHosts} then ${worth} end`;

const bestNewScore = (order: OrderName) =>
  `(select max(u.score) filter (where u.is_new) from (${scoredUrls(order, "$1")}) u)`;

const reckonStatement = (order: OrderName) => `
  with h as materialized (
    select host_hash, due_at, worth, domain_place
    from frontier_host
    where state = 'resolved' and lease_id is null and due_at <= $1
      and (due_at, host_hash) > ($2::timestamptz, $3::bigint)
    order by due_at, host_hash
    limit ${hostsAtATime}
  ), reckoned as materialized (
    select h.host_hash, h.worth as before, ${ofFirstHosts(bestNewScore(order))} as worth
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

/** Clears a batch of worths that the order does not use. Returns true if there may be more. */
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

/**
 * The strategies of strategies.ts as SQL, over a row `u` of frontier_url and a row `r` of url_rank, so that the most urgent
 * URLs of a host are found where they are. A test holds both against each other.
 */

import type { Pool } from "pg";
import { firstHosts } from "../budgets.ts";
import { mostOwed, roundingError } from "./mix.ts";
import { crawlSeconds, type FrontierOrder, type OrderName, unknownChangeRatio } from "./strategies.ts";

/** Due URLs of a host that are looked at, the longest due: what a lease of a host with a billion of them costs. */
export const dueUrlsLookedAt = 2000;

/** Of a row `u`, with `now` as the instant's parameter. New: it was never visited. */
export const isNewSql = "u.last_fetched_at is null";

const ageSeconds = (now: string) =>
  `greatest(0, extract(epoch from ${now}::timestamptz - u.last_fetched_at))::float8`;

const scores: Readonly<Record<OrderName, (now: string) => string>> = {
  "breadth-first": (now) => `extract(epoch from ${now}::timestamptz - u.next_fetch_at)::float8`,
  "back-links": () => "u.back_links::float8",
  anansi: (now) =>
    `case when ${isNewSql} then u.back_links::float8
       else coalesce(u.change_ratio::float8, ${unknownChangeRatio}) * (${ageSeconds(now)} / ${crawlSeconds})
         * (u.back_links + coalesce(u.out_links, 0)) end`,
  pagerank: () => "coalesce(r.page_rank::float8, 0)",
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

const soonFirst = "u.score desc, u.next_fetch_at, u.depth, u.url_hash";

/**
 * The due URLs of host `h` that are looked at, the longest due (dueUrlsLookedAt), without those of `except`, an array of
 * hashes: `url_hash`, `is_new`, the `score`, and by what those of one score follow each other. `now`: the instant's
 * parameter.
 */
function scoredUrls(name: OrderName, now: string, except?: string): string {
  const looked = `
           select *
           from frontier_url
           where host_hash = h.host_hash and state = 'due' and next_fetch_at <= ${now}
             ${except === undefined ? "" : `and url_hash <> all(${except})`}
           order by next_fetch_at
           limit ${dueUrlsLookedAt}`;
  const columns = `u.url_hash, ${isNewSql} as is_new, ${scoreSql(name, now)} as score, u.next_fetch_at, u.depth`;
  if (name !== "pagerank") return `select ${columns} from (${looked}) u`;
  return `
         with looked as materialized (${looked}
         )
         select ${columns}
         from looked u
         left join (${ranksOf("h.host_hash", "array(select url_hash from looked)")}) r on r.url_hash = u.url_hash`;
}

/** Of these URLs of a host; the offset has the planner ask for nothing but them. */
const ranksOf = (hostHash: string, urlHashes: string) =>
  `select url_hash, page_rank from url_rank where host_hash = ${hostHash} and url_hash = any(${urlHashes}) offset 0`;

/**
 * The due URLs of host `h` as they follow each other: `url_hash`, `is_new`, the `score`, and the `place` in its list (1:
 * first). As above otherwise.
 */
export function placedUrls(name: OrderName, now: string, except?: string): string {
  return `
         select u.url_hash, u.is_new, u.score, row_number() over (partition by u.is_new order by ${soonFirst}) as place
         from (${scoredUrls(name, now, except)}) u`;
}

/** The best score of the new URLs that are due of host `h`, as mix.ts has it; as above otherwise. */
export function worthSql(name: OrderName, now: string): string {
  return `(select max(u.score) filter (where u.is_new) from (${scoredUrls(name, now)}) u)`;
}

/**
 * How leases' URLs are chosen, as mix.ts does it: parts of a statement, `before` the part `due` and
 * `after` it. `$2` is the instant, `$4` are the hosts, `$7` so many URLs of each at most, `$8` is the share for new ones, `$9`
 * the least score of those that go by their worth (null: new and old ones are mixed), `$10` what was carried to each.
 */
export interface LeaseOrder {
  readonly before: string;
  /** What `due` is: the leased of each host in their order (`host_hash`, `turn`, `is_new`, columns of frontier_url). */
  readonly due: string;
  /** The last of these is `left_over`, of each host: `rest_worth`, what its best new URL is worth without them, `next_carry`. */
  readonly after: string;
  /** `$8`. */
  readonly newShare: number;
}

/** Null: the longest due first, which needs none of this. */
export function leaseOrder(order: FrontierOrder | undefined): LeaseOrder | null {
  if (order === undefined || order.name === "breadth-first") return null;
  return { before: before(order.name), due, after: after(order.name), newShare: order.newShare };
}

// Table url_shortlist: of a host with many due URLs the first of both lists, so that not each lease scores all that are
// looked at. A lease takes the next of them, as far as they are still due. Made anew by the lease that finds them used up,
// old, or of another order. What comes to be due meanwhile, or gains links, waits for the next shortlist.

/** A host with fewer due URLs has no shortlist. */
const fewUrls = 100;

/** Of new and of old ones, each: fifteen slices of twenty. */
const listedUrls = 300;

/** A host that is asked once a second has fifteen to thirty slices of twenty fetched meanwhile. */
const listMinutes = 10;

/** Looked at beyond those that are wanted, since some may not be due any more. */
const spareUrls = 4;

const carried = "coalesce(h.mix_carry, ((h.host_hash % 1000 + 1000) % 1000) / 1000.0::float8)";

/** As places are given out: the most urgent of both lists, each in proportion to its quota (placeOf in mix.ts). */
const byQuota = (u: string, h: string) =>
  `${u}.place / greatest(case when ${u}.is_new then ${h}.for_new else ${h}.slots - ${h}.for_new end, 0.5), ${u}.is_new desc`;

/** The next of a list from `used` on, as far as a lease may come, and one more, whose score is told. */
const nextOf = (list: string, used: string) => `${list}[${used} + 1:${used} + h.slots + ${spareUrls + 1}]`;

const urgentFirst = (which: string) => `(
      select * from scored u where ${which} order by ${soonFirst} limit h.slots + ${listedUrls}
    ) u`;

/**
 * Both lists of each host: what is kept of them (`kept`), or made anew (`made`). From then on they are as one: `listed` has
 * what is looked at, each list in its order, and `due` what of that is leased.
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
            -- By key: where most hosts have few URLs, the planner would read all that are due of a host to find these.
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

/** Of frontier_url what a lease tells. */
export function leasedColumns(u: string): string {
  return ["url", "depth", "etag", "last_modified", "digest", "redirects"]
    .map((name) => `${u}.${name}`)
    .join(", ");
}

/** What is carried on after a lease: of a mixed one, in which new URLs had so many places; of one of new URLs alone. */
const carryAfter = (one: { isMixed: string; placesOfNew: string; taken: string }) => `case
        when ${one.isMixed} then least(1, h.exact - ${one.placesOfNew})
        else greatest(-${mostOwed}, h.carried - ${one.taken} * (1 - $8::float8)) end`;

const after = (name: OrderName) => `, used as materialized (
    -- What was not due any more and stood before the leased ones is gone past, or all that was looked at.
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

/** Lists that no lease will take from any more, a batch of them; true: there may be more. */
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

// Column worth of frontier_host: what the best due URL of a host is worth under the frontier's order. A lease leaves it
// as it is without the URLs that it takes (host-lease-writes.ts); what links, ranks and time make of it is reckoned here, host
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

/** SQL: the worth of a host `h`; null beyond the first hosts of its domain, which go by how long they are due. */
export const ofFirstHosts = (worth: string): string =>
  `case when h.domain_place < ${firstHosts} then ${worth} end`;

const reckonStatement = (order: OrderName) => `
  with h as materialized (
    select host_hash, due_at, worth, domain_place
    from frontier_host
    where state = 'resolved' and lease_id is null and due_at <= $1
      and (due_at, host_hash) > ($2::timestamptz, $3::bigint)
    order by due_at, host_hash
    limit ${hostsAtATime}
  ), reckoned as materialized (
    select h.host_hash, h.worth as before, ${ofFirstHosts(worthSql(order, "$1"))} as worth
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

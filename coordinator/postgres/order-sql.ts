/**
 * The strategies of core/order as SQL, over a row `u` of frontier_url and a row `r` of url_rank, so that the most urgent
 * URLs of a host are found where they are. A test holds both against each other. Postgres raises an error where exp()
 * underflows, which JavaScript calls 0: beyond e^-700 it is not asked.
 */
import { crawlSeconds, unknownChangeRatio } from "#core/order/anansi";
import { unknownChangesPerDay } from "#core/order/freshness";
import type { FrontierOrder, OrderName } from "#core/order/order-strategies";
import { newSlots } from "#core/order/slice-mix";

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
 * The due URLs of host `h` as they follow each other: `url_hash`, `is_new`, and the `place` in its list (1: first).
 * Looked at are the longest due (dueUrlsLookedAt). `now`: the instant's parameter.
 */
export function placedUrls(name: OrderName, now: string): string {
  return `
         select u.url_hash, ${isNewSql} as is_new,
           row_number() over (
             partition by ${isNewSql}
             order by ${scoreSql(name, now)} desc, u.next_fetch_at, u.depth, u.url_hash
           ) as place
         from (
           select *
           from frontier_url
           where host_hash = h.host_hash and state = 'due' and next_fetch_at <= ${now}
           order by next_fetch_at
           limit ${dueUrlsLookedAt}
         ) u
         ${rankJoin(name)}`;
}

/** How a lease's URLs of one host are chosen, as core/order/slice-mix does it. */
export interface LeaseOrder {
  /** The keys of host `h` in their order; `$2` is the instant, `$7` the most of them, `$8` those for new URLs. */
  readonly items: string;
  /** The place of a leased URL `u` among the items of its `slice`. */
  readonly turn: string;
  /** `$8`. */
  readonly values: readonly number[];
}

/** Null: the longest due first, which needs none of this. */
export function leaseOrder(order: FrontierOrder | undefined, slots: number, now: Date): LeaseOrder | null {
  if (order === undefined || order.name === "breadth-first") return null;
  // Leases are granted at any time: the part of the second is as good as a die, and can be told again.
  const turn = (now.getTime() % 1000) / 1000;
  return {
    items: mixed(order.name),
    turn: "(select array_position(slice.items, u.url_hash) from slice where slice.host_hash = u.host_hash)",
    values: [newSlots(slots, order.newShare, turn)],
  };
}

const mixed = (name: OrderName) => `
       select url_hash
       from (
         select url_hash, is_new, place / greatest(quota, 0.5) as at
         from (
           select url_hash, is_new, place, (case when is_new then $8::int else $7 - $8::int end)::float8 as quota
           from (${placedUrls(name, "$2")}) placed
         ) listed
       ) spread
       order by at, is_new desc
       limit $7`;

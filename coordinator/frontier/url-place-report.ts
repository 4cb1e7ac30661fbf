/** Where a URL stands among the due URLs of its host, in the order of a strategy. */
import type { Pool } from "pg";
import type { UrlKey } from "#core/url-key";
import type { PlacedUrl } from "../who/who-order.ts";
import { urlsInHand } from "./open-lease-reads.ts";
import { isNewSql, placedUrls } from "./order/order-sql.ts";
import type { OrderName } from "./order/order-strategies.ts";
import type { UrlFacts } from "./order/strategies.ts";

interface PlaceRow extends UrlFacts {
  readonly place: string | null;
  readonly of: number;
  readonly hostWorth: number | null;
}

/** Null: the frontier does not hold it. Costs a look at the due URLs of its host (dueUrlsLookedAt). */
export async function urlPlace(
  pool: Pool,
  key: UrlKey,
  as: { readonly strategy: OrderName; readonly now: Date },
): Promise<PlacedUrl | null> {
  const { rows } = await pool.query<PlaceRow>(
    `with h as (
       select $1::bigint as host_hash
     ), placed as (
       select x.* from h cross join lateral (${placedUrls(as.strategy, "$3", urlsInHand("$1::bigint"))}) x
     )
     select u.back_links as "backLinks", u.out_links as "outLinks", u.change_ratio::float8 as "changeRatio",
       u.changes_per_day::float8 as "changesPerDay", r.page_rank::float8 as "pageRank", u.depth,
       extract(epoch from $3::timestamptz - u.last_fetched_at)::float8 as "ageSeconds",
       case when isfinite(u.next_fetch_at) then extract(epoch from $3::timestamptz - u.next_fetch_at)::float8
         else 0 end as "dueSeconds",
       (select place from placed where placed.url_hash = u.url_hash) as place,
       (select count(*)::int from placed where placed.is_new = (${isNewSql})) as of,
       (select worth from frontier_host own where own.host_hash = u.host_hash) as "hostWorth"
     from frontier_url u
     left join url_rank r using (host_hash, url_hash)
     where u.host_hash = $1 and u.url_hash = $2`,
    [key.hostHash, key.urlHash, as.now],
  );
  const row = rows[0];
  if (!row) return null;
  const { place, of, hostWorth, ...facts } = row;
  return { facts, place: place === null ? null : Number(place), of, hostWorth };
}

/** Where a URL is in the frontier, or which rule of its channel keeps it out. */
import type { Pool } from "pg";
import type { UrlKey } from "#core/url-key";
import { linksTo } from "../batch/link-sql.ts";
import { channelHolds, type LeavingChannel, leftOut } from "./channel.ts";
import { channelsWhere } from "./channel-reads.ts";
import { urlsInHand } from "./open-lease-reads.ts";
import { isNewSql, placedUrls } from "./order/order-sql.ts";
import type { OrderName, UrlFacts } from "./order/strategies.ts";

/** Linking pages examined to find its depth. */
const mostLinks = 1000;

export async function leavingChannel(pool: Pool, key: UrlKey): Promise<LeavingChannel | null> {
  const { hostHash, url } = key;
  const channels = await channelsWhere(pool, "host_hash = $1", [hostHash]);
  const channel = channels.find((one) => channelHolds(one, url));
  if (channel === undefined) return null;
  // Without linking pages, only filters can exclude it.
  const why = leftOut(channel, { url, depth: (await linkedDepth(pool, key)) ?? 0 });
  if (why === null) return null;
  const { channelId, host, directories } = channel;
  return { channelId, prefixes: directories.map((directory) => host + directory), why };
}

/** Depth of the URL by the pages here that link to it. Null if there are none. */
async function linkedDepth(pool: Pool, { hostHash, urlHash }: UrlKey): Promise<number | null> {
  const { rows } = await pool.query<{ depth: number | null }>(
    `select min(u.depth) + 1 as depth
     from ${linksTo("$1::bigint", "$2::bigint", mostLinks)} l
     join frontier_url u using (host_hash, url_hash)`,
    [hostHash, urlHash],
  );
  return rows[0]?.depth ?? null;
}

interface PlaceRow extends UrlFacts {
  readonly place: string | null;
  readonly of: number;
  readonly hostWorth: number | null;
}

/** Null if the frontier does not hold it. Costs a scan of its host's due URLs (dueUrlsLookedAt). */
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
       r.page_rank::float8 as "pageRank", u.depth,
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

/** A URL's position in the frontier. `place` and `of` count within its list, new or old, of its host's due URLs. */
export interface PlacedUrl {
  readonly facts: UrlFacts;
  /** 1 means next in its list. Null if it is not due or beyond those examined. */
  readonly place: number | null;
  readonly of: number;
  /** Worth of its host's best new URL. Null if unknown or if it has no new URL. */
  readonly hostWorth: number | null;
}

/** What the index has of a channel: how many pages, which digests, and how many of them say the same. */
import type { Pool } from "pg";
import { mostKnownDigests } from "#protocol/known-digests";
import { holdsPath, pathSql } from "./channel-of-url.ts";
import type { KeptChannel } from "./channel-reads.ts";

/** Of a host so many pages are looked at. */
const mostCounted = 1_000_000;

/** The rows of table page, as `p`, that lie in channel $1; of its host so many are looked at. */
export const pagesOfChannel = (most: number) => `channel c
       cross join lateral (
         select *, ${pathSql("url")} as path
         from page where host_hash = c.host_hash limit ${most}
       ) p
       where c.channel_id = $1
         and ${holdsPath("p.path")}`;

export async function countPages(
  pool: Pool,
  { channelId }: KeptChannel,
  at: { readonly settled: boolean; readonly now: Date },
): Promise<void> {
  await pool.query(
    `with pages as materialized (
       select p.digest, max(p.fetched_at) as fetched_at, count(*) as urls
       from ${pagesOfChannel(mostCounted)}
       group by p.digest
     ), counted as (
       select coalesce(sum(urls), 0)::int as pages,
         coalesce(1 - count(*)::real / nullif(sum(urls), 0), 0)::real as duplicate_share
       from pages
     )
     update channel c
     set settled = $2, counted_at = $3, known_turn = c.known_turn + 1,
         expected_pages = counted.pages, duplicate_share = counted.duplicate_share,
         known_digests = array(select digest from pages order by fetched_at desc, digest limit ${mostKnownDigests})
     from counted
     where c.channel_id = $1`,
    [channelId, at.settled, at.now],
  );
}

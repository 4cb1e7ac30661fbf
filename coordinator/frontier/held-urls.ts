/** URLs that were found while their host's budget was used up, and wait for it to grow (frontier/host-budget.ts). */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { hostBudgetSql } from "./host-budget-sql.ts";

/** Held URLs of these hosts, which are locked, become due as far as the budgets have grown; the shallowest first. */
export async function releaseHeld(
  client: PoolClient,
  hosts: readonly HostHash[],
  pagesPerHost: number,
): Promise<void> {
  await client.query(
    `with room as (
       select h.host_hash, ${hostBudgetSql("h", "$2::int")} - h.url_count as urls
       from frontier_host h
       where h.host_hash = any($1::bigint[])
         and h.held_urls > 0
         and h.state <> 'refused'
         and h.url_count < ${hostBudgetSql("h", "$2::int")}
     ), released as (
       update frontier_url u
       set state = 'due'
       from room
       cross join lateral (
         select url_hash
         from frontier_url
         where host_hash = room.host_hash and state = 'held'
         order by depth, discovered_at, url_hash
         limit room.urls
       ) first
       where u.host_hash = room.host_hash and u.url_hash = first.url_hash
       returning u.host_hash
     )
     update frontier_host h
     set url_count = h.url_count + r.urls, held_urls = h.held_urls - r.urls
     from (select host_hash, count(*)::int as urls from released group by host_hash) r
     where h.host_hash = r.host_hash`,
    [hosts, pagesPerHost],
  );
}

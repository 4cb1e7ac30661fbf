/** How far the crawl is, counted afresh: exact, and some ten milliseconds for tens of thousands of URLs. */
import type { Pool } from "pg";
import type { FrontierProgress } from "./frontier.ts";

/**
 * A host counts as fetched with its first result of any kind. URLs of hosts that are refused or that DNS does
 * not know are not pending: nothing is to be fetched there.
 */
export async function progress(pool: Pool): Promise<FrontierProgress> {
  const { rows } = await pool.query<FrontierProgress>(
    `select
       hosts.hosts as "hosts",
       hosts.unresolved as "hostsUnresolved",
       hosts.refused as "hostsRefused",
       hosts.delegated as "hostsDelegated",
       hosts.urls as "urls",
       hosts.subnets_waiting as "subnetsWaiting",
       urls.hosts_fetched as "hostsFetched",
       urls.pending as "urlsPending",
       (select count(*)::int from delegation) as "subnetsDelegated",
       (select count(*)::int from page) as "pages",
       (select count(*)::int from probe where how = 'probe') as "probes",
       (select count(*)::int from probe_round) as "rounds"
     from (
       select count(*)::int as hosts,
         count(*) filter (where h.state = 'unresolved')::int as unresolved,
         count(*) filter (where h.state = 'refused')::int as refused,
         count(d.subnet_id)::int as delegated,
         coalesce(sum(h.url_count), 0)::int as urls,
         count(distinct h.subnet_id) filter (
           where h.state = 'resolved' and h.due_at is not null and d.subnet_id is null
         )::int as subnets_waiting
       from frontier_host h
       left join delegation d on d.subnet_id = h.subnet_id
     ) hosts, (
       select count(distinct u.host_hash) filter (where u.visits > 0)::int as hosts_fetched,
         count(*) filter (
           where u.visits = 0 and u.state = 'due' and h.state not in ('refused', 'unresolvable')
             and h.opt_out_id is null
         )::int as pending
       from frontier_url u
       join frontier_host h on h.host_hash = u.host_hash
     ) urls`,
  );
  return rows[0]!;
}

/** The fleet's domain sets and the language of a host, for `who`. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { FleetSets } from "./who-domain-sets.ts";

const mostCrawlers = 10_000;

/** Without any sets in the fleet, no crawlers. Those that were shut out are left out. */
export async function fleetSets(pool: Pool, hostHash: HostHash): Promise<FleetSets> {
  const { rows } = await pool.query<FleetSets["crawlers"][number]>(
    `select crawler_id as "crawlerId", name, domain_sets as operator, partner_domain_sets as partner
     from crawler
     where revoked_at is null
       and exists (select from crawler where domain_sets <> '{}' or partner_domain_sets <> '{}')
     order by name
     limit ${mostCrawlers}`,
  );
  const spoken = await pool.query<{ language: string | null }>(
    "select language from frontier_host where host_hash = $1",
    [hostHash],
  );
  return { language: spoken.rows[0]?.language ?? null, crawlers: rows };
}

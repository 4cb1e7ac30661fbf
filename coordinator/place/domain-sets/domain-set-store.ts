/** Domain sets of crawlers (table crawler), and the hosts' languages that sets refer to. */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import { tell } from "#db/schema-channel";
import { inTransaction, prepared } from "../../database/transaction.ts";
import { type Partition, partitionOf } from "./partition.ts";

export type DomainSetStore = ReturnType<typeof createDomainSetStore>;

const shown = `name, domain_sets as operator, partner_domain_sets as partner`;

export function createDomainSetStore(pool: Pool) {
  return {
    of: async (name: string): Promise<DomainSetsOf | null> => {
      const { rows } = await pool.query<DomainSetsOf>(`select ${shown} from crawler where name = $1`, [name]);
      return rows[0] ?? null;
    },

    /** Stores the sets and notifies running coordinators. Null if no crawler has that name. */
    give: async (name: string, sets: readonly string[]): Promise<ChangedDomainSets | null> =>
      await giveDomainSets(pool, name, sets),

    /** Updates the languages of hosts with pages. Returns how many changed. */
    refreshLanguages: async (hosts: readonly HostHash[]): Promise<number> =>
      await refreshLanguages(pool, hosts),

    hostsWithoutLanguage: async (hosts: readonly HostHash[]): Promise<HostHash[]> => {
      if (hosts.length === 0) return [];
      const { rows } = await pool.query<{ host_hash: HostHash }>(
        "select host_hash from frontier_host where host_hash = any($1::bigint[]) and language is null",
        [hosts],
      );
      return rows.map((row) => row.host_hash);
    },

    /** The next hosts with pages in hash order. Empty at the end. */
    hostsWithPages: async (after: HostHash | null, limit: number): Promise<HostHash[]> => {
      const { rows } = await pool.query<{ host_hash: HostHash }>(
        `select host_hash
         from frontier_host h
         where host_hash > coalesce($1::bigint, -9223372036854775808)
           and language is null
           and exists (select from page p where p.host_hash = h.host_hash)
         order by host_hash
         limit $2`,
        [after, limit],
      );
      return rows.map((row) => row.host_hash);
    },
  };
}

export async function giveDomainSets(
  pool: Pool,
  name: string,
  sets: readonly string[],
): Promise<ChangedDomainSets | null> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<ChangedDomainSets & { readonly crawler_id: number }>(
      `with old as (
         select crawler_id, domain_sets from crawler where name = $1 for update
       )
       update crawler c
       set domain_sets = $2
       from old
       where c.crawler_id = old.crawler_id
       returning c.crawler_id, ${shown.replace("name", "c.name").replace("domain_sets", "c.domain_sets")}, old.domain_sets as before`,
      [name, sets],
    );
    if (rows[0] === undefined) return null;
    const { crawler_id: crawlerId, ...changed } = rows[0];
    await tell(client, "nearcrawl_fleet", [String(crawlerId)]);
    return changed;
  });
}

/** The sets that apply to a lease: those stored now, and the coordinator's own. */
export async function partitionOfLease(
  client: PoolClient,
  { crawlerId, partition = [] }: { readonly crawlerId: CrawlerId; readonly partition?: Partition },
): Promise<Partition> {
  return (await partitionsOfLeases(client, [crawlerId], partition)).get(crawlerId) ?? partition;
}

/** The same for many crawlers. Unknown ones are missing. */
export async function partitionsOfLeases(
  client: PoolClient,
  crawlerIds: readonly CrawlerId[],
  partition: Partition,
): Promise<ReadonlyMap<CrawlerId, Partition>> {
  const { rows } = await prepared<{ crawler_id: CrawlerId; operator: string[]; partner: string[] }>(
    client,
    "select crawler_id, domain_sets as operator, partner_domain_sets as partner from crawler where crawler_id = any($1::int[])",
    [crawlerIds],
  );
  return new Map(
    rows.map((row) => [row.crawler_id, [...partition, ...partitionOf(row.operator, row.partner)]]),
  );
}

/** Canonical texts (`domainSetText`). */
interface DomainSetsOf {
  readonly name: string;
  readonly operator: readonly string[];
  /** The partner's restriction. Empty if none is stated. */
  readonly partner: readonly string[];
}

export interface ChangedDomainSets extends DomainSetsOf {
  readonly before: readonly string[];
}

// A host's language (`frontier_host.language`): that of most of a bounded number of its pages.

/** Maximum pages examined per host: enough for a majority, whatever its size. */
const pagesAsked = 200;

async function refreshLanguages(pool: Pool, hosts: readonly HostHash[]): Promise<number> {
  if (hosts.length === 0) return 0;
  const { rowCount } = await pool.query(
    `with spoken as (
       select h.host_hash, l.language
       from unnest($1::bigint[]) h (host_hash)
       cross join lateral (
         select p.language
         from (
           select split_part(lower(coalesce(detected_language, language)), '-', 1) as language
           from page
           where host_hash = h.host_hash
           limit ${pagesAsked}
         ) p
         where p.language is not null and p.language <> ''
         group by p.language
         order by count(*) desc, p.language
         limit 1
       ) l
     ), changed as (
       select h.host_hash, s.language
       from frontier_host h
       join spoken s using (host_hash)
       where h.language is distinct from s.language
       order by h.host_hash
       for update of h
     )
     update frontier_host h
     set language = changed.language
     from changed
     where h.host_hash = changed.host_hash`,
    [hosts],
  );
  return rowCount ?? 0;
}

/** The language of a host (`frontier_host.language`): that of most of its pages, of a bounded number of them. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";

/** Pages of a host that are looked at: enough for a majority, whatever the host's size. */
const pagesAsked = 200;

export async function refreshLanguages(pool: Pool, hosts: readonly HostHash[]): Promise<number> {
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

/** In the order of their hashes, after that one. */
export async function hostsWithPages(pool: Pool, after: HostHash | null, limit: number): Promise<HostHash[]> {
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
}

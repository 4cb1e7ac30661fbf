/**
 * How URLs come into the frontier: one row per URL whatever collides, and never more per host than the
 * scope allows. Both hold because the URLs of a host change only under the lock on the host's row.
 */
import type { PoolClient } from "pg";
import type { UrlKey } from "#core/frontier/url-key";
import type { HostHash, UrlHash } from "#core/ids";
import type { AdmittedUrl } from "../flows/ports.ts";

export interface UrlAddress {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
}

/** One entry per URL, with its smallest depth; without those that are too deep. */
export function distinctUrls(urls: readonly AdmittedUrl[], maxDepth: number): AdmittedUrl[] {
  const byUrl = new Map<string, AdmittedUrl>();
  for (const url of urls) {
    const name = `${url.key.hostHash}/${url.key.urlHash}`;
    const known = byUrl.get(name);
    if (url.depth <= maxDepth && (known === undefined || url.depth < known.depth)) byUrl.set(name, url);
  }
  return [...byUrl.values()];
}

/** Adds the hosts that the frontier does not hold; gives their number. Before `lockHosts`, which locks them too. */
export async function addHosts(client: PoolClient, keys: readonly UrlKey[], now: Date): Promise<number> {
  const { rowCount } = await client.query(
    `insert into frontier_host (host_hash, host, resolve_at, admitted_at)
     select distinct on (host_hash) host_hash, host, $3, $3
     from unnest($1::bigint[], $2::text[]) as given (host_hash, host)
     order by host_hash
     on conflict (host_hash) do nothing`,
    [keys.map((key) => key.hostHash), keys.map((key) => key.host), now],
  );
  return rowCount ?? 0;
}

/** Locks the rows of these hosts in the order of their hashes, until the transaction ends. */
export async function lockHosts(client: PoolClient, hosts: Iterable<HostHash>): Promise<void> {
  await client.query(
    "select from frontier_host where host_hash = any($1::bigint[]) order by host_hash for update",
    [[...new Set(hosts)]],
  );
}

/**
 * Adds the URLs that are unknown, the shallowest first, as far as their hosts have room; a URL of a refused
 * host is refused with it. The hosts are locked. `urls` as `distinctUrls` gives them.
 */
export async function addUrls(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
  limits: { readonly pagesPerHost: number; readonly now: Date },
): Promise<number> {
  if (urls.length === 0) return 0;
  const { rows } = await client.query<{ added: number }>(
    `with unknown as (
       select given.*, row_number() over (partition by given.host_hash order by given.depth, given.ordinal) as place
       from unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[])
         with ordinality as given (host_hash, url_hash, url, depth, ordinal)
       where not exists (
         select from frontier_url u
         where u.host_hash = given.host_hash and u.url_hash = given.url_hash
       )
     ), added as (
       insert into frontier_url (host_hash, url_hash, url, state, depth, discovered_at, next_fetch_at,
         last_outcome, last_reason)
       select h.host_hash, n.url_hash, n.url,
         case when h.state = 'refused' then 'refused' else 'due' end,
         n.depth, $6, $6,
         case when h.state = 'refused' then 'refused-address' end,
         case when h.state = 'refused' then h.state_reason end
       from unknown n
       join frontier_host h on h.host_hash = n.host_hash
       where n.place <= $5 - h.url_count
       on conflict (host_hash, url_hash) do nothing
       returning host_hash, state
     ), counted as (
       update frontier_host h
       set url_count = h.url_count + a.urls,
           due_at = case when a.due > 0 then least(h.due_at, $6) else h.due_at end
       from (
         select host_hash, count(*)::int as urls, count(*) filter (where state = 'due') as due
         from added
         group by host_hash
       ) a
       where h.host_hash = a.host_hash
     )
     select count(*)::int as added from added`,
    [
      urls.map(({ key }) => key.hostHash),
      urls.map(({ key }) => key.urlHash),
      urls.map(({ key }) => key.url),
      urls.map(({ depth }) => depth),
      limits.pagesPerHost,
      limits.now,
    ],
  );
  return rows[0]?.added ?? 0;
}

/** Counts links to URLs that the frontier holds; `by` is -1 for links that went away. The hosts are locked. */
export async function countBackLinks(
  client: PoolClient,
  targets: readonly UrlAddress[],
  by: 1 | -1,
): Promise<void> {
  if (targets.length === 0) return;
  await client.query(
    `update frontier_url u
     set back_links = greatest(0, u.back_links + $3 * t.links)
     from (
       select host_hash, url_hash, count(*)::int as links
       from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
       group by host_hash, url_hash
     ) t
     where u.host_hash = t.host_hash and u.url_hash = t.url_hash`,
    [targets.map((target) => target.hostHash), targets.map((target) => target.urlHash), by],
  );
}

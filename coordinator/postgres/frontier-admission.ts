/**
 * How URLs come into the frontier: one row per URL whatever collides, and never more per host than the
 * scope allows. Both hold because the URLs of a host change only under the lock on the host's row.
 */
import type { PoolClient } from "pg";
import type { UrlKey } from "#core/frontier/url-key";
import type { HostHash, UrlHash } from "#core/ids";
import type { AdmittedUrl } from "../flows/ports.ts";
import { hostBudgetSql } from "./host-budget-sql.ts";
import { withoutOptedOut } from "./opted-out-hosts.ts";

export interface UrlAddress {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
}

/** URLs over a host's budget that are held for when it has earned more; what comes beyond them is left out. */
export const mostHeldUrls = 1000;

/** URLs of a host that are admitted because they were named as its sitemaps or feeds, over all time. */
export const mostListUrls = 60;

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

/**
 * Adds the hosts that the frontier does not hold, but for those that opted out, `most` of them; gives their number.
 * Before `lockHosts`, which locks them too.
 */
export async function addHosts(
  client: PoolClient,
  given: readonly UrlKey[],
  now: Date,
  most: number | null = null,
): Promise<number> {
  const keys = await withoutOptedOut(client, given);
  const { rowCount } = await client.query(
    `insert into frontier_host (host_hash, host, resolve_at, admitted_at)
     select distinct on (host_hash) host_hash, host, $3, $3
     from unnest($1::bigint[], $2::text[]) as given (host_hash, host)
     where $4::int is null
       or not exists (select from frontier_host known where known.host_hash = given.host_hash)
     order by host_hash
     limit $4
     on conflict (host_hash) do nothing`,
    [keys.map((key) => key.hostHash), keys.map((key) => key.host), now, most],
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

export interface AdmissionLimits {
  /** The operator's limit. */
  readonly pagesPerHost: number;
  /** Whether the hosts' budgets hold too; what is over them is held. */
  readonly budgeted: boolean;
  readonly now: Date;
}

/**
 * Adds the URLs that are unknown, the shallowest first, as far as their hosts have room; a URL of a refused
 * host is refused with it, and one of a host that opted out is left out. The hosts are locked. `urls` as `distinctUrls` gives them. Gives the number of those
 * that are not merely held.
 */
export async function addUrls(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
  limits: AdmissionLimits,
): Promise<number> {
  if (urls.length === 0) return 0;
  const budget = limits.budgeted ? hostBudgetSql("h", "$5::int") : "$5::int";
  const holds = `greatest(0, least(${mostHeldUrls}, $5::int - greatest(${budget}, h.url_count)) - h.held_urls)`;
  const { rows } = await client.query<{ added: number }>(
    `with unknown as (
       select given.*,
         row_number() over (partition by given.host_hash, given.is_list order by given.depth, given.ordinal) as kind_place
       from unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $7::smallint[], $8::smallint[], $9::boolean[])
         with ordinality as given (host_hash, url_hash, url, depth, redirects, lists, is_list, ordinal)
       where not exists (
         select from frontier_url u
         where u.host_hash = given.host_hash and u.url_hash = given.url_hash
       )
     ), placed as (
       select n.*, h.state as host_state, h.state_reason, greatest(0, ${budget} - h.url_count) as open,
         ${holds} as holds,
         row_number() over (partition by n.host_hash order by n.depth, n.ordinal) as place
       from unknown n
       join frontier_host h on h.host_hash = n.host_hash
       where (not n.is_list or n.kind_place <= ${mostListUrls} - h.list_urls) and h.opt_out_id is null
     ), added as (
       insert into frontier_url (host_hash, url_hash, url, state, depth, redirects, lists, discovered_at,
         next_fetch_at, last_outcome, last_reason)
       select host_hash, url_hash, url,
         case when host_state = 'refused' then 'refused' when place <= open then 'due' else 'held' end,
         depth, redirects, lists, $6, $6,
         case when host_state = 'refused' then 'refused-address' end,
         case when host_state = 'refused' then state_reason end
       from placed
       where place <= open + case when host_state = 'refused' then 0 else holds end
       on conflict (host_hash, url_hash) do nothing
       returning host_hash, url_hash, state
     ), counted as (
       update frontier_host h
       set url_count = h.url_count + a.urls,
           held_urls = h.held_urls + a.held,
           list_urls = h.list_urls + a.lists,
           due_at = case when a.due > 0 then least(h.due_at, $6) else h.due_at end
       from (
         select added.host_hash, count(*) filter (where state <> 'held')::int as urls,
           count(*) filter (where state = 'held')::int as held, count(*) filter (where is_list)::int as lists,
           count(*) filter (where state = 'due') as due
         from added
         join placed using (host_hash, url_hash)
         group by added.host_hash
       ) a
       where h.host_hash = a.host_hash
     )
     select count(*) filter (where state <> 'held')::int as added from added`,
    [
      urls.map(({ key }) => key.hostHash),
      urls.map(({ key }) => key.urlHash),
      urls.map(({ key }) => key.url),
      urls.map(({ depth }) => depth),
      limits.pagesPerHost,
      limits.now,
      urls.map(({ redirects = 0 }) => redirects),
      urls.map(({ lists = 0 }) => lists),
      urls.map(({ isList = false }) => isList),
    ],
  );
  return rows[0]?.added ?? 0;
}

/**
 * Pages that a sitemap or feed says have changed since their last fetch are due at once. The list can only
 * say so of its own host, which is locked and settled by the caller.
 */
export async function hastenChanged(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
  now: Date,
): Promise<void> {
  const changed = urls.filter(({ modifiedAt }) => modifiedAt !== undefined && modifiedAt <= now);
  if (changed.length === 0) return;
  await client.query(
    `update frontier_url u
     set next_fetch_at = $4
     from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as given (host_hash, url_hash, modified_at)
     where u.host_hash = given.host_hash
       and u.url_hash = given.url_hash
       and u.state = 'due'
       and u.next_fetch_at > $4
       and u.last_outcome in ('fetched', 'unchanged')
       and u.last_fetched_at < given.modified_at`,
    [
      changed.map(({ key }) => key.hostHash),
      changed.map(({ key }) => key.urlHash),
      changed.map(({ modifiedAt }) => modifiedAt),
      now,
    ],
  );
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

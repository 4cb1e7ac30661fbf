/**
 * How URLs come into the frontier: one row per URL whatever collides, and never more per host than the
 * scope allows. Both hold because the URLs of a host change only under the lock on the host's row.
 */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlKey } from "#core/url-key";
import { withinChannels } from "../channels/channel-reads.ts";
import { prepared } from "../database/transaction.ts";
import { addBackLinks, type LinkedUrl, linksWithin, withoutOptedOut } from "./back-link-writes.ts";
import {
  badUrls,
  fewestUrls,
  firstUrls,
  goodPageUrls,
  type HostPages,
  outsideLinkUrls,
  trappedLinksPerUrl,
} from "./budgets.ts";
import type { AdmittedUrl } from "./frontier.ts";

/** URLs over a host's budget that are held for when it has earned more; what comes beyond them is left out. */
const mostHeldUrls = 1000;

/** URLs of a host that are admitted because they were named as its sitemaps or feeds, over all time. */
const mostListUrls = 60;

/** One entry per URL, with its smallest depth; without those that are too deep. */
export function distinctUrls(urls: readonly AdmittedUrl[], maxDepth: number): AdmittedUrl[] {
  const byUrl = new Map<string, AdmittedUrl>();
  for (const url of urls) {
    const name = nameOf(url.key);
    const known = byUrl.get(name);
    if (url.depth <= maxDepth && (known === undefined || url.depth < known.depth)) byUrl.set(name, url);
  }
  return [...byUrl.values()];
}

/**
 * Adds the hosts that the frontier does not hold, but for those that opted out, `most` of them; gives those it added.
 * Before `lockHosts`, which locks them too. They are due at once, which their first URLs will be. `outsideLinks`: to each,
 * where they are counted with it, which spares writing its row once more.
 */
export async function addHosts(
  client: PoolClient,
  given: readonly UrlKey[],
  now: Date,
  { most = null, outsideLinks }: { most?: number | null; outsideLinks?: ReadonlyMap<HostHash, number> } = {},
): Promise<HostHash[]> {
  const oneOfEach = [...new Map(given.map((key) => [key.hostHash, key])).values()];
  const keys = await withoutOptedOut(client, oneOfEach);
  const { rows } = await prepared<{ host_hash: HostHash }>(
    client,
    `insert into frontier_host (host_hash, host, resolve_at, admitted_at, due_at, outside_links)
     select host_hash, host, $3, $3, $3, greatest(0, ${linksWithin("links::bigint")})
     from unnest($1::bigint[], $2::text[], $5::int[]) as given (host_hash, host, links)
     where not exists (select from frontier_host known where known.host_hash = given.host_hash)
     order by host_hash
     limit $4
     on conflict (host_hash) do nothing
     returning host_hash`,
    [
      keys.map((key) => key.hostHash),
      keys.map((key) => key.host),
      now,
      most,
      keys.map((key) => outsideLinks?.get(key.hostHash) ?? 0),
    ],
  );
  return rows.map((row) => row.host_hash);
}

/** Locks the rows of these hosts in the order of their hashes, until the transaction ends. */
export async function lockHosts(client: PoolClient, hosts: Iterable<HostHash>): Promise<void> {
  await prepared(
    client,
    "select from frontier_host where host_hash = any($1::bigint[]) order by host_hash for update",
    [[...new Set(hosts)]],
  );
}

export interface Admission {
  /** The operator's limit. */
  readonly pagesPerHost: number;
  /** Whether the hosts' budgets hold too; what is over them is held. */
  readonly budgeted: boolean;
  /** Links that came and went, which count for a URL that the frontier holds, or does from now on; each URL once. */
  readonly links: readonly LinkedUrl[];
  readonly now: Date;
}

/**
 * Adds the URLs that are unknown, the shallowest first, as far as their hosts have room; a URL of a refused
 * host is refused with it, and one of a host that opted out, or that its channel leaves out, is left out. The hosts are
 * locked. `given` as `distinctUrls` gives them.
 */
export async function addUrls(
  client: PoolClient,
  given: readonly AdmittedUrl[],
  { links, ...limits }: Admission,
): Promise<AddedUrls> {
  const urls = await withinChannels(client, given);
  const linksTo = new Map(links.map((one) => [nameOf(one), one]));
  const counts = urls.map(({ key }) => linksTo.get(nameOf(key))?.links ?? 0);
  const written = urls.length === 0 ? nothingAdded : await writeUrls(client, { urls, counts }, limits);
  for (const { key } of urls) linksTo.delete(nameOf(key));
  await addBackLinks(client, [...linksTo.values()]);
  return written;
}

export interface AddedUrls {
  /** Without those that are merely held. */
  readonly newUrls: number;
  /** Of those given, what the frontier holds now. */
  readonly held: readonly UrlHash[];
}

const nothingAdded: AddedUrls = { newUrls: 0, held: [] };

/**
 * The statement of `addUrls`: what is known counts its new links, what is unknown is inserted with them. The hosts are
 * read by the list of their hashes: joined by hash, the planner may go through all hosts that there are.
 */
const writeStatement = (budgeted: boolean): string => {
  const budget = budgeted ? hostBudgetSql("h", "$5::int") : "$5::int";
  return `with host as materialized (
       select h.host_hash, h.state, h.state_reason, h.list_urls, greatest(0, ${budget} - h.url_count) as open,
         greatest(0, least(${mostHeldUrls}, $5::int - greatest(${budget}, h.url_count)) - h.held_urls) as holds
       from frontier_host h
       where h.host_hash = any($11::bigint[]) and h.opt_out_id is null
     ), looked_up as materialized (
       select given.*, exists (
           select from frontier_url u where u.host_hash = given.host_hash and u.url_hash = given.url_hash
         ) as is_known
       from unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $7::smallint[], $8::smallint[], $9::boolean[],
           $10::int[])
         with ordinality as given (host_hash, url_hash, url, depth, redirects, lists, is_list, links, ordinal)
     ), linked as (
       update frontier_url u
       set back_links = greatest(0, u.back_links + k.links)
       from looked_up k
       where k.is_known and k.links <> 0 and u.host_hash = k.host_hash and u.url_hash = k.url_hash
     ), unknown as (
       select *, row_number() over (partition by host_hash, is_list order by depth, ordinal) as kind_place
       from looked_up
       where not is_known
     ), placed as (
       select n.*, h.state as host_state, h.state_reason, h.open, h.holds,
         row_number() over (partition by n.host_hash order by n.depth, n.ordinal) as place
       from unknown n
       join host h on h.host_hash = n.host_hash
       where not n.is_list or n.kind_place <= ${mostListUrls} - h.list_urls
     ), added as (
       insert into frontier_url (host_hash, url_hash, url, state, depth, redirects, lists, back_links, discovered_at,
         next_fetch_at, last_outcome, last_reason)
       select host_hash, url_hash, url,
         case when host_state = 'refused' then 'refused' when place <= open then 'due' else 'held' end,
         depth, redirects, lists, greatest(0, links), $6, $6,
         case when host_state = 'refused' then 'refused-address' end,
         case when host_state = 'refused' then state_reason end
       from placed
       where place <= open + case when host_state = 'refused' then 0 else holds end
       returning host_hash, url_hash, state
     ), counted as (
       update frontier_host h
       set url_count = h.url_count + a.urls,
           held_urls = h.held_urls + a.held,
           list_urls = h.list_urls + a.lists,
           left_out_urls = h.left_out_urls + a.left_out,
           due_at = case when a.due > 0 then least(h.due_at, $6) else h.due_at end
       from (
         select n.host_hash, count(*) filter (where added.state <> 'held')::int as urls,
           count(*) filter (where added.state = 'held')::int as held,
           count(*) filter (where n.is_list and added.state is not null)::int as lists,
           count(*) filter (where added.state = 'due') as due,
           count(*) filter (where added.state is null) as left_out
         from unknown n
         join host on host.host_hash = n.host_hash
         left join added on added.host_hash = n.host_hash and added.url_hash = n.url_hash
         group by n.host_hash
       ) a
       where h.host_hash = a.host_hash
     )
     select (select count(*) filter (where state <> 'held')::int from added) as added,
       array(
         select n.url_hash::text
         from unknown n
         where not exists (select from added a where a.host_hash = n.host_hash and a.url_hash = n.url_hash)
       ) as "leftOut"`;
};

// The host's budget (frontier/host-budget.ts) as SQL, for statements that hold many hosts.

/** The columns of frontier_host by the names of the rule's figures. */
export const hostPageColumns: Readonly<Record<keyof HostPages, string>> = {
  good: "good_pages",
  nearDuplicates: "near_duplicates",
  notFound: "not_found_pages",
  empty: "empty_pages",
  failed: "failed_urls",
  trappedLinks: "trapped_links",
  outsideLinks: "outside_links",
};

const writeWithin = { budget: writeStatement(true), limit: writeStatement(false) };

async function writeUrls(
  client: PoolClient,
  { urls, counts }: { readonly urls: readonly AdmittedUrl[]; readonly counts: readonly number[] },
  limits: Omit<Admission, "links">,
): Promise<AddedUrls> {
  const { rows } = await prepared<{ added: number; leftOut: UrlHash[] }>(
    client,
    limits.budgeted ? writeWithin.budget : writeWithin.limit,
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
      counts,
      [...new Set(urls.map(({ key }) => key.hostHash))],
    ],
  );
  const { added: newUrls, leftOut } = rows[0]!;
  const without = new Set(leftOut);
  const hashes = urls.map(({ key }) => key.urlHash);
  return { newUrls, held: without.size === 0 ? hashes : hashes.filter((hash) => !without.has(hash)) };
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

// URLs that were found while their host's budget was used up, and wait for it to grow (frontier/host-budget.ts).

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

/** `host` is the alias of frontier_host, `limit` an SQL expression. */
export function hostBudgetSql(host: string, limit: string): string {
  const { good, nearDuplicates, notFound, empty, failed, trappedLinks, outsideLinks } = hostPageColumns;
  const bad = [nearDuplicates, notFound, empty, failed].map((column) => `${host}.${column}`).join(" + ");
  return `least(${limit}, greatest(${fewestUrls}, ${firstUrls} + ${goodPageUrls} * ${host}.${good}
    + ${outsideLinkUrls} * least(${host}.${good}, ${host}.${outsideLinks})
    - ${badUrls} * (${bad}) - ${host}.${trappedLinks} / ${trappedLinksPerUrl}))`;
}

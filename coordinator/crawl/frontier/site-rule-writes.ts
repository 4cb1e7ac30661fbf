/**
 * Rules for whole sites that the frontier obeys: opt-outs and operators' caps. Opt-outs in force cover hosts, by name or address
 * (column opt_out_id of frontier_host, kept by opt-outs/mark-writes), or single URLs (`isOptedOut` of frontier_url). A marked
 * host has nothing due, so it gets no lease, probe or DNS look-up, and admits nothing. A marked URL is refused.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { isInPart, type SitePart, withoutScheme } from "#core/ip/url-host";
import { domainsAbove, type UrlKey } from "#core/url-key";
import { prepared } from "../../database/transaction.ts";
import { optedOutUrl } from "./frontier.ts";

/**
 * SQL: key of an advisory lock, shared by all who add hosts and exclusive for recording an opt-out. Each schema has its own,
 * so that separate installations on one server do not block each other.
 */
export const optOutLock = "hashtextextended('nearcrawl opt-outs ' || current_schema(), 0)";

/**
 * SQL: the host is the site or a subdomain of it. Reversed, such names form a range of index frontier_host_site, because `.`
 * is directly followed by `/` in byte order.
 */
export const isOfSite = (host: string, site: string): string => `(reverse(${host}) = reverse(${site})
  or (reverse(${host}) ~>=~ reverse('.' || ${site}) and reverse(${host}) ~<~ reverse('/' || ${site})))`;

/** SQL: the opt-out in force (`o`) covers the host (`h`). */
const coversHost = `((o.scope is null and ${isOfSite("h.host", "o.site")})
  or (o.scope = 'host' and h.host = o.site)
  or (o.site is null and exists (
    select from unnest(h.addresses) a where a between o.first_address and o.last_address)))`;

const optOutWith = (condition: string) => `(select o.opt_out_id from opt_out o
  where o.ended_at is null and o.in_force_at is not null and ${condition}
  order by o.opt_out_id limit 1)`;

const optOutOfHost = optOutWith(coversHost);

/** SQL: a different opt-out covers the host. The end of this one may not have reached a replica yet. */
export const otherOptOutOfHost = (optOutId: string): string =>
  optOutWith(`o.opt_out_id <> ${optOutId} and ${coversHost}`);

/** SQL: the frontier_url row itself is marked. Its host may have opted out as well. */
export const isOptedOut = (u: string): string =>
  `(${u}.state = 'refused' and ${u}.last_outcome = '${optedOutUrl}')`;

/** SQL: the canonical URL lies in the part of a site that an opt-out with these columns names (core/ip/url-host, isInPart). */
export const isInPartSql = (url: string, scope: string, of: string): string => {
  const rest = `substr(${url}, strpos(${url}, '//'))`;
  return `(${rest} = ${of} or (${scope} = 'prefix' and starts_with(${rest}, ${of})
    and substr(${rest}, length(${of}) + 1, 1) in ('/', '?')))`;
};

/** Returns those of the given URLs (by `url`) that opted out individually. */
export async function optedOutAmong(
  client: Pool | PoolClient,
  keys: readonly Pick<UrlKey, "host" | "url">[],
): Promise<ReadonlySet<string>> {
  if (keys.length === 0) return new Set();
  const { rows } = await prepared<SitePart>(
    client,
    `select scope, url as of from opt_out
     where ended_at is null and in_force_at is not null and url is not null and site = any($1::text[])`,
    [[...new Set(keys.map(({ host }) => host))]],
  );
  if (rows.length === 0) return new Set();
  const urls = new Set(rows.map(({ of }) => of));
  const prefixes = rows.filter(({ scope }) => scope === "prefix");
  const isOut = (url: string) =>
    urls.has(withoutScheme(url)) || prefixes.some((prefix) => isInPart(prefix, url));
  return new Set(keys.map(({ url }) => url).filter(isOut));
}

/** Returns the keys whose hosts have not opted out. Call it before adding hosts. It holds until the transaction ends. */
export async function withoutOptedOut(client: PoolClient, keys: readonly UrlKey[]): Promise<UrlKey[]> {
  if (keys.length === 0) return [];
  await prepared(client, `select pg_advisory_xact_lock_shared(${optOutLock})`, []);
  const domainsOf = new Map(keys.map(({ host }) => [host, domainsAbove(host)]));
  const { rows } = await prepared<{ site: string; scope: string | null }>(
    client,
    `select site, scope from opt_out
     where ended_at is null and in_force_at is not null and url is null and site = any($1::text[])`,
    [[...new Set([...domainsOf.values()].flat())]],
  );
  if (rows.length === 0) return [...keys];
  const namesOf = (scope: string | null) =>
    new Set(rows.filter((row) => row.scope === scope).map((row) => row.site));
  const [sites, hosts] = [namesOf(null), namesOf("host")];
  return keys.filter(({ host }) => {
    return !hosts.has(host) && !domainsOf.get(host)!.some((domain) => sites.has(domain));
  });
}

/** Marks locked hosts with addresses in opted-out networks, or unmarks them. Returns changed hosts, which must be settled. */
export async function markByAddress(client: PoolClient, hosts: readonly HostHash[]): Promise<HostHash[]> {
  if (hosts.length === 0) return [];
  const { rows } = await client.query<{ host_hash: HostHash }>(
    `update frontier_host h
     set opt_out_id = ${optOutOfHost}
     where h.host_hash = any($1::bigint[])
       and exists (select from opt_out where site is null and ended_at is null)
       and h.opt_out_id is distinct from ${optOutOfHost}
     returning h.host_hash`,
    [hosts],
  );
  return rows.map((row) => row.host_hash);
}

// Operators' caps on the pace of sites (table site_cap), as far as new hosts need them.

export const capOfHost = `(select max(s.delay_ms) from site_cap s where ${isOfSite("h.host", "s.site")})`;

/** Delays of capped hosts. Call after `withoutOptedOut`, whose lock also keeps caps unchanged. */
export async function capDelaysMs(
  client: PoolClient,
  keys: readonly { readonly host: string }[],
): Promise<ReadonlyMap<string, number>> {
  const domains = new Map(keys.map(({ host }) => [host, domainsAbove(host)]));
  const { rows } = await prepared<{ site: string; delay_ms: number }>(
    client,
    "select site, delay_ms from site_cap where site = any($1::text[])",
    [[...new Set([...domains.values()].flat())]],
  );
  if (rows.length === 0) return new Map();
  const delays = new Map(rows.map((row) => [row.site, row.delay_ms]));
  const capped = [...domains].map(([host, above]) => [
    host,
    Math.max(0, ...above.map((site) => delays.get(site) ?? 0)),
  ]);
  return new Map(capped.filter(([, delayMs]) => delayMs !== 0) as [string, number][]);
}

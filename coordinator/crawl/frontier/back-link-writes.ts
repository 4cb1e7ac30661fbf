/** Column back_links of frontier_url: how many links lead to a URL, kept by what pages gain and lose. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { isInPart, type SitePart, withoutScheme } from "#core/ip/url-host";
import { domainsAbove, nameOf, type UrlAddress, type UrlKey } from "#core/url-key";
import { mostLinks } from "#protocol/exchange";
import { listOf, prepared } from "../../database/transaction.ts";
import { optedOutUrl } from "./frontier.ts";

/** How many links to a URL came, less those that went. */
export interface LinkedUrl extends UrlAddress {
  links: number;
}

/**
 * In SQL: a sum (bigint) of links as one message can say it. A coordinator that invents links, or is away for years,
 * must not bring a sum beyond its column, which would end everybody's transactions that add to it.
 */
export const linksWithin = (sum: string) => `greatest(-${mostLinks}, least(${mostLinks}, ${sum}))::int`;

/** The hosts are locked. */
export async function addBackLinks(client: PoolClient, targets: readonly LinkedUrl[]): Promise<void> {
  if (targets.length === 0) return;
  await prepared(
    client,
    `update frontier_url u
     set back_links = greatest(0, ${linksWithin("u.back_links::bigint + t.links")})
     from unnest($1::bigint[], $2::bigint[], $3::int[]) as t (host_hash, url_hash, links)
     where u.host_hash = t.host_hash and u.url_hash = t.url_hash`,
    [
      listOf(targets.map(({ hostHash }) => hostHash)),
      listOf(targets.map(({ urlHash }) => urlHash)),
      listOf(targets.map(({ links }) => links)),
    ],
  );
}

/** Each URL once, without those where as many links came as went. */
export function sumLinks(
  added: readonly UrlAddress[],
  removed: readonly UrlAddress[] = [],
): readonly LinkedUrl[] {
  const sums = new Map<string, LinkedUrl>();
  const count = ({ hostHash, urlHash }: UrlAddress, by: number) => {
    const name = nameOf({ hostHash, urlHash });
    const known = sums.get(name);
    if (known === undefined) sums.set(name, { hostHash, urlHash, links: by });
    else known.links += by;
  };
  for (const one of added) count(one, 1);
  for (const one of removed) count(one, -1);
  return [...sums.values()].filter(({ links }) => links !== 0);
}

// What opt-outs in force cover: whole hosts, by their name or by one of their addresses (column opt_out_id of frontier_host,
// which opt-outs/mark-writes keeps in line), or single URLs (`isOptedOut` of frontier_url). A host that is marked has nothing
// due, so it gets no lease, no probe and no look-up, and nothing of it is admitted; a URL that is marked is refused.

/**
 * SQL: the key of an advisory lock, which whoever adds hosts shares, and whoever records an opt-out has alone. Of each
 * schema its own: worlds beside each other on one server don't wait for one another.
 */
export const optOutLock = "hashtextextended('nearcrawl opt-outs ' || current_schema(), 0)";

/**
 * SQL: the host's name is the site, or lies below it. Read backwards, such names are a range of index
 * frontier_host_site, whatever characters they have: of bytes, only `/` comes right after `.`. Null: neither is named.
 */
export const isOfSite = (host: string, site: string): string => `(reverse(${host}) = reverse(${site})
  or (reverse(${host}) ~>=~ reverse('.' || ${site}) and reverse(${host}) ~<~ reverse('/' || ${site})))`;

/** SQL: the opt-out in force (as `o`) covers the host (as `h`). */
const coversHost = `((o.scope is null and ${isOfSite("h.host", "o.site")})
  or (o.scope = 'host' and h.host = o.site)
  or (o.site is null and exists (
    select from unnest(h.addresses) a where a between o.first_address and o.last_address)))`;

const optOutWith = (condition: string) => `(select o.opt_out_id from opt_out o
  where o.ended_at is null and o.in_force_at is not null and ${condition}
  order by o.opt_out_id limit 1)`;

/** SQL: the number of the opt-out that covers the host (as `h`); null: none does. */
const optOutOfHost = optOutWith(coversHost);

/** SQL: the same, of all but the one with this number, which a replica may not know to have ended. */
export const otherOptOutOfHost = (optOutId: string): string =>
  optOutWith(`o.opt_out_id <> ${optOutId} and ${coversHost}`);

/** SQL: the row of frontier_url is marked; its host may have opted out beside it. */
export const isOptedOut = (u: string): string =>
  `(${u}.state = 'refused' and ${u}.last_outcome = '${optedOutUrl}')`;

/** SQL: the canonical URL lies in the part of a site that an opt-out with these columns names (core/ip/url-host, isInPart). */
export const isInPartSql = (url: string, scope: string, of: string): string => {
  const rest = `substr(${url}, strpos(${url}, '//'))`;
  return `(${rest} = ${of} or (${scope} = 'prefix' and starts_with(${rest}, ${of})
    and substr(${rest}, length(${of}) + 1, 1) in ('/', '?')))`;
};

/** Of these URLs, those (by `url`) that opted out without their whole host. */
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

/** Keys whose hosts have not opted out. Call before hosts are added; the answer holds until the transaction ends. */
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

/**
 * Hosts, which are locked, have new addresses: those in a network that opted out are marked, others not any more.
 * Gives the hosts for which that changed, to be settled.
 */
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

/**
 * Table named_sitemap: cross-submitted sitemaps (sitemaps.org/protocol, "Sitemaps & Cross Submits"). A sitemap counts
 * for its own host, and for another host only if that host's robots.txt names it.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { nameOf, type UrlAddress, urlKeyOf } from "#core/url-key";
import { columnsOf } from "../../database/transaction.ts";
import type { CountedResult } from "../batch/accepted-result.ts";

/** Replaces what the results' robots.txt files name on other hosts. Hosts must be locked. */
export async function noteNamedSitemaps(
  client: PoolClient,
  results: readonly CountedResult[],
): Promise<void> {
  const named = new Map<HostHash, Map<string, UrlAddress & { readonly of: HostHash }>>();
  for (const { key, result } of results) {
    const { robots } = result;
    // A robots.txt that could not be fetched withdraws nothing.
    if (robots === undefined || robots.state === "closed" || robots.state === "unreachable") continue;
    const sitemaps = robots.sitemaps.flatMap((url) => {
      const sitemap = urlKeyOf(url);
      if (typeof sitemap === "string" || sitemap.hostHash === key.hostHash) return [];
      return [[nameOf(sitemap), { ...sitemap, of: key.hostHash }] as const];
    });
    named.set(key.hostHash, new Map(sitemaps));
  }
  if (named.size === 0) return;
  const rows = [...named.values()].flatMap((sitemaps) => [...sitemaps.values()]);
  const columns = columnsOf(rows, ["of", "hostHash", "urlHash"]);
  await client.query(
    `delete from named_sitemap n
     where n.host_hash = any($4::bigint[])
       and not exists (
         select from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as given (host, sitemap_host, sitemap_url)
         where given.host = n.host_hash
           and given.sitemap_host = n.sitemap_host_hash
           and given.sitemap_url = n.sitemap_url_hash
       )`,
    [...columns, [...named.keys()]],
  );
  if (rows.length === 0) return;
  await client.query(
    `insert into named_sitemap (host_hash, sitemap_host_hash, sitemap_url_hash)
     select * from unnest($1::bigint[], $2::bigint[], $3::bigint[])
     on conflict do nothing`,
    columns,
  );
}

/**
 * Adds accepted entries of other hosts to the results. A sitemap with rejected entries loses its validators, so that
 * it is read in full once a robots.txt names it.
 */
export async function withNamedSitemaps(
  client: PoolClient,
  results: readonly CountedResult[],
): Promise<CountedResult[]> {
  const lists = results.filter(({ foreign }) => foreign.length > 0);
  if (lists.length === 0) return [...results];
  const { rows } = await client.query<UrlAddress & { of: HostHash }>(
    `select n.host_hash as of, n.sitemap_host_hash as "hostHash", n.sitemap_url_hash as "urlHash"
     from unnest($1::bigint[], $2::bigint[]) as given (sitemap_host, sitemap_url)
     join named_sitemap n
       on n.sitemap_url_hash = given.sitemap_url and n.sitemap_host_hash = given.sitemap_host
     where n.host_hash = any($3::bigint[])`,
    [
      lists.map(({ key }) => key.hostHash),
      lists.map(({ key }) => key.urlHash),
      [...new Set(lists.flatMap(({ foreign }) => foreign.map(({ key }) => key.hostHash)))],
    ],
  );
  const namers = new Map<string, Set<HostHash>>();
  for (const { of, ...sitemap } of rows) {
    const name = nameOf(sitemap);
    namers.set(name, (namers.get(name) ?? new Set()).add(of));
  }
  return results.map((counted) => {
    if (counted.foreign.length === 0) return counted;
    const own = namers.get(nameOf(counted.key));
    const taken = counted.foreign.filter(({ key }) => own?.has(key.hostHash) === true);
    const admit = [...counted.admit, ...taken];
    return taken.length === counted.foreign.length
      ? { ...counted, admit }
      : { ...counted, ...unsettled(counted), admit };
  });
}

function unsettled({ result }: CountedResult): Pick<CountedResult, "result" | "isUnsettled"> {
  return { isUnsettled: true, result: { ...result, etag: null, lastModified: null } };
}

/**
 * URLs that another coordinator sent find their place: in the frontier here, or in the queue for whose they are. Runs
 * inside the transaction that commits their highest number, so that each counts once.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { columnsOf } from "../database/transaction.ts";
import { addHosts, addUrls, distinctUrls, lockHosts } from "../frontier/admission-writes.ts";
import { linksWithin } from "../frontier/back-link-writes.ts";
import { addOutsideLinks } from "../results/host-writes.ts";
import { mostHops, type Owner, parentId } from "./claims.ts";
import type { GivenUrl, TakenUrls, TakingSettings } from "./exchange-ports.ts";
import { type KnownRelatives, keepForeign, ownersOf } from "./foreign-url-store.ts";

export interface Placed extends Omit<TakenUrls, "repeated"> {
  readonly newHosts: number;
}

export async function placeGiven(
  client: PoolClient,
  urls: readonly GivenUrl[],
  at: TakingSettings & { readonly relatives: KnownRelatives; readonly from: Owner },
): Promise<Placed> {
  if (urls.length === 0) return { admitted: 0, passedOn: 0, newHosts: 0 };
  const owners = await ownersOf(
    client,
    urls.map(({ key }) => key),
    at,
  );
  const isOwn = (url: GivenUrl, index: number) => owners[index] === "here" || url.hops >= mostHops;
  const own = urls.filter(isOwn);
  const foreign = urls.flatMap((url, index) =>
    isOwn(url, index) ? [] : [{ ...url, peerId: owners[index] as number, hops: url.hops + 1 }],
  );
  const admitted = await admitGiven(client, own, at);
  await keepForeign(client, foreign, at.now);
  return { ...admitted, passedOn: foreign.length };
}

/** As links of a result are admitted: the hosts' budgets hold, and new hosts come in where the scope lets them, or for seeds. */
export async function admitGiven(
  client: PoolClient,
  own: readonly Pick<GivenUrl, "key" | "depth" | "redirects" | "lists" | "links">[],
  at: TakingSettings & { readonly from: Owner },
): Promise<{ readonly admitted: number; readonly newHosts: number }> {
  const { scope, mostNewHosts, now } = at;
  const urls = distinctUrls(own, scope.maxDepth);
  const hosts = [...new Set(own.map(({ key }) => key.hostHash))];
  const welcome = urls.filter(({ depth }) => scope.admitNewHosts || depth === 0).map(({ key }) => key);
  const newHosts = welcome.length === 0 ? 0 : await addHosts(client, welcome, now, mostNewHosts);
  await lockHosts(client, hosts);
  if (at.from === parentId) await markGiven(client, hosts);
  const limits = { pagesPerHost: scope.pagesPerHost, budgeted: true, links: [], now };
  const admitted = await addUrls(client, urls, limits);
  await countGivenLinks(client, own);
  return { admitted, newHosts };
}

async function markGiven(client: PoolClient, hosts: readonly HostHash[]): Promise<void> {
  await client.query(
    "update frontier_host set given = true where host_hash = any($1::bigint[]) and not given",
    [hosts],
  );
}

/** Differences; they are links from hosts of others, unless a coordinator sends what it handed over. The hosts are locked. */
async function countGivenLinks(
  client: PoolClient,
  given: readonly Pick<GivenUrl, "key" | "links">[],
): Promise<void> {
  const rows = given
    .filter(({ links }) => links !== 0)
    .map(({ key, links }) => ({ hostHash: key.hostHash, urlHash: key.urlHash, links }));
  if (rows.length === 0) return;
  await client.query(
    `update frontier_url u
     set back_links = greatest(0, ${linksWithin("u.back_links + c.links")})
     from (
       select host_hash, url_hash, sum(links) as links
       from unnest($1::bigint[], $2::bigint[], $3::int[]) as given (host_hash, url_hash, links)
       group by host_hash, url_hash
     ) c
     where u.host_hash = c.host_hash and u.url_hash = c.url_hash`,
    columnsOf(rows, ["hostHash", "urlHash", "links"]),
  );
  await addOutsideLinks(client, rows);
}

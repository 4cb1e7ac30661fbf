/**
 * Hosts of the frontier that turn out to be somebody else's go there with all their URLs and links: because their
 * address has become known, or because a coordinator has come, gone, or claims something else. What was fetched stays
 * in the index here. A host under a lease stays until that ends.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { columnsOf } from "../database/transaction.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { addBackLinks, type LinkedUrl, linksWithin } from "../frontier/back-link-writes.ts";
import { addOutsideLinks } from "../results/host-writes.ts";
import { countForeignLinks } from "./foreign-url-store.ts";
import { ownerOf, parentId, type Relatives } from "./owner.ts";

export interface HandedOver {
  readonly hosts: number;
  readonly urls: number;
  /** Somebody else's, and under a lease. */
  readonly leased: number;
}

interface HostRow {
  readonly host_hash: HostHash;
  readonly host: string;
  readonly address: string | null;
  readonly given: boolean;
  readonly leased: boolean;
}

export const nothingHandedOver: HandedOver = { hosts: 0, urls: 0, leased: 0 };

/** The hosts are locked. */
export async function handOverHosts(
  client: PoolClient,
  hosts: readonly HostHash[],
  { relatives, now }: { readonly relatives: Relatives | null; readonly now: Date },
): Promise<HandedOver> {
  if (relatives === null || hosts.length === 0) return nothingHandedOver;
  const { rows } = await client.query<HostRow>(
    `select host_hash, host, host(addresses[1]) as address, given, lease_id is not null as leased
     from frontier_host
     where host_hash = any($1::bigint[])`,
    [hosts],
  );
  const others = rows.flatMap((row) => {
    const peerId = ownerOf(row, relatives, row.given ? parentId : "here");
    return peerId === "here" ? [] : [{ ...row, peerId }];
  });
  const free = others.filter(({ leased }) => !leased);
  const leased = others.length - free.length;
  if (free.length === 0) return { ...nothingHandedOver, leased };
  await withdrawLinks(
    client,
    free.map(({ host_hash }) => host_hash),
    now,
  );
  return { hosts: free.length, urls: await move(client, free, now), leased };
}

/**
 * What their pages link to is counted by whoever crawls them from now on. Nothing is left of their visits, so that a host
 * that comes back begins anew.
 */
async function withdrawLinks(client: PoolClient, hosts: readonly HostHash[], now: Date): Promise<void> {
  await client.query("delete from page_links where host_hash = any($1::bigint[])", [hosts]);
  const { rows } = await client.query<LinkedUrl & { readonly outside: number }>(
    `with gone as (
       delete from link where host_hash = any($1::bigint[]) returning host_hash, to_host_hash, to_url_hash
     )
     select to_host_hash as "hostHash", to_url_hash as "urlHash", -count(*)::int as links,
       -(count(*) filter (where host_hash <> to_host_hash))::int as outside
     from gone
     group by to_host_hash, to_url_hash`,
    [hosts],
  );
  if (rows.length === 0) return;
  await lockHosts(
    client,
    rows.map(({ hostHash }) => hostHash),
  );
  await addBackLinks(client, rows);
  await addOutsideLinks(
    client,
    rows.map(({ hostHash, outside }) => ({ hostHash, links: outside })),
  );
  await countForeignLinks(client, rows, now);
}

/** Links to the URLs are counted from now on by whose they are: all that were counted here go along. */
async function move(
  client: PoolClient,
  hosts: readonly { readonly host_hash: HostHash; readonly peerId: number }[],
  now: Date,
): Promise<number> {
  const { rows } = await client.query<{ urls: number }>(
    `with given as (
       select * from unnest($1::bigint[], $2::int[]) as given (host_hash, peer_id)
     ), moved as (
       delete from frontier_url u
       using given
       where u.host_hash = given.host_hash
       returning u.*, given.peer_id
     ), kept as (
       insert into foreign_url as f
         (host_hash, url_hash, url, peer_id, depth, redirects, lists, links, waits_since)
       select host_hash, url_hash, url, peer_id, depth, redirects, lists, ${linksWithin("back_links")}, $3
       from moved
       where state <> 'gone'
       order by host_hash, url_hash
       on conflict (host_hash, url_hash) do update
       set links = ${linksWithin("f.links::bigint + excluded.links")}, waits_since = coalesce(f.waits_since, $3)
       returning 1
     ), left_here as (
       delete from frontier_host h using given where h.host_hash = given.host_hash
     )
     select count(*)::int as urls from kept`,
    [...columnsOf(hosts, ["host_hash", "peerId"]), now],
  );
  return rows[0]!.urls;
}

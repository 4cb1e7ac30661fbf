/** How leases begin: slices of hosts that are due, each for one crawler alone, with what is known of the host's pace. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { Lease } from "#protocol/lease";
import { hostsInTurn } from "./address-turns.ts";
import { type HostRow, type LeaseRequest, lockDueHosts } from "./due-hosts.ts";
import { settleHosts } from "./frontier-leases.ts";
import { leasedHosts, leaseValues, openLeases } from "./open-leases.ts";
import { inTransaction } from "./transaction.ts";

export async function leaseHosts(pool: Pool, request: LeaseRequest): Promise<Lease[]> {
  return await inTransaction(pool, async (client) => {
    const hosts = await hostsInTurn(client, await lockDueHosts(client, request), request);
    if (hosts.length === 0) return [];
    const urls = await leaseDueUrls(client, hosts, request);
    await settleHosts(
      client,
      hosts.map((host) => host.host_hash),
    );
    return hosts.flatMap((host) => {
      const slice = urls.filter((url) => url.host_hash === host.host_hash).sort(byDepth);
      return slice.length === 0 ? [] : [leaseOf(host, slice, request)];
    });
  });
}

const byDepth = (a: UrlRow, b: UrlRow) => a.depth - b.depth || (a.url < b.url ? -1 : 1);

export interface UrlRow {
  lease_id: string;
  host_hash: HostHash;
  url: string;
  depth: number;
  etag: string | null;
  last_modified: string | null;
  digest: string | null;
  redirects: number;
}

async function leaseDueUrls(
  client: PoolClient,
  hosts: readonly HostRow[],
  request: LeaseRequest,
): Promise<UrlRow[]> {
  const { rows } = await client.query<UrlRow>(
    `with slice as (
       select h.host_hash, h.host, h.addresses, u.url_hash
       from ${leasedHosts}
       cross join lateral (
         select url_hash
         from frontier_url
         where host_hash = h.host_hash and state = 'due' and next_fetch_at <= $2
         order by next_fetch_at, depth, url_hash
         limit $7
       ) u
     ), ${openLeases("pages")}
     update frontier_url u
     set state = 'leased', lease_id = opened.lease_id
     from slice
     join opened on opened.host_hash = slice.host_hash
     where u.host_hash = slice.host_hash and u.url_hash = slice.url_hash
     returning u.lease_id, u.host_hash, u.url, u.depth, u.etag, u.last_modified, encode(u.digest, 'hex') as digest,
       u.redirects`,
    [...leaseValues(hosts, request)],
  );
  return rows;
}

/** The lease as its crawler gets it; all URLs of the slice are under one lease. */
export function leaseOf(host: HostRow, slice: readonly UrlRow[], request: LeaseRequest): Lease {
  const pace = paceOf(host, request.now);
  return {
    leaseId: slice[0]!.lease_id,
    host: host.host,
    addresses: host.addresses,
    expiresInSeconds: request.leaseSeconds,
    waitMs: 0,
    ...(pace === null ? {} : { pace }),
    urls: slice.map((url) => ({
      url: url.url,
      etag: url.etag,
      lastModified: url.last_modified,
      ...(url.digest === null ? {} : { digest: url.digest }),
      ...(url.redirects === 0 ? {} : { redirects: url.redirects }),
    })),
  };
}

/** What whoever crawled the host last said of its pace, with the time gone since; null when nobody said anything. */
function paceOf(host: HostRow, now: Date): Lease["pace"] | null {
  if (host.crawl_delay_ms === null && host.back_off_ms === null) return null;
  const agoMs = now.getTime() - (host.backed_off_at?.getTime() ?? now.getTime());
  return {
    crawlDelayMs: host.crawl_delay_ms ?? 0,
    backOffMs: host.back_off_ms ?? 0,
    backedOffMsAgo: (host.back_off_ms ?? 0) === 0 ? 0 : Math.max(0, agoMs),
    usualMs: host.usual_ms ?? 0,
  };
}

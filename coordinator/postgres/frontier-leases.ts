/**
 * Leases: a host slice belongs to one crawler until every URL of it has a result ('done'), the crawler gives
 * it back ('returned') or its time is over ('expired'). Then the URLs without a result are due again.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import { type Lease, maxLeaseUrls } from "#protocol/lease";
import type { ReturnedLease } from "../flows/ports.ts";
import { type HostRow, type LeaseRequest, lockDueHosts } from "./due-hosts.ts";
import { lockHosts } from "./frontier-admission.ts";
import { inTransaction } from "./transaction.ts";

export async function leaseHosts(pool: Pool, request: LeaseRequest): Promise<Lease[]> {
  return await inTransaction(pool, async (client) => {
    const hosts = await lockDueHosts(client, request);
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

interface UrlRow {
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
       select h.host_hash, h.host, u.url_hash
       from unnest($1::bigint[], $2::text[]) as h (host_hash, host)
       cross join lateral (
         select url_hash
         from frontier_url
         where host_hash = h.host_hash and state = 'due' and next_fetch_at <= $3
         order by next_fetch_at, depth, url_hash
         limit $4
       ) u
     ), opened as (
       insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
       select $5, host_hash, host, $3, $3::timestamptz + make_interval(secs => $6), count(*), count(*)
       from slice
       group by host_hash, host
       returning lease_id, host_hash
     ), held as (
       update frontier_host h
       set lease_id = opened.lease_id
       from opened
       where h.host_hash = opened.host_hash
     )
     update frontier_url u
     set state = 'leased', lease_id = opened.lease_id
     from slice
     join opened on opened.host_hash = slice.host_hash
     where u.host_hash = slice.host_hash and u.url_hash = slice.url_hash
     returning u.lease_id, u.host_hash, u.url, u.depth, u.etag, u.last_modified, encode(u.digest, 'hex') as digest,
       u.redirects`,
    [
      hosts.map((host) => host.host_hash),
      hosts.map((host) => host.host),
      request.now,
      Math.min(request.urlsPerHost, maxLeaseUrls),
      request.crawlerId,
      request.leaseSeconds,
    ],
  );
  return rows;
}

function leaseOf(host: HostRow, slice: readonly UrlRow[], request: LeaseRequest): Lease {
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

export async function returnLease(pool: Pool, lease: ReturnedLease, now: Date): Promise<boolean> {
  if (!isLeaseNumber(lease.leaseId)) return false;
  const returned = await inTransaction(pool, async (client) => {
    const { rows } = await client.query<OpenLease>(
      `select lease_id, host_hash
       from lease
       where lease_id = $1 and crawler_id = $2 and closed_at is null
       for update`,
      [lease.leaseId, lease.crawlerId],
    );
    if (lease.hostWaitMs) await keepOff(client, rows, new Date(now.getTime() + lease.hostWaitMs));
    return await close(client, rows, { ending: "returned", now });
  });
  return returned === 1;
}

/** The crawler has learnt that the hosts must be left alone, though none of its results could say so. */
async function keepOff(client: PoolClient, leases: readonly OpenLease[], until: Date): Promise<void> {
  const hosts = leases.map((lease) => lease.host_hash);
  await lockHosts(client, hosts);
  await client.query(
    `update frontier_host
     set not_before = greatest(not_before, $2)
     where host_hash = any($1::bigint[])`,
    [hosts, until],
  );
}

export async function returnLeasesOf(
  pool: Pool,
  owner: { readonly crawlerId: CrawlerId; readonly held: readonly LeaseId[] },
  now: Date,
): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<OpenLease>(
      `select lease_id, host_hash
       from lease
       where crawler_id = $1 and closed_at is null and lease_id <> all($2::bigint[])
       order by lease_id
       for update`,
      [owner.crawlerId, owner.held.filter(isLeaseNumber)],
    );
    return await close(client, rows, { ending: "returned", now });
  });
}

const leasesPerBatch = 500;

/** In batches, so that hosts are not locked for long after an outage. A lease whose result is being taken is passed over. */
export async function returnExpired(pool: Pool, now: Date): Promise<number> {
  let total = 0;
  while (true) {
    const returned = await inTransaction(pool, async (client) => {
      const { rows } = await client.query<OpenLease>(
        `select lease_id, host_hash
         from lease
         where closed_at is null and expires_at <= $1
         order by lease_id
         limit ${leasesPerBatch}
         for update skip locked`,
        [now],
      );
      return await close(client, rows, { ending: "expired", now });
    });
    total += returned;
    if (returned < leasesPerBatch) return total;
  }
}

/** On the wire a lease's number has up to 19 digits, which can be more than a bigint holds: no lease has such a number. */
export function isLeaseNumber(leaseId: LeaseId): boolean {
  return BigInt(leaseId) < 2n ** 63n;
}

interface OpenLease {
  lease_id: LeaseId;
  host_hash: HostHash;
}

/** Closes open leases, which are locked; their URLs are due again, or refused where the host was refused meanwhile. */
async function close(
  client: PoolClient,
  leases: readonly OpenLease[],
  as: { readonly ending: "expired" | "returned"; readonly now: Date },
): Promise<number> {
  if (leases.length === 0) return 0;
  const ids = leases.map((lease) => lease.lease_id);
  const hosts = leases.map((lease) => lease.host_hash);
  await lockHosts(client, hosts);
  await client.query(
    `update frontier_url u
     set state = case when h.state = 'refused' then 'refused' else 'due' end,
         last_reason = case when h.state = 'refused' then h.state_reason else u.last_reason end,
         lease_id = null
     from frontier_host h
     where h.host_hash = any($2::bigint[])
       and u.host_hash = h.host_hash
       and u.lease_id = any($1::bigint[])
       and u.state = 'leased'`,
    [ids, hosts],
  );
  await client.query("update lease set closed_at = $2, ending = $3 where lease_id = any($1::bigint[])", [
    ids,
    as.now,
    as.ending,
  ]);
  await settleHosts(client, hosts);
  return leases.length;
}

/** A batch of the URLs that robots.txt refused long enough ago. */
export async function reopenRefused(pool: Pool, now: Date): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ host_hash: HostHash }>(
      `select distinct host_hash
       from (
         select host_hash
         from frontier_url
         where state = 'refused' and last_outcome = 'refused-by-robots' and next_fetch_at <= $1
         limit ${leasesPerBatch}
       ) u`,
      [now],
    );
    const hosts = rows.map((row) => row.host_hash);
    if (hosts.length === 0) return 0;
    await lockHosts(client, hosts);
    const { rowCount } = await client.query(
      `update frontier_url u
       set state = 'due'
       from frontier_host h
       where h.host_hash = any($1::bigint[])
         and h.state <> 'refused'
         and u.host_hash = h.host_hash
         and u.state = 'refused'
         and u.last_outcome = 'refused-by-robots'
         and u.next_fetch_at <= $2`,
      [hosts, now],
    );
    await settleHosts(client, hosts);
    return rowCount ?? 0;
  });
}

/** Brings hosts, which are locked, in line with their URLs and leases: when something is due, and who holds them. */
export async function settleHosts(client: PoolClient, hosts: readonly HostHash[]): Promise<void> {
  await client.query(
    `update frontier_host h
     set due_at = (
           select min(u.next_fetch_at)
           from frontier_url u
           where u.host_hash = h.host_hash and u.state = 'due'
         ),
         lease_id = (
           select l.lease_id
           from lease l
           where l.lease_id = h.lease_id and l.closed_at is null
         )
     where h.host_hash = any($1::bigint[])`,
    [hosts],
  );
}

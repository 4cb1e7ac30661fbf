/** How leases begin: slices of hosts that are due, each for one crawler alone, with what is known of the host's pace. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { Lease } from "#protocol/lease";
import { hostsInTurn } from "./address-turns.ts";
import { withKnownTexts } from "./channels/known-texts.ts";
import { partitionOfLease } from "./domain-sets/domain-set-store.ts";
import { type HostRow, type LeaseRequest, lockDueHosts } from "./due-hosts.ts";
import { leasedHosts, leasedItems, leaseValues, openLeases, slotsOf } from "./open-leases.ts";
import { leaseOrder } from "./order-sql.ts";
import { prepared } from "./prepared-query.ts";
import type { SubnetTurns } from "./subnet-turns.ts";
import { inTransaction } from "./transaction.ts";

/** What of a host's due URLs (`u`, of frontier_url) is leased first. */
const dueUrlsFirst = "u.next_fetch_at, u.depth, u.url_hash";

export async function leaseHosts(pool: Pool, request: LeaseRequest, turns: SubnetTurns): Promise<Lease[]> {
  return await inTransaction(pool, async (client) => {
    const partition = await partitionOfLease(client, request);
    const due = await lockDueHosts(client, { ...request, partition }, turns);
    const hosts = await hostsInTurn(client, due, request);
    if (hosts.length === 0) return [];
    const slices = byHost(await leaseDueUrls(client, hosts, request));
    const leases = hosts.flatMap((host) => {
      const slice = slices.get(host.host_hash)?.sort(byTurn);
      return slice === undefined ? [] : [leaseOf(host, slice, request)];
    });
    return await withKnownTexts(client, leases);
  });
}

function byHost(urls: readonly UrlRow[]): Map<HostHash, UrlRow[]> {
  const slices = new Map<HostHash, UrlRow[]>();
  for (const url of urls) {
    const slice = slices.get(url.host_hash);
    if (slice === undefined) slices.set(url.host_hash, [url]);
    else slice.push(url);
  }
  return slices;
}

const byTurn = (a: UrlRow, b: UrlRow) => a.turn - b.turn || a.depth - b.depth || (a.url < b.url ? -1 : 1);

export interface UrlRow {
  lease_id: string;
  host_hash: HostHash;
  url: string;
  depth: number;
  etag: string | null;
  last_modified: string | null;
  digest: string | null;
  redirects: number;
  /** In the order that the operator chose; 0 for all: it says nothing. */
  turn: number;
}

async function leaseDueUrls(
  client: PoolClient,
  hosts: readonly HostRow[],
  request: LeaseRequest,
): Promise<UrlRow[]> {
  const slots = slotsOf(request);
  const order = leaseOrder(request.order, slots, request.now);
  const statement =
    order === null ? leaseStatement(longestDue, "0") : leaseStatement(order.items, order.turn);
  const values = [...leaseValues(hosts, request), ...(order?.values ?? [])];
  const { rows } = await prepared<UrlRow>(client, statement, values);
  return rows;
}

/** An index has them in this order, so that it costs nothing. */
const longestDue = `
      select u.url_hash
      from frontier_url u
      where u.host_hash = h.host_hash and u.state = 'due' and u.next_fetch_at <= $2
      order by ${dueUrlsFirst}
      limit $7`;

/** A host is due again when what its lease leaves is; one that has nothing due after all gets no lease. */
const leaseStatement = (items: string, turn: string) => `
  with slice as materialized (
    select h.host_hash, h.host, h.addresses, array(${items}
    ) as items
    from ${leasedHosts}
  ), ${openLeases("pages")}, held as (
    update frontier_host h
    set lease_id = opened.lease_id,
        due_at = (
          select u.next_fetch_at
          from frontier_url u
          where u.host_hash = slice.host_hash and u.state = 'due' and u.url_hash <> all(slice.items)
          order by u.next_fetch_at
          limit 1
        )
    from slice
    left join opened on opened.host_hash = slice.host_hash
    where h.host_hash = slice.host_hash
  )
  update frontier_url u
  set state = 'leased', lease_id = one.lease_id
  from ${leasedItems} one
  where u.host_hash = one.host_hash and u.url_hash = one.item
  returning u.lease_id, u.host_hash, u.url, u.depth, u.etag, u.last_modified, encode(u.digest, 'hex') as digest,
    u.redirects, ${turn} as turn`;

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

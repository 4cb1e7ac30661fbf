/**
 * Leases of comparisons: to the crawler they look like any other, of pages that were never fetched before. The host
 * is held by the lease as by any other, so it is one crawler's at a time; its URLs stay as they are.
 */
import type { Pool, PoolClient } from "pg";
import type { Lease } from "#protocol/lease";
import { inTransaction } from "../database/transaction.ts";
import { partitionOfLease } from "../domain-sets/domain-set-store.ts";
import { isHeld, withHeldHosts } from "../domain-sets/partition.ts";
import type { HostRow } from "../frontier/due-host-reads.ts";
import { leaseOf, type UrlRow } from "../frontier/host-lease-writes.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { leasedHosts, leasedItems, leaseValues, openLeases } from "../frontier/open-lease-reads.ts";
import { addressKeysOf, hostsInTurn, isFreeFor, maxAddresses } from "../frontier/turn-store.ts";
import type { CheckLeaseRequest } from "./comparison.ts";

export async function leaseChecks(pool: Pool, request: CheckLeaseRequest): Promise<Lease[]> {
  // Most often there is nothing, which takes no transaction.
  if (request.hosts < 1 || !(await isWanted(pool, request))) return [];
  return await inTransaction(pool, async (client) => {
    const hosts = await hostsInTurn(client, await lockHostsOfChecks(client, request), request);
    if (hosts.length === 0) return [];
    const urls = await leaseUrls(client, hosts, request);
    await settleHosts(
      client,
      hosts.map((host) => host.host_hash),
    );
    return hosts.flatMap((host) => {
      const slice = urls.filter((url) => url.host_hash === host.host_hash);
      return slice.length === 0 ? [] : [leaseOf(host, slice, request)];
    });
  });
}

/** Open comparisons are few: what is open is gone through. */
const isFor = `c.verdict is null and $1 = any(c.wanted) and c.next_by > $2`;

async function isWanted(pool: Pool, { crawlerId, now }: CheckLeaseRequest): Promise<boolean> {
  const { rows } = await pool.query<{ found: boolean }>(
    `select exists (select from double_check c where ${isFor}) as found`,
    [crawlerId, now],
  );
  return rows[0]!.found;
}

/** Hosts that nobody has in hand and that have rested; those of which the time runs out first. */
async function lockHostsOfChecks(client: PoolClient, request: CheckLeaseRequest): Promise<HostRow[]> {
  const { text, values } = withHeldHosts(
    `select h.host_hash, h.host, h.due_at, h.crawl_delay_ms, h.back_off_ms, h.backed_off_at, h.usual_ms,
       array(select host(a) from unnest(h.addresses[1:${maxAddresses}]) a) as addresses,
       ${addressKeysOf("h")}::text[] as address_keys
     from (
       select host_hash, min(c.next_by) as next_by
       from double_check c
       where ${isFor}
       group by host_hash
     ) c
     join frontier_host h using (host_hash)
     where h.state = 'resolved'
       and h.opt_out_id is null
       and h.lease_id is null
       and h.not_before <= $2
       and ${isHeld("h")}
       and ${isFreeFor("h")}
     order by c.next_by, h.host_hash
     limit $3
     for update of h skip locked`,
    await partitionOfLease(client, request),
    4,
  );
  const given = [request.crawlerId, request.now, request.hosts];
  const { rows } = await client.query<HostRow>(text, [...given, ...values]);
  return rows;
}

/** Without validators: what the page was before is none of this crawler's business. */
async function leaseUrls(
  client: PoolClient,
  hosts: readonly HostRow[],
  request: CheckLeaseRequest,
): Promise<UrlRow[]> {
  const { rows } = await client.query<UrlRow>(
    `with slice as materialized (
       select h.host_hash, h.host, h.addresses, array(
         select check_id
         from double_check c
         where c.host_hash = h.host_hash and ${isFor}
         order by c.next_by, c.check_id
         limit $7
       ) as items
       from ${leasedHosts}
     ), ${openLeases("checks")}, held as (
       update frontier_host h
       set lease_id = opened.lease_id
       from opened
       where h.host_hash = opened.host_hash
     )
     update double_check c
     set lease_id = one.lease_id
     from ${leasedItems} one
     where c.check_id = one.item
     returning c.lease_id, c.host_hash, c.url, 0 as depth, null as etag, null as last_modified, null as digest,
       0 as redirects`,
    [...leaseValues(hosts, request)],
  );
  return rows;
}

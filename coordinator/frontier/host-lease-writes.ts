/** How leases begin: slices of hosts that are due, each for one crawler alone, with what is known of the host's pace. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { Lease } from "#protocol/lease";
import { withKnownTexts } from "../channels/known-text-store.ts";
import { inTransaction, prepared } from "../database/transaction.ts";
import { type HostRow, type LeaseRequest, lockDueHosts } from "./due-host-reads.ts";
import { leasedHosts, leaseNeeds, leaseValues, openLeases } from "./open-lease-reads.ts";
import { leaseOrder, nextCarry } from "./order/order-sql.ts";
import { hostsInTurn, type SubnetTurns } from "./turn-store.ts";

/** What of a host's due URLs (`u`, of frontier_url) is leased first. */
const dueUrlsFirst = "u.next_fetch_at, u.depth, u.url_hash";

export async function leaseHosts(pool: Pool, request: LeaseRequest, turns: SubnetTurns): Promise<Lease[]> {
  return await inTransaction(pool, async (client) => {
    const needs = await leaseNeeds(client, request);
    const due = await lockDueHosts(client, { ...request, ...needs }, turns);
    const hosts = await hostsInTurn(client, due, request);
    if (hosts.length === 0) return [];
    const slices = byHost(await leaseDueUrls(client, hosts, request));
    const leases = hosts.flatMap((host) => {
      const slice = slices.get(host.host_hash)?.sort(byTurn);
      return slice === undefined ? [] : [leaseOf(host, slice, request)];
    });
    return needs.hasKnownTexts ? await withKnownTexts(client, leases) : leases;
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
  const order = leaseOrder(request.order);
  const statement = leaseStatement(order === null ? longestDue : inOrder(order.picked));
  const least = hosts.map((host) => host.leastWorth ?? null);
  const values = [...leaseValues(hosts, request), ...(order === null ? [] : [order.newShare, least])];
  const { rows } = await prepared<UrlRow>(client, statement, values);
  return rows;
}

/** An index has them in this order, so that it costs nothing. */
const longestDue: Slices = {
  urls: `
      select u.*, 0 as turn
      from frontier_url u
      where u.host_hash = h.host_hash and u.state = 'due' and u.next_fetch_at <= $2
      order by ${dueUrlsFirst}
      limit $7`,
  keeps: "",
  kept: "",
  from: "",
};

const afterSlice = nextCarry("h", { isMixed: "left_over.is_mixed", taken: "left_over.urls" });

/** What the host is worth without the slice, and what the mix leaves over, is kept with it. */
const inOrder = (picked: string): Slices => ({
  urls: `
      select u.*, item.turn, picked.is_mixed, picked.rest_worth
      from (${picked}) picked
      cross join lateral unnest(picked.items) with ordinality as item (url_hash, turn)
      join frontier_url u on u.host_hash = h.host_hash and u.url_hash = item.url_hash`,
  keeps: ", u.is_mixed, u.rest_worth",
  kept: `,
        worth = left_over.rest_worth,
        mix_carry = case when left_over.urls is null then h.mix_carry else ${afterSlice} end`,
  from: `
    left join (
      select host_hash, count(*) as urls, bool_and(is_mixed) as is_mixed, max(rest_worth) as rest_worth
      from due
      group by host_hash
    ) left_over on left_over.host_hash = given.host_hash`,
});

interface Slices {
  /** The URLs of host `h`. */
  readonly urls: string;
  /** Further columns of them, and what they are kept for, with where it comes from. */
  readonly keeps: string;
  readonly kept: string;
  readonly from: string;
}

/**
 * Writes leases and hosts, and no URL: what is due of a host is nobody else's while it has a lease. A host that has
 * nothing due after all gets no lease, and is due again when its next URL is.
 */
const leaseStatement = ({ urls, keeps, kept, from }: Slices) => `
  with due as materialized (
    select h.host_hash, u.url_hash, u.url, u.depth, u.etag, u.last_modified, encode(u.digest, 'hex') as digest,
      u.redirects, u.turn${keeps}
    from ${leasedHosts}
    cross join lateral (${urls}
    ) u
  ), slice as (
    select h.host_hash, h.host, h.addresses, of_host.items
    from ${leasedHosts}
    join (select host_hash, array_agg(url_hash) as items from due group by host_hash) of_host using (host_hash)
  ), ${openLeases("pages")}, held as (
    update frontier_host h
    set lease_id = opened.lease_id,
        due_at = case when opened.lease_id is null then (
          select u.next_fetch_at
          from frontier_url u
          where u.host_hash = h.host_hash and u.state = 'due'
          order by u.next_fetch_at
          limit 1
        ) else h.due_at end${kept}
    from unnest($4::bigint[]) as given (host_hash)
    left join opened on opened.host_hash = given.host_hash${from}
    where h.host_hash = given.host_hash
  )
  select opened.lease_id, due.host_hash, due.url, due.depth, due.etag, due.last_modified, due.digest, due.redirects,
    due.turn
  from due
  join opened on opened.host_hash = due.host_hash`;

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

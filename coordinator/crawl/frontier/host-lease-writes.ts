/** Begins leases: slices of due hosts, each for one crawler alone, with the host's known pace. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { Lease } from "#protocol/lease";
import { plannedOnceByHash, prepared } from "../../database/transaction.ts";
import { type LeaseTransaction, writingLeases } from "./address-turn-store.ts";
import type { SubnetTurns } from "./due-host-reads.ts";
import { type HostRow, type LockedHost, lockDueHosts } from "./due-host-reads.ts";
import type { LeaseRequest } from "./frontier.ts";
import { toldRate } from "./host-pace.ts";
import { leasedHosts, leaseNeeds, leaseValues, openLeases } from "./open-lease-reads.ts";
import {
  dueUrlsLookedAt,
  type LeaseOrder,
  leasedColumns,
  leaseOrder,
  ofFirstHosts,
} from "./order/order-sql.ts";

/** SQL: order in which a host's due URLs (`u`, of frontier_url) are leased. */
const dueUrlsFirst = "u.next_fetch_at, u.depth, u.url_hash";

export type LeaseTerms = Pick<LeaseRequest, "leaseSeconds" | "addressRestSeconds" | "order" | "now">;

/** Answers several crawlers' requests in one transaction, with as many statements as for one. */
export async function leaseHosts(
  pool: Pool,
  requests: readonly LeaseRequest[],
  terms: LeaseTerms,
  ofSubnets: SubnetTurns,
): Promise<Lease[][]> {
  const answer = async ({ client, turns }: LeaseTransaction) => {
    const asked = await leaseNeeds(client, requests);
    const due = await lockDueHosts(client, asked, { turns: ofSubnets, now: terms.now });
    const hosts = await turns.begin(due, terms);
    if (hosts.length === 0) return requests.map(() => []);
    const slices = await leaseDueUrls(client, hosts, { requests, terms });
    turns.keep(slices.keys());
    const leases = hosts.flatMap((host) => {
      const slice = slices.get(host.host_hash);
      return slice === undefined ? [] : [{ of: host.crawler_id, lease: leaseOf(host, slice, terms) }];
    });
    return requests.map(({ crawlerId }) =>
      leases.flatMap(({ of, lease }) => (of === crawlerId ? [lease] : [])),
    );
  };
  return await writingLeases(pool, answer, plannedOnceByHash);
}

export interface LeasedUrl {
  readonly url: string;
  readonly etag: string | null;
  readonly last_modified: string | null;
  readonly digest: string | null;
  readonly redirects: number;
}

interface SliceRow {
  readonly lease_id: string;
  readonly host_hash: HostHash;
  readonly urls: [string, string | null, string | null, string | null, number][];
}

interface Slice {
  readonly leaseId: string;
  readonly urls: readonly LeasedUrl[];
}

async function leaseDueUrls(
  client: PoolClient,
  hosts: readonly LockedHost[],
  { requests, terms }: { readonly requests: readonly LeaseRequest[]; readonly terms: LeaseTerms },
): Promise<ReadonlyMap<HostHash, Slice>> {
  const order = leaseOrder(terms.order);
  const statement = leaseStatement(order === null ? longestDue : inOrder(order));
  const urlsPerHost = new Map(requests.map((request) => [request.crawlerId, request.urlsPerHost]));
  const values = leaseValues(hosts, terms, (crawlerId) => urlsPerHost.get(crawlerId)!);
  const ofOrder =
    order === null
      ? []
      : [order.newShare, hosts.map(({ leastWorth }) => leastWorth), hosts.map((host) => host.mix_carry)];
  const { rows } = await prepared<SliceRow>(client, statement, [...values, ...ofOrder]);
  return new Map(
    rows.map((row) => [row.host_hash, { leaseId: row.lease_id, urls: row.urls.map(asLeasedUrl) }]),
  );
}

const asLeasedUrl = ([url, etag, last_modified, digest, redirects]: SliceRow["urls"][number]) => ({
  url,
  etag,
  last_modified,
  digest,
  redirects,
});

/** Reads URLs in index order. If very many became due at the same moment, it reads only some of those. */
const longestDue: Slices = {
  before: "",
  due: `
    select h.host_hash, u.url_hash, 0 as turn, ${leasedColumns("u")}
    from ${leasedHosts}
    cross join lateral (
      select u.*
      from (
        select *
        from frontier_url
        where host_hash = h.host_hash and state = 'due' and next_fetch_at <= $2
        order by next_fetch_at
        limit ${dueUrlsLookedAt}
      ) u
      order by ${dueUrlsFirst}
      limit h.slots
    ) u`,
  after: "",
  kept: "",
  from: "",
};

/** Also stores the worth that the host has without the slice, and the remainder of the mix. */
const inOrder = (order: LeaseOrder): Slices => ({
  ...order,
  kept: `,
        worth = ${ofFirstHosts("left_over.rest_worth")}, mix_carry = coalesce(left_over.next_carry, h.mix_carry)`,
  from: `
    left join left_over on left_over.host_hash = given.host_hash`,
});

interface Slices extends Pick<LeaseOrder, "before" | "due" | "after"> {
  readonly kept: string;
  readonly from: string;
}

/**
 * Writes leases and hosts but no URLs, since a host's due URLs are exclusive while it has a lease. A host with nothing
 * due gets no lease and becomes due with its next URL.
 */
const leaseStatement = ({ before, due, after, kept, from }: Slices) => `
  with ${before}due as materialized (${due}
  )${after}, slice as materialized (
    select h.host_hash, h.host, h.addresses, h.crawler_id, of_host.items, of_host.urls
    from ${leasedHosts}
    join (
      select host_hash, array_agg(url_hash) as items, json_agg(
          json_build_array(url, etag, last_modified, encode(digest, 'hex'), redirects) order by turn, depth, url
        ) as urls
      from due
      group by host_hash
    ) of_host using (host_hash)
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
    where h.host_hash = given.host_hash and h.host_hash = any($4::bigint[])
  )
  select opened.lease_id, opened.host_hash, slice.urls
  from opened
  join slice on slice.host_hash = opened.host_hash`;

export function leaseOf(
  host: HostRow,
  { leaseId, urls }: Slice,
  { leaseSeconds, now }: Pick<LeaseTerms, "leaseSeconds" | "now">,
): Lease {
  const pace = paceOf(host, now);
  return {
    leaseId,
    host: host.host,
    addresses: host.addresses,
    expiresInSeconds: leaseSeconds,
    waitMs: 0,
    ...(pace === null ? {} : { pace }),
    urls: urls.map((url) => ({
      url: url.url,
      etag: url.etag,
      lastModified: url.last_modified,
      ...(url.digest === null ? {} : { digest: url.digest }),
      ...(url.redirects === 0 ? {} : { redirects: url.redirects }),
    })),
  };
}

/** The pace last reported for the host, with its age. Null if none was reported. */
function paceOf(host: HostRow, now: Date): Lease["pace"] | null {
  if (host.crawl_delay_ms === null && host.back_off_ms === null) return null;
  const agoMs = now.getTime() - (host.backed_off_at?.getTime() ?? now.getTime());
  return {
    crawlDelayMs: host.crawl_delay_ms ?? 0,
    backOffMs: host.back_off_ms ?? 0,
    backedOffMsAgo: (host.back_off_ms ?? 0) === 0 ? 0 : Math.max(0, agoMs),
    usualMs: host.usual_ms ?? 0,
    ...(host.tolerated === null ? {} : { tolerated: toldRate(host.tolerated, now) }),
  };
}

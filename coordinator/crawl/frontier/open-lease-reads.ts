/** Opens leases for due pages or comparisons: one per host slice, which reserves the host. */
import type { PoolClient } from "pg";
import type { CrawlerId, SubnetId } from "#core/ids";
import { maxLeaseUrls } from "#protocol/lease";
import { prepared } from "../../database/transaction.ts";
import { partitionOf } from "../../place/domain-sets/partition.ts";
import { leasedOfHost } from "./budgets.ts";
import type { Asked, HostRow } from "./due-host-reads.ts";
import type { LeaseRequest } from "./frontier.ts";

/**
 * SQL part `opened` (lease_id, host_hash). Requires a preceding `slice` (host_hash, host, addresses, crawler_id, and `items`,
 * the possibly empty array to lease) and the parameters of `leaseValues`. The hosts must be locked. The caller writes their
 * leases.
 */
export const openLeases = (of: "pages" | "checks"): string => `
  opened as (
    insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls, open_url_hashes,
      is_check, addresses)
    select crawler_id, host_hash, host, $2, $2::timestamptz + make_interval(secs => $3), cardinality(items), cardinality(items),
      ${of === "checks" ? "'{}'" : "items"}, ${of === "checks"}, string_to_array(addresses, ' ')::cidr[]
    from slice
    where cardinality(items) > 0
    returning lease_id, host_hash
  )`;

/** SQL: one row per leased item: lease_id, host_hash, item. */
export const leasedItems = `(
  select opened.lease_id, slice.host_hash, unnest(slice.items) as item
  from slice
  join opened on opened.host_hash = slice.host_hash)`;

export const leasedHosts = `unnest($4::bigint[], $5::text[], $6::text[], $1::int[], $7::int[])
      as h (host_hash, host, addresses, crawler_id, slots)`;

/** $1 to $7: each host's crawler, the time, the lease seconds, and the parameters of `leasedHosts`. */
export function leaseValues(
  hosts: readonly HostRow[],
  { now, leaseSeconds }: Pick<LeaseRequest, "now" | "leaseSeconds">,
  urlsPerHost: (crawlerId: CrawlerId) => number,
): readonly unknown[] {
  return [
    hosts.map((host) => host.crawler_id),
    now,
    leaseSeconds,
    hosts.map((host) => host.host_hash),
    hosts.map((host) => host.host),
    hosts.map((host) => host.address_keys.join(" ")),
    hosts.map((host) => leasedOfHost(Math.min(urlsPerHost(host.crawler_id), maxLeaseUrls), host)),
  ];
}

/** SQL: hashes of a host's URLs under its open lease. `hostHash` is an expression. */
export const urlsInHand = (hostHash: string): string => `coalesce((
  select in_hand.open_url_hashes
  from lease in_hand
  where in_hand.host_hash = ${hostHash} and in_hand.closed_at is null
), '{}')`;

/** Whether a URL of the frontier can be fetched, or why not. */
export type UrlTurn = "in-progress" | "due" | "scheduled" | "blocked-by-robots" | "refused" | "gone";

/**
 * SQL: the UrlTurn of row `u` of frontier_url. in-progress: leased. due: fetchable now. scheduled: later. blocked-by-robots:
 * disallowed. `inHand` are its host's leased URLs, and `now` is a timestamptz.
 */
export const urlTurn = (u: string, { inHand, now }: { readonly inHand: string; readonly now: string }) =>
  `case when ${u}.url_hash = any (${inHand}) then 'in-progress'
    when ${u}.state = 'refused' and ${u}.last_outcome = 'refused-by-robots' then 'blocked-by-robots'
    when ${u}.state = 'due' and ${u}.next_fetch_at > ${now} then 'scheduled'
    else ${u}.state end`;

interface NeedsRow {
  readonly crawler_id: CrawlerId;
  readonly operator: string[];
  readonly partner: string[];
  readonly finer: boolean;
  readonly without_ipv6: boolean;
  readonly subnets: SubnetId[];
}

/** Maximum subnets of a crawler for which all of them are searched, instead of the front of all due work. */
const fewSubnets = 8;

export async function leaseNeeds(client: PoolClient, requests: readonly LeaseRequest[]): Promise<Asked[]> {
  const { rows } = await prepared<NeedsRow>(
    client,
    `select c.crawler_id, c.domain_sets as operator, c.partner_domain_sets as partner,
       c.speaks_ipv6 is not distinct from false as without_ipv6,
       exists (select from finer_delegation f where f.crawler_id = c.crawler_id) as finer,
       array(
         select d.subnet_id from delegation d
         where d.crawler_id = c.crawler_id
         order by d.subnet_id limit ${fewSubnets + 1}
       ) as subnets
     from crawler c
     where c.crawler_id = any($1::int[])`,
    [requests.map(({ crawlerId }) => crawlerId)],
  );
  const byCrawler = new Map(rows.map((row) => [row.crawler_id, row]));
  return requests.map((request) => {
    const { partition = [], crawlerId } = request;
    const row = byCrawler.get(crawlerId);
    if (row === undefined)
      return { request, partition, subnets: [], withoutIpv6: false, hasFinerDelegations: false };
    return {
      request,
      subnets: row.subnets.length > fewSubnets ? null : row.subnets,
      partition: [...partition, ...partitionOf(row.operator, row.partner)],
      hasFinerDelegations: row.finer,
      withoutIpv6: row.without_ipv6,
    };
  });
}

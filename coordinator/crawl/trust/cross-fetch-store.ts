/** Chooses pages to compare: pages that were just fetched, and others of the same host by the same crawler. */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { Lease } from "#protocol/lease";
import { columnsOf, prepared } from "../../database/transaction.ts";
import { partitionOfLease } from "../../place/domain-sets/domain-set-store.ts";
import { isHeld, withHeldHosts } from "../../place/domain-sets/partition.ts";
import { addressKeysOf, isFreeFor, maxAddresses, writingLeases } from "../frontier/address-turn-store.ts";
import { type HostRow, paceColumns } from "../frontier/due-host-reads.ts";
import { type LeasedUrl, leaseOf } from "../frontier/host-lease-writes.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { leasedHosts, leasedItems, leaseValues, openLeases } from "../frontier/open-lease-reads.ts";
import { softwareOf } from "./cross-fetch-verdict-store.ts";
import type { CheckLeaseRequest, CheckTarget, NewCheck } from "./evidence.ts";
import { type PageSketch, sketchOfPage } from "./page-sketch.ts";

export async function silentHosts(pool: Pool, hosts: readonly HostHash[]): Promise<ReadonlySet<HostHash>> {
  const { rows } = await pool.query<{ host_hash: HostHash }>(
    "select host_hash from host_disagreement where host_hash = any($1::bigint[]) and silent",
    [hosts],
  );
  return new Set(rows.map((row) => row.host_hash));
}

/** Returns only hosts whose name was resolved, since nothing can be fetched from the others. */
export async function checkTargets(
  pool: Pool,
  hosts: readonly HostHash[],
): Promise<ReadonlyMap<HostHash, CheckTarget>> {
  const { rows } = await pool.query<CheckTarget & { readonly hostHash: HostHash }>(
    `select host_hash as "hostHash", host(addresses[1]) as address, coalesce(subnet_id, 0) as "subnetId"
     from frontier_host
     where host_hash = any($1::bigint[]) and state = 'resolved' and addresses <> '{}'`,
    [hosts],
  );
  return new Map(rows.map(({ hostHash, ...target }) => [hostHash, target]));
}

export async function openChecks(
  pool: Pool,
  crawlerId: CrawlerId,
  given: readonly NewCheck[],
): Promise<number> {
  const software = given.length === 0 ? null : await softwareOf(pool, crawlerId);
  if (software === null) return 0;
  const stored = await pageSketches(
    pool,
    crawlerId,
    given.filter(({ sketch }) => sketch === null).map(({ key }) => key),
  );
  const checks = given.flatMap((check) => {
    const sketch = check.sketch ?? stored.get(nameOf(check.key)) ?? null;
    if (sketch === null || sketch.kind === "none" || check.wanted.length === 0) return [];
    const texts = { sketch: JSON.stringify(sketch), wanted: JSON.stringify(check.wanted) };
    return [{ ...check, ...check.key, ...texts }];
  });
  if (checks.length === 0) return 0;
  const { rowCount } = await pool.query(
    `insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by)
     select given.host_hash, given.url_hash, given.host, given.url, $1, given.cause,
       jsonb_build_array(jsonb_build_object(
         'crawlerId', $1::int, 'at', given.fetched_at, 'version', $11::text, 'isOffered', $12::boolean,
         'sketch', given.sketch)),
       array(select jsonb_array_elements_text(given.wanted)::int), given.next_by
     from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
       $8::jsonb[], $9::jsonb[], $10::timestamptz[])
       as given (host_hash, url_hash, host, url, cause, fetched_at, sketch, wanted, next_by)
     where exists (
       select
       from page_fetch f
       where f.host_hash = given.host_hash and f.url_hash = given.url_hash
         and f.crawler_id = $1 and f.fetched_at = given.fetched_at
     )
     on conflict (host_hash, url_hash) where verdict is null do nothing`,
    [
      crawlerId,
      ...columnsOf(checks, [
        "hostHash",
        "urlHash",
        "host",
        "url",
        "cause",
        "fetchedAt",
        "sketch",
        "wanted",
        "nextBy",
      ]),
      software.version,
      software.isOffered,
    ],
  );
  return rowCount ?? 0;
}

export interface PagesOf {
  readonly crawlerId: CrawlerId;
  readonly hostHash: HostHash;
  readonly since: Date;
}

/** Leaves out pages that were compared before. */
export async function recentPages(
  pool: Pool,
  { crawlerId, hostHash, since }: PagesOf,
  most: number,
): Promise<{ key: UrlKey; fetchedAt: Date }[]> {
  const { rows } = await pool.query<Omit<UrlKey, "hostHash"> & { readonly fetchedAt: Date }>(
    `select p.url, p.host, p.url_hash as "urlHash", p.fetched_at as "fetchedAt"
     from page p
     where p.host_hash = $1
       and p.crawler_id = $2
       and p.fetched_at >= $3
       and ${hasText}
       and not exists (
         select from double_check c where c.host_hash = p.host_hash and c.url_hash = p.url_hash and c.crawler_id = $2
       )
     order by p.fetched_at desc
     limit $4`,
    [hostHash, crawlerId, since, most],
  );
  return rows.map(({ fetchedAt, ...key }) => ({ key: { ...key, hostHash }, fetchedAt }));
}

/** SQL: the page has a text to compare, unless its site does not want it searched. `p` is a row of table page. */
const hasText = `not exists (
         select from preference_set s
         where s.set_id = p.preference_set and coalesce(s.answers ->> 'search', 'allowed') <> 'allowed'
       )`;

/** Reads sketches from the index, only of pages that this crawler sent, since it is not responsible for another's. */
async function pageSketches(
  pool: Pool,
  crawlerId: CrawlerId,
  keys: readonly UrlKey[],
): Promise<ReadonlyMap<string, PageSketch>> {
  if (keys.length === 0) return new Map();
  type Row = Pick<UrlKey, "hostHash" | "urlHash"> & Record<"digest" | "simhash" | "title", string>;
  const { rows } = await pool.query<Row & { readonly links: string[] }>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.digest, p.simhash, p.title,
       array(
         select unnest(o.urls)::text
         from out_link o
         where o.host_hash = p.host_hash and o.url_hash = p.url_hash
       ) as links
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     join page p using (host_hash, url_hash)
     where p.crawler_id = $3 and ${hasText}`,
    [...columnsOf(keys, ["hostHash", "urlHash"]), crawlerId],
  );
  return new Map(
    rows.map(({ links, ...page }) => [
      nameOf(page),
      sketchOfPage({ ...page, links: links.map((urlHash) => ({ urlHash })) }),
    ]),
  );
}

const nameOf = (key: Pick<UrlKey, "hostHash" | "urlHash">) => `${key.hostHash}/${key.urlHash}`;

// Leases for comparisons look to the crawler like leases of new pages. Such a lease holds its host as usual, but the
// frontier's URLs stay unchanged.

export async function leaseChecks(pool: Pool, request: CheckLeaseRequest): Promise<Lease[]> {
  // Usually there is nothing to compare, so no transaction is needed.
  if (request.hosts < 1 || !(await isWanted(pool, request))) return [];
  return await writingLeases(pool, async ({ client, turns }) => {
    const hosts = await turns.begin(await lockHostsOfChecks(client, request), request);
    if (hosts.length === 0) return [];
    const urls = await leaseUrls(client, hosts, request);
    turns.keep(urls.map((url) => url.host_hash));
    await settleHosts(
      client,
      hosts.map((host) => host.host_hash),
    );
    return hosts.flatMap((host) => {
      const slice = urls.filter((url) => url.host_hash === host.host_hash);
      return slice.length === 0 ? [] : [leaseOf(host, { leaseId: slice[0]!.lease_id, urls: slice }, request)];
    });
  });
}

/** SQL: the comparison asks this crawler. Scans the open comparisons, which are few. */
const isForCrawler = (crawlerId: string) =>
  `c.verdict is null and ${crawlerId} = any(c.wanted) and c.next_by > $2`;
const isFor = isForCrawler("$1");

async function isWanted(pool: Pool, { crawlerId, now }: CheckLeaseRequest): Promise<boolean> {
  const { rows } = await prepared<{ found: boolean }>(
    pool,
    `select exists (select from double_check c where ${isFor}) as found`,
    [crawlerId, now],
  );
  return rows[0]!.found;
}

/** Locks hosts that are free and rested, those with the earliest deadline first. */
async function lockHostsOfChecks(client: PoolClient, request: CheckLeaseRequest): Promise<HostRow[]> {
  const { text, values } = withHeldHosts(
    `select h.host_hash, h.host, $1::int as crawler_id, ${paceColumns},
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
       and ${isFreeFor("h", "$1")}
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

interface CheckRow extends LeasedUrl {
  readonly lease_id: string;
  readonly host_hash: HostHash;
}

/** Sends no validators, because they would show that the page was fetched before. */
async function leaseUrls(
  client: PoolClient,
  hosts: readonly HostRow[],
  request: CheckLeaseRequest,
): Promise<CheckRow[]> {
  const { rows } = await client.query<CheckRow>(
    `with slice as materialized (
       select h.host_hash, h.host, h.addresses, h.crawler_id, array(
         select check_id
         from double_check c
         where c.host_hash = h.host_hash and ${isForCrawler("h.crawler_id")}
         order by c.next_by, c.check_id
         limit h.slots
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
     returning c.lease_id, c.host_hash, c.url, null as etag, null as last_modified, null as digest, 0 as redirects`,
    [...leaseValues(hosts, request, () => request.urlsPerHost)],
  );
  return rows;
}

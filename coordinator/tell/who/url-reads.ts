/** The frontier's data about a URL, a host and a subnet: state, due time, lease, fetches. */

import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import type { UrlKey } from "#core/url-key";
import type { TextsElsewhere } from "../../crawl/changes/page-text-reads.ts";
import { hostBudget, hostPageColumns } from "../../crawl/frontier/budgets.ts";
import { domainReport } from "../../crawl/frontier/domain-store.ts";
import {
  type FetchLine,
  type HostReport,
  type UrlReport,
  visitsListed,
  type WaitingReport,
} from "../../crawl/frontier/frontier-reports-api.ts";
import { urlsInHand, urlTurn } from "../../crawl/frontier/open-lease-reads.ts";
import { statedOfHost, statedUsesOf } from "../../crawl/results/stated-uses-store.ts";
import { roundedMs, toldRows } from "../../database/cached-read.ts";
import { pageReport } from "../search/page-reads.ts";

const fetchesShown = 20;

const nextUrlsShown = 10;
const waitingHostsShown = 8;

const waitingCountLimit = 1000;

/** Maximum number of one host's URLs that are counted by state. */
const urlCountLimit = 50_000;

type UrlRow = Omit<UrlReport, "id" | "foundBy" | "page" | "stated" | "fetches"> & { readonly lists: number };

export async function urlReport(
  pool: Pool,
  key: UrlKey,
  now: Date,
  elsewhere?: TextsElsewhere,
): Promise<UrlReport | null> {
  const { hostHash, urlHash } = key;
  const [known] = await toldRows<UrlRow>(
    pool,
    `select u.url, ${stateSql(urlsInHand("u.host_hash"), "$3::timestamptz")} as state, u.depth, u.redirects, u.lists,
       u.back_links as "backLinks", u.discovered_at as "discoveredAt", u.next_fetch_at as "nextFetchAt", u.visits, u.failures,
       u.last_fetched_at as "lastFetchedAt", u.last_outcome as "lastOutcome", u.last_status as "lastStatus",
       u.last_reason as "lastReason", u.worth,
       json_build_object('etag', u.etag, 'lastModified', u.last_modified, 'digest', encode(u.digest, 'hex')) as validators,
       json_build_object('perDay', u.changes_per_day, 'comparedVisits', u.compared_visits,
         'contentChanges', u.content_changes, 'outLinks', u.out_links, 'linkRatio', u.change_ratio) as changes
     from frontier_url u
     where u.host_hash = $1 and u.url_hash = $2`,
    [hostHash, urlHash, now],
  );
  const row = known ?? (await heldUrl(pool, key));
  if (row === null) return null;
  const { lists, ...url } = row;
  return {
    ...url,
    id: { hostHash, urlHash },
    foundBy: foundBy(row),
    page: await pageReport(pool, key, elsewhere),
    stated: await statedUsesOf(pool, key),
    fetches: await fetchesOf(pool, hostHash, urlHash),
  };
}

async function heldUrl(pool: Pool, { hostHash, urlHash }: UrlKey): Promise<UrlRow | null> {
  const [held] = await toldRows<Omit<UrlRow, keyof typeof neverFetched>>(
    pool,
    `select url, depth, redirects, lists, back_links as "backLinks", discovered_at as "discoveredAt",
       discovered_at as "nextFetchAt"
     from held_url
     where host_hash = $1 and url_hash = $2`,
    [hostHash, urlHash],
  );
  return held ? { ...held, ...neverFetched } : null;
}

const neverFetched = {
  ...({ state: "held", visits: 0, failures: 0, worth: null } as const),
  ...{ lastFetchedAt: null, lastOutcome: null, lastStatus: null, lastReason: null },
  validators: { etag: null, lastModified: null, digest: null },
  changes: { perDay: null, comparedVisits: 0, contentChanges: 0, outLinks: null, linkRatio: null },
};

function foundBy({ depth, redirects, lists }: UrlRow): UrlReport["foundBy"] {
  if (redirects > 0) return "redirect";
  if (lists > 0) return "list";
  return depth === 0 ? "seed" : "link";
}

/** SQL: the state of `u`, a row of frontier_url, in which pages that require payment have a state of their own. */
const stateSql = (inHand: string, now: string) =>
  `case when u.state = 'gone' and u.last_outcome = 'payment-required' and u.url_hash <> all (${inHand})
     then 'payment-required' else ${urlTurn("u", { inHand, now })} end`;

/** SQL: counts by kind of page, which determine the budget. */
const pageCounts = Object.entries(hostPageColumns).map(([figure, column]) => `'${figure}', h.${column}`);

type HostRow = Omit<HostReport, "urlStates" | "budget" | "stated" | "domain" | "nextUrls" | "fetches"> &
  Omit<HostReport["budget"], "earnedUrls">;

/** `counted` adds counts over URLs and pages and the latest fetches. Without it, the read is fast for any host. */
export async function hostReport(
  pool: Pool,
  hostHash: HostHash,
  now: Date,
  counted = true,
): Promise<HostReport | null> {
  const [row] = await toldRows<HostRow>(
    pool,
    `select h.host, h.state, h.state_reason as "stateReason", h.resolve_at as "resolveAt",
       h.resolve_failures as "resolveFailures",
       array(select host(address) from unnest(h.addresses) as address) as addresses, h.url_count as "urlCount",
       h.due_at as "dueAt", h.not_before as "notBefore", c.name as "lease.crawler", l.granted_at as "lease.grantedAt",
       l.expires_at as "lease.expiresAt", l.open_urls as "lease.openUrls",
       case when h.robots_at is not null then h.robots_state end as "robots.state", h.robots_at as "robots.at",
       -- 0 stands for: not known, and for no back-off.
       case when coalesce(h.crawl_delay_ms, h.back_off_ms) is not null then coalesce(h.crawl_delay_ms, 0) end
         as "pace.crawlDelayMs",
       case when h.back_off_ms > 0 then h.back_off_ms end as "pace.backOffMs",
       case when h.back_off_ms > 0 then h.backed_off_at end as "pace.backedOffAt", nullif(h.usual_ms, 0) as "pace.usualMs",
       h.tolerated as "pace.tolerated", h.cap_delay_ms as "capDelayMs", h.http_version as "connection.http",
       h.tls_version as "connection.tls", h.held_urls as "heldUrls", h.left_out_urls::float8 as "leftOutUrls",
       json_build_object(${pageCounts}) as pages, h.payments_asked as "payment.inARow",
       h.payment_asked_at as "payment.askedAt", h.payment_price as "payment.price", h.challenges as "botGate.tries",
       h.challenge_provider as "botGate.provider",
       case h.challenge_of when 'robots' then 'robots' else 'page' end as "botGate.of",
       h.challenged_since as "botGate.since", h.challenged_at as "botGate.lastAt"
     from frontier_host h
     left join lease l on l.lease_id = h.lease_id and l.closed_at is null
     left join crawler c using (crawler_id)
     where h.host_hash = $1`,
    [hostHash],
  );
  if (row === undefined) return null;
  const [urlStates, stated, nextUrls, fetches] = await Promise.all([
    counted ? countByState(pool, hostHash, now) : {},
    counted ? statedOfHost(pool, hostHash) : { pages: 0, more: false, counts: [] },
    nextUrlsOf(pool, hostHash),
    counted ? fetchesOf(pool, hostHash, null) : [],
  ]);
  const { heldUrls, leftOutUrls, pages, ...host } = row;
  return {
    ...host,
    urlStates: heldUrls === 0 ? urlStates : { ...urlStates, held: heldUrls },
    // For a leased host, this is the next URL outside the lease.
    dueAt: host.lease === null ? host.dueAt : (nextUrls[0]?.nextFetchAt ?? null),
    budget: { earnedUrls: hostBudget(pages, Number.POSITIVE_INFINITY), heldUrls, leftOutUrls, pages },
    stated,
    domain: await domainReport(pool, registrableDomain(host.host), now),
    nextUrls,
    fetches,
  };
}

async function countByState(pool: Pool, hostHash: HostHash, now: Date): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ state: string; urls: number }>(
    `select state, count(*)::int as urls
     from (
       select ${stateSql("in_lease.urls", "$2::timestamptz")} as state
       from (select ${urlsInHand("$1::bigint")} as urls) in_lease
       cross join frontier_url u
       where u.host_hash = $1
       limit ${urlCountLimit}
     ) counted
     group by state`,
    [hostHash, now],
  );
  return Object.fromEntries(rows.map((row) => [row.state, row.urls]));
}

async function nextUrlsOf(pool: Pool, hostHash: HostHash): Promise<HostReport["nextUrls"]> {
  return await toldRows(
    pool,
    `select url, next_fetch_at as "nextFetchAt"
     from frontier_url
     where host_hash = $1 and state = 'due' and isfinite(next_fetch_at) and url_hash <> all(${urlsInHand("$1::bigint")})
     order by next_fetch_at
     limit ${nextUrlsShown}`,
    [hostHash],
  );
}

/** Reads the latest fetches of a URL or the whole host, newest first. */
async function fetchesOf(pool: Pool, hostHash: HostHash, urlHash: string | null): Promise<FetchLine[]> {
  return await toldRows(
    pool,
    `select coalesce(u.url, '') as url, coalesce(c.name, 'unknown') as crawler, f.fetched_at as "fetchedAt", f.outcome,
       f.blame, f.status, coalesce(${roundedMs("f.total_ms")}, 0) as "totalMs", f.body_bytes as "bodyBytes",
       f.shipped_bytes as "shippedBytes", f.changed
     from (
       select *
       from page_fetch
       where host_hash = $1 and ($2::bigint is null or url_hash = $2::bigint)
       order by fetched_at desc
       limit ${urlHash === null ? fetchesShown : visitsListed}
     ) f
     left join frontier_url u using (host_hash, url_hash)
     left join crawler c using (crawler_id)
     order by f.fetched_at desc`,
    [hostHash, urlHash],
  );
}

/** Reads hosts directly in this subnet that have something to fetch and no lease. */
export async function waitingReport(pool: Pool, subnetId: number): Promise<WaitingReport> {
  const waits = "subnet_id = $1 and lease_id is null and state = 'resolved' and due_at is not null";
  const { rows } = await pool.query<{ hosts: number }>(
    `select count(*)::int as hosts
     from (select from frontier_host where ${waits} limit ${waitingCountLimit + 1}) counted`,
    [subnetId],
  );
  const { hosts } = rows[0]!;
  return {
    subnetId,
    hosts: Math.min(hosts, waitingCountLimit),
    more: hosts > waitingCountLimit,
    next: await toldRows(
      pool,
      `select host, due_at as "dueAt", url_count as urls
       from frontier_host
       where ${waits}
       order by greatest(due_at, not_before), host
       limit ${waitingHostsShown}`,
      [subnetId],
    ),
  };
}

/** Returns why the submitted URL was refused, or null if it was not. */
export async function rejectionOf(pool: Pool, url: string): Promise<string | null> {
  const sql = "select reason from rejected_url where url = $1";
  const { rows } = await pool.query<{ reason: string }>(sql, [url]);
  return rows[0]?.reason ?? null;
}

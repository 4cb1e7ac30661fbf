/** What the frontier knows of a URL, a host and a subnet: state, what is due, who has it, what was fetched. */

import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import type { UrlKey } from "#core/url-key";
import { iso, isoOrNull, roundMs } from "../database/cached-read.ts";
import { type HostPages, hostBudget, type PageWorth } from "../frontier/budgets.ts";
import { domainReport } from "../frontier/domain-store.ts";
import {
  type FetchLine,
  type HostReport,
  type UrlReport,
  visitsListed,
  type WaitingReport,
} from "../frontier/frontier-reports-api.ts";
import { hostPageColumns } from "../frontier/host-budget-sql.ts";
import type { KeptRate } from "../frontier/kept-rate.ts";
import { urlsInHand, urlTurn } from "../frontier/open-lease-reads.ts";
import { statedOfHost, statedUsesOf } from "../results/stated-uses-store.ts";
import { pageReport } from "../search/page-reads.ts";

const fetchesShown = 20;

const nextUrlsShown = 10;
const waitingHostsShown = 8;

/** Hosts counted as waiting in one subnet at most. */
const waitingCountLimit = 1000;

/** URLs of one host that are counted by state at most. */
const urlCountLimit = 50_000;

interface UrlRow {
  url: string;
  state: UrlReport["state"];
  depth: number;
  back_links: number;
  discovered_at: Date;
  next_fetch_at: Date | number;
  visits: number;
  failures: number;
  last_fetched_at: Date | null;
  last_outcome: string | null;
  last_status: number | null;
  last_reason: string | null;
  redirects: number;
  lists: number;
  worth: PageWorth | null;
  etag: string | null;
  last_modified: string | null;
  digest: string | null;
  changes_per_day: number | null;
  compared_visits: number;
  content_changes: number;
  out_links: number | null;
  change_ratio: number | null;
}

export async function urlReport(pool: Pool, key: UrlKey, now: Date): Promise<UrlReport | null> {
  const { rows } = await pool.query<UrlRow>(
    `select u.url, ${stateSql(urlsInHand("u.host_hash"), "$3::timestamptz")} as state, u.depth, u.back_links, u.discovered_at, u.next_fetch_at, u.visits, u.failures,
       u.last_fetched_at, u.last_outcome, u.last_status, u.last_reason, u.redirects, u.lists, u.worth,
       u.etag, u.last_modified, encode(u.digest, 'hex') as digest, u.changes_per_day, u.compared_visits,
       u.content_changes, u.out_links, u.change_ratio
     from frontier_url u
     where u.host_hash = $1 and u.url_hash = $2`,
    [key.hostHash, key.urlHash, now],
  );
  const row = rows[0] ?? (await heldUrl(pool, key));
  if (!row) return null;
  return {
    url: row.url,
    id: { hostHash: key.hostHash, urlHash: key.urlHash },
    foundBy: foundBy(row),
    state: row.state,
    depth: row.depth,
    redirects: row.redirects,
    backLinks: row.back_links,
    discoveredAt: iso(row.discovered_at),
    nextFetchAt: isoOrNull(row.next_fetch_at),
    visits: row.visits,
    failures: row.failures,
    lastFetchedAt: isoOrNull(row.last_fetched_at),
    lastOutcome: row.last_outcome,
    lastStatus: row.last_status,
    lastReason: row.last_reason,
    worth: row.worth,
    validators: { etag: row.etag, lastModified: row.last_modified, digest: row.digest },
    changes: {
      perDay: row.changes_per_day,
      comparedVisits: row.compared_visits,
      contentChanges: row.content_changes,
      outLinks: row.out_links,
      linkRatio: row.change_ratio,
    },
    page: await pageReport(pool, key),
    stated: await statedUsesOf(pool, key),
    fetches: await fetchesOf(pool, key.hostHash, key.urlHash),
  };
}

async function heldUrl(pool: Pool, { hostHash, urlHash }: UrlKey): Promise<UrlRow | null> {
  const { rows } = await pool.query<Omit<UrlRow, keyof typeof neverFetched>>(
    `select url, depth, redirects, lists, back_links, discovered_at, discovered_at as next_fetch_at
     from held_url
     where host_hash = $1 and url_hash = $2`,
    [hostHash, urlHash],
  );
  return rows[0] ? { ...rows[0], ...neverFetched } : null;
}

const neverFetched = {
  state: "held",
  visits: 0,
  failures: 0,
  last_fetched_at: null,
  last_outcome: null,
  last_status: null,
  last_reason: null,
  worth: null,
  etag: null,
  last_modified: null,
  digest: null,
  changes_per_day: null,
  compared_visits: 0,
  content_changes: 0,
  out_links: null,
  change_ratio: null,
} as const;

function foundBy({ depth, redirects, lists }: UrlRow): UrlReport["foundBy"] {
  if (redirects > 0) return "redirect";
  if (lists > 0) return "list";
  return depth === 0 ? "seed" : "link";
}

/** SQL: the turn of `u`, a row of frontier_url, where what asks to be paid is told apart. */
const stateSql = (inHand: string, now: string) =>
  `case when u.state = 'gone' and u.last_outcome = 'payment-required' and u.url_hash <> all (${inHand})
     then 'payment-required' else ${urlTurn("u", { inHand, now })} end`;

interface HostRow extends HostStateRow {
  host: string;
  state: HostReport["state"];
  state_reason: string;
  resolve_at: Date;
  resolve_failures: number;
  addresses: string[];
  url_count: number;
  due_at: Date | null;
  not_before: Date | number;
  payments_asked: number | null;
  payment_asked_at: Date | null;
  payment_price: string | null;
  challenges: number | null;
  challenge_provider: string;
  challenge_of: string;
  challenged_since: Date;
  challenged_at: Date;
  lease_crawler: string | null;
  granted_at: Date;
  expires_at: Date;
  open_urls: number;
}

/** `counted`: with what is counted over its URLs and pages, and its latest fetches; without, as quick for a host of any size. */
export async function hostReport(
  pool: Pool,
  hostHash: HostHash,
  { now, counted = true }: { readonly now: Date; readonly counted?: boolean },
): Promise<HostReport | null> {
  const { rows } = await pool.query<HostRow>(
    `select h.host, h.state, h.state_reason, h.resolve_at, h.resolve_failures, h.url_count, h.due_at,
       h.not_before, h.payments_asked, h.payment_asked_at, h.payment_price,
       h.challenges, h.challenge_provider, h.challenge_of, h.challenged_since, h.challenged_at, ${hostStateColumns}, array(select host(address) from unnest(h.addresses) as address) as addresses,
       c.name as lease_crawler, l.granted_at, l.expires_at, l.open_urls
     from frontier_host h
     left join lease l on l.lease_id = h.lease_id and l.closed_at is null
     left join crawler c using (crawler_id)
     where h.host_hash = $1`,
    [hostHash],
  );
  const row = rows[0];
  if (!row) return null;
  const [urlStates, stated, nextUrls, fetches] = await Promise.all([
    counted ? countByState(pool, hostHash, now) : {},
    counted ? statedOfHost(pool, hostHash) : { pages: 0, more: false, counts: [] },
    nextUrlsOf(pool, hostHash),
    counted ? fetchesOf(pool, hostHash, null) : [],
  ]);
  return {
    host: row.host,
    state: row.state,
    stateReason: row.state_reason,
    resolveAt: iso(row.resolve_at),
    resolveFailures: row.resolve_failures,
    addresses: row.addresses,
    urlCount: row.url_count,
    urlStates: row.held_urls === 0 ? urlStates : { ...urlStates, held: row.held_urls },
    // Of a host under a lease, what else there is of it.
    dueAt: row.lease_crawler === null ? isoOrNull(row.due_at) : (nextUrls[0]?.nextFetchAt ?? null),
    notBefore: isoOrNull(row.not_before),
    lease: leaseOf(row),
    ...hostState(row),
    stated,
    payment: paymentOf(row),
    botGate: botGateOf(row),
    domain: await domainReport(pool, registrableDomain(row.host), now),
    nextUrls,
    fetches,
  };
}

function paymentOf(row: HostRow): HostReport["payment"] {
  if (row.payments_asked === null) return null;
  const { payments_asked: inARow, payment_price: price } = row;
  return { inARow, askedAt: isoOrNull(row.payment_asked_at), price };
}

function botGateOf(row: HostRow): HostReport["botGate"] {
  if (row.challenges === null) return null;
  return {
    provider: row.challenge_provider,
    of: row.challenge_of === "robots" ? "robots" : "page",
    tries: row.challenges,
    ...{ since: iso(row.challenged_since), lastAt: iso(row.challenged_at) },
  };
}

function leaseOf(row: HostRow): HostReport["lease"] {
  if (row.lease_crawler === null) return null;
  return {
    crawler: row.lease_crawler,
    grantedAt: iso(row.granted_at),
    expiresAt: iso(row.expires_at),
    openUrls: row.open_urls,
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
  const { rows } = await pool.query<{ url: string; next_fetch_at: Date | number }>(
    `select url, next_fetch_at
     from frontier_url
     where host_hash = $1 and state = 'due' and url_hash <> all(${urlsInHand("$1::bigint")})
     order by next_fetch_at
     limit ${nextUrlsShown}`,
    [hostHash],
  );
  return rows.flatMap((row) => {
    const nextFetchAt = isoOrNull(row.next_fetch_at);
    return nextFetchAt === null ? [] : [{ url: row.url, nextFetchAt }];
  });
}

interface FetchRow {
  url: string | null;
  crawler: string | null;
  fetched_at: Date;
  outcome: string;
  blame: string | null;
  status: number | null;
  total_ms: number;
  body_bytes: number;
  shipped_bytes: number;
  changed: boolean | null;
}

/** The latest fetches of a URL, or of a whole host when no URL is given; newest first. */
async function fetchesOf(pool: Pool, hostHash: HostHash, urlHash: string | null): Promise<FetchLine[]> {
  const { rows } = await pool.query<FetchRow>(
    `select u.url, c.name as crawler, f.fetched_at, f.outcome, f.blame, f.status, f.total_ms, f.body_bytes,
       f.shipped_bytes, f.changed
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
  return rows.map((row) => ({
    url: row.url ?? "",
    crawler: row.crawler ?? "unknown",
    fetchedAt: iso(row.fetched_at),
    outcome: row.outcome,
    blame: row.blame,
    status: row.status,
    totalMs: roundMs(row.total_ms) ?? 0,
    bodyBytes: row.body_bytes,
    shippedBytes: row.shipped_bytes,
    changed: row.changed,
  }));
}

/** Hosts in this very subnet (not in those inside it) that have something to fetch and no lease. */
export async function waitingReport(pool: Pool, subnetId: number): Promise<WaitingReport> {
  const [count, next] = await Promise.all([
    pool.query<{ hosts: number }>(
      `select count(*)::int as hosts
       from (
         select 1
         from frontier_host
         where subnet_id = $1 and lease_id is null and state = 'resolved' and due_at is not null
         limit ${waitingCountLimit + 1}
       ) counted`,
      [subnetId],
    ),
    pool.query<{ host: string; due_at: Date; urls: number }>(
      `select host, due_at, url_count as urls
       from frontier_host
       where subnet_id = $1 and lease_id is null and state = 'resolved' and due_at is not null
       order by greatest(due_at, not_before), host
       limit ${waitingHostsShown}`,
      [subnetId],
    ),
  ]);
  const { hosts } = count.rows[0]!;
  return {
    subnetId,
    hosts: Math.min(hosts, waitingCountLimit),
    more: hosts > waitingCountLimit,
    next: next.rows.map((row) => ({ host: row.host, dueAt: iso(row.due_at), urls: row.urls })),
  };
}

/** Why a text that somebody submitted has no place in the frontier; null when it was not refused. */
export async function rejectionOf(pool: Pool, url: string): Promise<string | null> {
  const { rows } = await pool.query<{ reason: string }>("select reason from rejected_url where url = $1", [
    url,
  ]);
  return rows[0]?.reason ?? null;
}

// Of a host's row: robots.txt, pace, connection and budget, as a report tells them.

interface HostStateRow {
  robots_state: NonNullable<HostReport["robots"]>["state"] | null;
  robots_at: Date | null;
  crawl_delay_ms: number | null;
  back_off_ms: number | null;
  backed_off_at: Date | null;
  usual_ms: number | null;
  cap_delay_ms: number | null;
  tolerated: KeptRate | null;
  http_version: string | null;
  tls_version: string | null;
  held_urls: number;
  left_out_urls: number;
  pages: HostPages;
}

/** SQL: the columns of frontier_host (as `h`) that make a HostStateRow. */
const hostStateColumns = `h.robots_state, h.robots_at, h.crawl_delay_ms, h.back_off_ms, h.backed_off_at,
  h.usual_ms, h.cap_delay_ms, h.tolerated, h.http_version, h.tls_version, h.held_urls, h.left_out_urls::float8 as left_out_urls, json_build_object(${Object.entries(
    hostPageColumns,
  )
    .map(([figure, column]) => `'${figure}', h.${column}`)
    .join(", ")}) as pages`;

function hostState(
  row: HostStateRow,
): Pick<HostReport, "robots" | "pace" | "capDelayMs" | "connection" | "budget"> {
  const robotsAt = isoOrNull(row.robots_at);
  return {
    robots: row.robots_state === null || robotsAt === null ? null : { state: row.robots_state, at: robotsAt },
    pace: paceOf(row),
    capDelayMs: row.cap_delay_ms,
    connection: row.http_version === null ? null : { http: row.http_version, tls: row.tls_version },
    budget: {
      earnedUrls: hostBudget(row.pages, Number.POSITIVE_INFINITY),
      heldUrls: row.held_urls,
      leftOutUrls: row.left_out_urls,
      pages: row.pages,
    },
  };
}

function paceOf(row: HostStateRow): HostReport["pace"] {
  if (row.crawl_delay_ms === null && row.back_off_ms === null) return null;
  const isBackedOff = (row.back_off_ms ?? 0) > 0;
  return {
    crawlDelayMs: row.crawl_delay_ms ?? 0,
    backOffMs: isBackedOff ? row.back_off_ms : null,
    backedOffAt: isBackedOff ? isoOrNull(row.backed_off_at) : null,
    // 0 stands for: not known.
    usualMs: row.usual_ms || null,
    tolerated: row.tolerated,
  };
}

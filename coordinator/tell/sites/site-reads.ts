/** Reads one host from the tables, part by part. Each statement reads a bounded number of rows, however large the host is. */
import type { Pool } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { rangeStepSeconds, type TimeRange } from "#core/time-range";
import type { StatedPreference, UseAnswers } from "#protocol/preferences";
import { linksBeyond } from "../../crawl/batch/link-sql.ts";
import { answersText, countAnswers, statementLines } from "../../crawl/batch/stated-uses.ts";
import type { ChangeKind } from "../../crawl/changes/page-change.ts";
import { urlsInHand, urlTurn } from "../../crawl/frontier/open-lease-reads.ts";
import { readsOver, roundedMs, toldRows } from "../../database/cached-read.ts";
import type { SiteLinks, SiteOverview, SiteRobots, SiteSpeed, SiteUrl, UrlFilter } from "./site-api.ts";
import type { Standing } from "./sites-api.ts";
import { standingSql } from "./sites-upkeep-store.ts";

/** Maximum number of URLs that are counted. */
const mostCounted = 50_000;

/** Maximum number of URLs that one page of a list scans. */
const mostLookedAt = 20_000;

/** Maximum number of the latest fetches of a time range. */
const mostFetches = 50_000;

/** Maximum number of pages read from the index, whose rows are wide. */
const mostPages = 5000;

const urlsShown = 50;

export interface SiteRow {
  readonly standing: Standing;
  readonly language: string | null;
  readonly admittedAt: Date;
  readonly urls: number;
  readonly fetchedUrls: number;
  readonly fetches: number;
  readonly fetchedBytes: number;
  readonly outsideLinks: number;
  readonly trappedLinks: number;
  readonly channels: readonly { readonly channelId: number; readonly directories: readonly string[] }[];
}

/** Returns null if the frontier does not hold the host. */
async function siteRow(pool: Pool, hostHash: HostHash, now: Date): Promise<SiteRow | null> {
  const { rows } = await pool.query<SiteRow>(
    `select ${standingSql("$2::timestamptz")} as standing, language, admitted_at as "admittedAt", url_count as urls,
       fetched_urls as "fetchedUrls", fetches, fetched_bytes::float8 as "fetchedBytes", outside_links as "outsideLinks",
       trapped_links as "trappedLinks",
       (select coalesce(jsonb_agg(jsonb_build_object('channelId', channel_id, 'directories', directories)
           order by channel_id), '[]')
        from (select * from channel c where c.host_hash = h.host_hash order by channel_id limit 20) own) as channels
     from frontier_host h
     where host_hash = $1`,
    [hostHash, now],
  );
  return rows[0] ?? null;
}

// The overview: URLs by state, the age of their pages, and failures.

async function countUrls(
  pool: Pool,
  hostHash: HostHash,
  now: Date,
): Promise<Pick<SiteOverview, "urls" | "freshness">> {
  const isPage = "last_outcome in ('fetched', 'unchanged') and state = 'due'";
  const within = (days: number) =>
    `count(*) filter (where ${isPage} and last_fetched_at >= $2::timestamptz - interval '${days} days')::int`;
  const rows = await toldRows<Pick<SiteOverview, "urls" | "freshness">>(
    pool,
    `select least(count(*), ${mostCounted})::int as "urls.counted", count(*) > ${mostCounted} as "urls.more",
       greatest(0, count(*) filter (where state = 'due' and next_fetch_at <= $2)
         - cardinality(${urlsInHand("$1::bigint")}))::int as "urls.due",
       cardinality(${urlsInHand("$1::bigint")}) as "urls.inProgress",
       count(*) filter (where state = 'due' and next_fetch_at > $2)::int as "urls.scheduled",
       count(*) filter (where state = 'due' and failures > 0)::int as "urls.failing",
       count(*) filter (where state = 'refused' and last_outcome = 'refused-by-robots')::int as "urls.blockedByRobots",
       count(*) filter (where state = 'refused' and last_outcome is distinct from 'refused-by-robots')::int as "urls.refused",
       count(*) filter (where state = 'gone')::int as "urls.gone",
       count(*) filter (where ${isPage})::int as "freshness.pages", ${within(1)} as "freshness.withinDay",
       ${within(7)} as "freshness.within7Days", ${within(30)} as "freshness.within30Days",
       ${within(90)} as "freshness.within90Days",
       min(last_fetched_at) filter (where ${isPage}) as "freshness.oldestAt"
     from (
       select state, last_outcome, last_fetched_at, next_fetch_at, failures
       from frontier_url
       where host_hash = $1
       limit ${mostCounted + 1}
     ) looked`,
    [hostHash, now],
  );
  return rows[0]!;
}

/** Counts pages that are empty without scripts. */
async function drawnByScripts(pool: Pool, hostHash: HostHash): Promise<SiteOverview["needsScripts"]> {
  const { rows } = await pool.query<{ pages: number; looked: number; urls: readonly string[] | null }>(
    `select count(*) filter (where needs_scripts)::int as pages, count(*)::int as looked,
       (array_agg(url order by url) filter (where needs_scripts))[1:10] as urls
     from (select needs_scripts, url from page where host_hash = $1 limit ${mostPages + 1}) looked`,
    [hostHash],
  );
  const { pages, looked, urls } = rows[0]!;
  return { pages, more: looked > mostPages, urls: [...(urls ?? [])] };
}

async function failuresOf(
  pool: Pool,
  hostHash: HostHash,
  range: TimeRange,
): Promise<SiteOverview["failures"]> {
  const stepSeconds = rangeStepSeconds(range);
  const { rows } = await pool.query<{
    at: Date;
    outcome: string;
    status: number | null;
    blame: string | null;
    fetches: number;
  }>(
    `select ${stepOf("$4")} as at, outcome, status, blame, count(*)::int as fetches
     from (${fetchesIn("fetched_at, outcome, status, blame")}) looked
     group by 1, 2, 3, 4`,
    [hostHash, range.since, range.until, stepSeconds],
  );
  const points = new Map<number, Record<"fetches" | "target" | "network" | "crawler" | "us", number>>();
  const kinds = new Map<string, SiteOverview["failures"]["kinds"][number]>();
  let all = 0;
  for (const { at, outcome, status, blame, fetches } of rows) {
    all += fetches;
    const point = points.get(at.getTime()) ?? { fetches: 0, target: 0, network: 0, crawler: 0, us: 0 };
    point.fetches += fetches;
    if (blame !== null) point[blame as "target"] += fetches;
    points.set(at.getTime(), point);
    if (!isFailure(outcome)) continue;
    const key = `${outcome} ${status} ${blame}`;
    kinds.set(key, { outcome, status, blame, fetches: fetches + (kinds.get(key)?.fetches ?? 0) });
  }
  return {
    ...{ since: range.since.toISOString(), until: range.until.toISOString(), stepSeconds },
    ...{ fetches: all, more: all >= mostFetches },
    kinds: [...kinds.values()].sort((a, b) => b.fetches - a.fetches),
    points: [...points]
      .sort(([a], [b]) => a - b)
      .map(([atMs, point]) => ({ at: new Date(atMs).toISOString(), ...point })),
  };
}

const isFailure = (outcome: string) => !["fetched", "unchanged", "redirected"].includes(outcome);

/** SQL, in which $1 is the host, and $2 and $3 are the time range. */
const fetchesIn = (columns: string) =>
  `select ${columns} from page_fetch where host_hash = $1 and fetched_at >= $2 and fetched_at < $3
   order by fetched_at desc limit ${mostFetches}`;

const stepOf = (seconds: string) =>
  `date_bin(make_interval(secs => ${seconds}::float8), fetched_at, timestamptz '2000-01-01 00:00:00Z')`;

// The host's URLs, one section at a time.

interface AskedUrls {
  readonly filter: UrlFilter;
  readonly outcome: string | null;
  readonly status: number | null;
  /** The `next` of the previous section; empty for the first. */
  readonly after: string;
}

interface FoundUrls {
  readonly urls: readonly SiteUrl[];
  readonly next: string | null;
  readonly looked: number | null;
}

interface SiteUrls {
  readonly hostHash: HostHash;
  readonly host: string;
  /** How many URLs the host has. */
  readonly urls: number;
}

/** The URLs of a host with fewer are sorted, those of a larger one are listed by key. */
const mostSorted = 5000;

export async function urlsOf(
  pool: Pool,
  { hostHash, host, urls }: SiteUrls,
  { filter, ...asked }: AskedUrls,
  now: Date,
): Promise<FoundUrls> {
  if (filter === "rejected") return await rejectedUrls(pool, host, asked);
  if (filter === "held") return await heldUrls(pool, hostHash, asked);
  return await frontierUrls(pool, { hostHash, isSorted: urls <= mostSorted }, { ...asked, filter }, now);
}

const stateSql = urlTurn("u", { inHand: "in_hand.urls", now: "$2" });

const filterSql: Readonly<Record<Exclude<UrlFilter, "held" | "rejected">, string>> = {
  all: "true",
  due: `${stateSql} = 'due'`,
  scheduled: `${stateSql} = 'scheduled'`,
  "in-progress": `${stateSql} = 'in-progress'`,
  failing: "u.state = 'due' and u.failures > 0",
  "blocked-by-robots": `${stateSql} = 'blocked-by-robots'`,
  refused: `${stateSql} = 'refused'`,
  gone: "u.state = 'gone'",
};

async function frontierUrls(
  pool: Pool,
  { hostHash, isSorted }: { readonly hostHash: HostHash; readonly isSorted: boolean },
  { filter, outcome, status, after }: AskedUrls & { readonly filter: keyof typeof filterSql },
  now: Date,
): Promise<FoundUrls> {
  const order = isSorted ? "url" : "url_hash";
  const from = isSorted ? after : /^-?\d{1,19}$/.test(after) ? after : null;
  const looked = `(
    select * from frontier_url
    where host_hash = $1 and ($3::${isSorted ? "text" : "bigint"} is null or ${order} > $3)
    order by ${order}
    limit ${isSorted ? mostSorted : mostLookedAt}
  )`;
  const rows = await toldRows<SiteUrl & { readonly key: string }>(
    pool,
    `select u.url_hash as key, u.url, u.shown as state, case when not p.noindex then nullif(p.title, '') end as title,
       u.last_outcome as outcome, u.last_status as status, u.last_reason as reason, u.failures, u.visits,
       u.last_fetched_at as "fetchedAt", u.next_fetch_at as "nextAt"
     from (
       select u.*, ${stateSql} as shown
       from ${looked} u
       cross join (select ${urlsInHand("$1::bigint")} as urls) in_hand
       where ${filterSql[filter]}
         and ($4::text is null or u.last_outcome = $4) and ($5::int is null or u.last_status = $5)
       order by u.${order}
       limit ${urlsShown + 1}
     ) u
     left join page p on p.host_hash = $1 and p.url_hash = u.url_hash
     order by u.${order}`,
    [hostHash, now, from === "" ? null : from, outcome, status],
  );
  const found = rows.slice(0, urlsShown).map(({ key: _, ...url }) => url);
  const end = rows[urlsShown - 1];
  if (rows.length > urlsShown) return { urls: found, next: end![isSorted ? "url" : "key"], looked: null };
  const last = isSorted ? null : await lastLooked(pool, hostHash, from);
  return { urls: found, next: last, looked: last === null ? null : mostLookedAt };
}

/** Returns null if one section covers the rest. */
async function lastLooked(pool: Pool, hostHash: HostHash, from: string | null): Promise<string | null> {
  const { rows } = await pool.query<{ url_hash: string }>(
    `select url_hash from frontier_url
     where host_hash = $1 and ($2::bigint is null or url_hash > $2)
     order by url_hash
     limit 1 offset ${mostLookedAt - 1}`,
    [hostHash, from === "" ? null : from],
  );
  return rows[0]?.url_hash ?? null;
}

const neverFetched = {
  ...{ title: null, outcome: null, status: null, fetchedAt: null, nextAt: null },
  ...{ failures: 0, visits: 0 },
};

const mostOffset = 10_000;

async function heldUrls(
  pool: Pool,
  hostHash: HostHash,
  { after }: Pick<AskedUrls, "after">,
): Promise<FoundUrls> {
  const offset = /^\d{1,5}$/.test(after) ? Math.min(Number(after), mostOffset) : 0;
  const { rows } = await pool.query<{ url: string }>(
    `select url from held_url where host_hash = $1 order by batch, place limit $2 offset $3`,
    [hostHash, urlsShown + 1, offset],
  );
  const urls = rows.slice(0, urlsShown).map(({ url }) => {
    return { url, state: "held" as const, reason: "its host's budget is used up", ...neverFetched };
  });
  const isMore = rows.length > urlsShown && offset < mostOffset;
  return { urls, next: isMore ? String(offset + urlsShown) : null, looked: null };
}

/** Reads rejected URLs as submitted: by prefix, with either scheme. */
async function rejectedUrls(
  pool: Pool,
  host: string,
  { after }: Pick<AskedUrls, "after">,
): Promise<FoundUrls> {
  const { rows } = await pool.query<{ url: string; reason: string }>(
    `select url, reason
     from rejected_url
     where ${ofHost} and url collate "C" > $2
     order by url collate "C"
     limit ${urlsShown + 1}`,
    [rejectedForms(host), after],
  );
  const shown = rows.slice(0, urlsShown);
  const urls = shown.map(({ url, reason }) => ({ url, state: "rejected" as const, reason, ...neverFetched }));
  return { urls, next: rows.length > urlsShown ? shown.at(-1)!.url : null, looked: null };
}

/** SQL, in which $1 has prefixes, each with the first text after it. */
const ofHost = `(
  (url collate "C" >= ($1::text[])[1] and url collate "C" < ($1::text[])[2])
  or (url collate "C" >= ($1::text[])[3] and url collate "C" < ($1::text[])[4]))`;

function rejectedForms(host: string): string[] {
  const written = host.includes(":") ? `[${host}]` : host;
  return [`http://${written}/`, `http://${written}0`, `https://${written}/`, `https://${written}0`];
}

const mostRejected = 1000;

/** Counts at most `mostRejected`. */
async function countRejected(pool: Pool, host: string): Promise<number> {
  const { rows } = await pool.query<{ urls: number }>(
    `select count(*)::int as urls from (select from rejected_url where ${ofHost} limit ${mostRejected}) counted`,
    [rejectedForms(host)],
  );
  return rows[0]!.urls;
}

// Changes, and what robots.txt and statements forbid.

const mostChanges = 20_000;

/** Counts the host's latest changes since `since`. */
async function countChanges(
  pool: Pool,
  hostHash: HostHash,
  since: Date,
): Promise<{ readonly kind: ChangeKind; readonly changes: number }[]> {
  const { rows } = await pool.query<{ kind: ChangeKind; changes: number }>(
    `select kind, count(*)::int as changes
     from (
       select kind, noted_at from page_change where host_hash = $1 order by change_number desc limit ${mostChanges}
     ) latest
     where noted_at >= $2
     group by kind
     order by changes desc, kind`,
    [hostHash, since],
  );
  return rows;
}

async function blockedUrls(pool: Pool, hostHash: HostHash): Promise<SiteRobots["blocked"]> {
  const { rows } = await pool.query<{ looked: number; rule: string | null; urls: number; example: string }>(
    `select sum(count(*)) over ()::int as looked, rule, count(*)::int as urls, min(url) as example
     from (
       select case when state = 'refused' and last_outcome = 'refused-by-robots' then coalesce(last_reason, '') end as rule,
         url
       from frontier_url
       where host_hash = $1
       limit ${mostCounted + 1}
     ) looked
     group by rule
     order by urls desc
     limit 51`,
    [hostHash],
  );
  const rules = rows.flatMap(({ rule, urls, example }) => (rule === null ? [] : [{ rule, urls, example }]));
  return {
    urls: rules.reduce((sum, { urls }) => sum + urls, 0),
    more: (rows[0]?.looked ?? 0) > mostCounted,
    rules,
  };
}

async function statedBy(pool: Pool, hostHash: HostHash): Promise<Pick<SiteRobots, "stated" | "notSearched">> {
  const { rows } = await pool.query<{
    set: number | null;
    pages: number;
    answers: UseAnswers | null;
    stated: readonly StatedPreference[] | null;
    urls: readonly string[];
  }>(
    `select counted.set, counted.pages, s.answers, s.stated, counted.urls
     from (
       select preference_set as set, count(*)::int as pages, (array_agg(url))[1:10] as urls
       from (select preference_set, url from page where host_hash = $1 limit ${mostPages + 1}) looked
       group by preference_set
     ) counted
     left join preference_set s on s.set_id = counted.set
     order by counted.pages desc`,
    [hostHash],
  );
  const pages = rows.reduce((sum, row) => sum + row.pages, 0);
  const said = rows.filter(({ answers }) => answers !== null);
  const silent = said.filter(({ answers }) => (answers?.search ?? "allowed") !== "allowed");
  return {
    stated: {
      ...{ pages: Math.min(pages, mostPages), more: pages > mostPages },
      counts: countAnswers(said.map((row) => ({ answers: row.answers ?? {}, pages: row.pages }))),
      sets: said.slice(0, 10).map((row) => ({
        ...{ pages: row.pages, answers: answersText(row.answers ?? {}) },
        statements: statementLines(row.stated ?? []),
      })),
    },
    notSearched: {
      pages: silent.reduce((sum, row) => sum + row.pages, 0),
      urls: silent.flatMap(({ urls }) => urls).slice(0, 10),
    },
  };
}

// Speed: the durations of the host's fetches.

const median = (column: string) => `percentile_cont(0.5) within group (order by ${column})`;

const timesSql = `count(*)::int as samples, ${roundedMs(median("connect_ms"))} as "rttMs",
  ${roundedMs(median("first_byte_ms"))} as "firstByteMs", ${roundedMs(median("total_ms"))} as "totalMs",
  coalesce(sum(wire_bytes), 0)::float8 as "wireBytes"`;

/** Covers only answered fetches. */
async function timesOf(
  pool: Pool,
  hostHash: HostHash,
  range: TimeRange,
): Promise<Pick<SiteSpeed, "stepSeconds" | "more" | "all" | "points" | "crawlers">> {
  const stepSeconds = rangeStepSeconds(range);
  const rows = await toldRows<SiteSpeed["all"] & Record<"at" | "name", string | null>>(
    pool,
    `with looked as materialized (
       select ${stepOf("$4")} as at, crawler_id, connect_ms, first_byte_ms, total_ms, wire_bytes
       from (${fetchesIn("fetched_at, crawler_id, connect_ms, first_byte_ms, total_ms, wire_bytes, status")}) latest
       where status is not null
     )
     select at, null as name, ${timesSql} from looked group by grouping sets ((at), ())
     union all
     select null, coalesce(c.name, 'removed'), t.samples, t."rttMs", t."firstByteMs", t."totalMs", t."wireBytes"
     from (select crawler_id, ${timesSql} from looked group by crawler_id) t
     left join crawler c using (crawler_id)`,
    [hostHash, range.since, range.until, stepSeconds],
  );
  const all = rows.find(({ at, name }) => at === null && name === null)!;
  const points = rows.flatMap(({ at, name: _, ...times }) => (at === null ? [] : [{ at, ...times }]));
  const crawlers = rows.flatMap(({ name, at: _, wireBytes: __, ...times }) => {
    return name === null ? [] : [{ name, ...times }];
  });
  const { at: _, name: __, ...figures } = all;
  return {
    ...{ stepSeconds, more: all.samples >= mostFetches, all: figures },
    points: points.sort((a, b) => (a.at < b.at ? -1 : 1)),
    crawlers: crawlers.sort((a, b) => b.samples - a.samples),
  };
}

// Links: hosts that the host links to, hosts that link to it, and hosts with the same texts.

const hostsShown = 50;

/** How many of the host's most linked URLs are used. */
const mostTargets = 20;

/** Maximum number of incoming links that are scanned. */
const mostLinksHere = 5000;

async function linksFrom(pool: Pool, hostHash: HostHash): Promise<Pick<SiteLinks, "to" | "toLooked">> {
  const { rows } = await pool.query<{ linked: HostHash; host: string | null; pages: number; looked: number }>(
    `with looked as materialized (select hosts from out_link where host_hash = $1 limit ${mostPages + 1}),
     counted as (
       select linked, count(*)::int as pages
       from looked, unnest(hosts) as linked
       group by linked
       order by pages desc, linked
       limit ${4 * hostsShown}
     )
     select counted.linked, h.host, counted.pages, (select count(*)::int from looked) as looked
     from (select) one
     left join counted on true
     left join frontier_host h on h.host_hash = counted.linked
     order by counted.pages desc, h.host`,
    [hostHash],
  );
  const looked = rows[0]?.looked ?? 0;
  const named = rows.flatMap(({ host, pages }) => (host === null ? [] : [{ host, pages }]));
  return {
    to: named.slice(0, hostsShown),
    toLooked: { pages: Math.min(looked, mostPages), more: looked > mostPages },
  };
}

/** Starts from the most linked URLs, because links are indexed by target. */
async function linksHere(pool: Pool, hostHash: HostHash): Promise<Pick<SiteLinks, "from" | "fromLooked">> {
  const targets = await pool.query<{ url_hash: UrlHash; back_links: number }>(
    `select url_hash, back_links
     from (select url_hash, back_links from frontier_url where host_hash = $1 limit ${mostCounted}) looked
     where back_links > 0
     order by back_links desc
     limit ${mostTargets}`,
    [hostHash],
  );
  const urls = targets.rows.map((row) => row.url_hash);
  if (urls.length === 0) return { from: [], fromLooked: { urls: 0, pages: 0, more: false } };
  const each = Math.ceil(mostLinksHere / urls.length);
  const { from, looked } = await linkingHosts(pool, { hostHash, urls, each });
  return {
    from,
    fromLooked: { urls: urls.length, pages: looked, more: urls.length === mostTargets || looked >= each },
  };
}

async function linkingHosts(
  pool: Pool,
  asked: { readonly hostHash: HostHash; readonly urls: readonly UrlHash[]; readonly each: number },
): Promise<{ readonly from: SiteLinks["from"]; readonly looked: number }> {
  const { rows } = await pool.query<SiteLinks["from"][number] & { looked: number }>(
    `with looked as materialized (
       select distinct found.host_hash, found.url_hash
       from unnest($2::bigint[]) as target (url_hash)
       cross join lateral (
         select o.host_hash, o.url_hash from out_link o where ${linksBeyond("o", "target.url_hash")} limit ${asked.each}
       ) found
       where found.host_hash <> $1
     )
     select h.host, counted.pages, (select count(*)::int from looked) as looked
     from (
       select host_hash, count(*)::int as pages from looked group by host_hash order by pages desc limit ${hostsShown}
     ) counted
     join frontier_host h using (host_hash)
     order by counted.pages desc, h.host`,
    [asked.hostHash, asked.urls],
  );
  return { from: rows.map(({ host, pages }) => ({ host, pages })), looked: rows[0]?.looked ?? 0 };
}

/** Returns the keys of the host's URLs that are scheduled for later, the earliest first. */
export async function scheduledUrls(
  pool: Pool,
  hostHash: HostHash,
  { now, most }: { readonly now: Date; readonly most: number },
): Promise<UrlHash[]> {
  const { rows } = await pool.query<{ url_hash: UrlHash }>(
    `select url_hash
     from frontier_url
     where host_hash = $1 and state = 'due' and next_fetch_at > $2
     order by next_fetch_at
     limit $3`,
    [hostHash, now, most],
  );
  return rows.map((row) => row.url_hash);
}

/** The source of all parts. */
export type SiteReads = ReturnType<typeof createSiteReads>;

export function createSiteReads(pool: Pool) {
  return {
    ...readsOver(pool, {
      siteRow,
      countUrls,
      drawnByScripts,
      failuresOf,
      urlsOf,
      countRejected,
      countChanges,
    }),
    ...readsOver(pool, { blockedUrls, statedBy, timesOf, linksFrom, linksHere }),
  };
}

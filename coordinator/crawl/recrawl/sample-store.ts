/**
 * Loads pages with their estimated changes, in columns. If there are too many, it takes whole hosts from a range of
 * host hashes, which an index finds. Large hosts are unevenly spread: an empty range is doubled until it has pages,
 * and the share of the sample is counted.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { estimatedRows } from "#db/table-sizes";
import { changeFrequencyWords } from "#protocol/result";
import { columnsOf } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import type { StatedChanges } from "../batch/visit.ts";
import { channelOfUrl } from "../frontier/channel-reads.ts";
import { mostChangesPerDay } from "./change-rate.ts";
import type { RecrawlGroups, RecrawlPlan, SampledPages } from "./make-plan.ts";

interface Row {
  readonly host_hash: HostHash;
  readonly crawl_delay_ms: number;
  readonly changes: number[];
  readonly back_links: number[];
  readonly ranks: (number | null)[];
}

export async function sampledPages(pool: Pool, mostPages: number): Promise<SampledPages> {
  const all = await fetchedPages(pool, lastOf(1));
  let part = Math.min(1, mostPages / Math.max(1, all));
  let rows = await pagesUpTo(pool, lastOf(part));
  while (rows.length === 0 && part < 1) {
    part = Math.min(1, 2 * part);
    rows = await pagesUpTo(pool, lastOf(part));
  }
  const share = part < 1 && rows.length > 0 ? (await fetchedPages(pool, lastOf(part))) / all : 1;
  return { ...columns(rows), share };
}

/** The last hash in this part of all hosts. Hashes are signed 64-bit numbers. */
const lastOf = (part: number): bigint =>
  part === 1 ? 2n ** 63n - 1n : -(2n ** 63n) + BigInt(Math.floor(2 ** 64 * part));

async function fetchedPages(pool: Pool, last: bigint): Promise<number> {
  const { rows } = await pool.query<{ pages: number }>(
    `select coalesce(sum(fetched_urls), 0)::float8 as pages
     from frontier_host
     where host_hash <= $1 and opt_out_id is null`,
    [String(last)],
  );
  return rows[0]!.pages;
}

/** Treats an invalid estimate as none; in SQL, NaN is larger than any number. */
async function pagesUpTo(pool: Pool, last: bigint): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `select u.host_hash, coalesce(max(h.crawl_delay_ms), 0) as crawl_delay_ms,
       array_agg(u.changes_per_day::float8) as changes,
       array_agg(u.back_links) as back_links,
       array_agg(k.page_rank::float8) as ranks
     from frontier_url u
     join frontier_host h on h.host_hash = u.host_hash and h.opt_out_id is null
     left join url_rank k on k.host_hash = u.host_hash and k.url_hash = u.url_hash
     where u.host_hash <= $1
       and u.changes_per_day between 0 and $2
       and u.state = 'due'
     group by u.host_hash`,
    [String(last), mostChangesPerDay],
  );
  return rows;
}

function columns(rows: readonly Row[]): Omit<SampledPages, "share"> {
  const hostOf = rows.flatMap(({ changes }, host) => changes.map(() => host));
  return {
    changesPerDay: Float64Array.from(rows.flatMap(({ changes }) => changes)),
    backLinks: Float64Array.from(rows.flatMap((row) => row.back_links)),
    pageRank: Float64Array.from(rows.flatMap(({ ranks }) => ranks.map((rank) => rank ?? Number.NaN))),
    hostOf: Uint32Array.from(hostOf),
    hosts: rows.map((row) => ({ hostHash: row.host_hash, crawlDelayMs: row.crawl_delay_ms })),
  };
}

/** Uses the database planner's estimate, because counting a large table would take longer than making the plan. */
export async function rankedPages(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ any: boolean }>("select exists (select from url_rank) as any");
  const { any } = rows[0]!;
  const pages = await estimatedRows(pool, "url_rank");
  if (pages > 0 || !any) return any ? pages : 0;
  const { rows: counted } = await pool.query<{ pages: number }>(
    "select count(*)::float8 as pages from url_rank",
  );
  return counted[0]!.pages;
}

// SQL: which row of table recrawl_host applies to a URL: its channel's, once a plan has included it. Until then, and
// for URLs outside channels, the row for the rest of its host (0).

/** `u` is a row with `host_hash` and `url`. For a host without channels, this takes one look-up. */
export const plannedChannel = (u: string) => `case
  when exists (select from channel where host_hash = ${u}.host_hash) then coalesce((
    select own.channel_id
    from recrawl_host own
    where own.host_hash = ${u}.host_hash and own.channel_id = ${channelOfUrl(u)}
  ), 0)
  else 0
end`;

// The records of channels in priority groups since a plan, summed over each group (priority-groups.ts). A channel is
// a host or what is configured of one. Its pages count as parts of it: six fetches in a channel of three pages are
// two updates. The gap and download time of a task are those of its pages.

/**
 * Parameters: $1 the plan's time, $2 now, $3 the intervals in force, $4 the last lease before the plan. `h` has each
 * channel's group (from 0), gap, download time, tasks and updates. Leases are per host, so they are divided among its
 * channels by visits, or by pages if there were none.
 */
const channelRecords = `
  parted as materialized (
    select distinct host_hash from recrawl_host where channel_id <> 0
  ), fetched as (
    select f.host_hash, v.channel_id, count(*) as visits,
      count(*) filter (where f.outcome in ('fetched', 'unchanged')) as updates,
      avg(f.gap_seconds) filter (where f.outcome in ('fetched', 'unchanged')) as gap_seconds,
      avg(f.total_ms) filter (where f.outcome in ('fetched', 'unchanged')) / 1000 as page_seconds
    from page_fetch f
    cross join lateral (
      select case when f.host_hash in (select host_hash from parted) then (
        select ${plannedChannel("u")}
        from frontier_url u
        where u.host_hash = f.host_hash and u.url_hash = f.url_hash
      ) else 0 end as channel_id
    ) v
    where f.fetched_at > $1 and f.fetched_at <= $2
    group by f.host_hash, v.channel_id
  ), handed as (
    select l.host_hash, sum(l.url_count) as urls
    from lease l
    where l.lease_id > $4::bigint and not l.is_check
    group by l.host_hash
  ), h as (
    select p.host_hash, p.channel_id, p.recrawl_group,
      coalesce(f.gap_seconds, p.gap_seconds, ($3::float8[])[p.recrawl_group + 1]) as gap_seconds,
      coalesce(f.page_seconds * p.pages, p.download_seconds) as download_seconds,
      coalesce(t.urls, 0)::float8 / p.pages * coalesce(
        coalesce(f.visits, 0) / sum(f.visits) over whole,
        p.pages::float8 / sum(p.pages) over whole
      )::float8 as submitted,
      coalesce(f.updates, 0)::float8 / p.pages as updates
    from recrawl_host p
    left join fetched f on f.host_hash = p.host_hash and f.channel_id = p.channel_id
    left join handed t on t.host_hash = p.host_hash
    where p.recrawl_group is not null and p.pages > 0
    window whole as (partition by p.host_hash)
  )`;

const parameters = ({ madeAt, groupIntervalSeconds, lastLeaseId }: RecrawlPlan, now: Date) => [
  madeAt,
  now,
  groupIntervalSeconds,
  lastLeaseId,
];

interface GroupRow {
  readonly channels: number;
  readonly hIntervalSeconds: number | null;
  readonly submitted: number;
  readonly updates: number;
  readonly downloadSeconds: number;
  readonly busyThreads: number;
  readonly enough: number;
}

export async function groupRecords(pool: Pool, plan: RecrawlPlan, now: Date): Promise<RecrawlGroups> {
  const { rows } = await pool.query<GroupRow>(
    `with ${channelRecords}
     select count(h.host_hash)::int as channels,
       avg(h.gap_seconds)::float8 as "hIntervalSeconds",
       coalesce(sum(h.submitted), 0)::float8 as submitted,
       coalesce(sum(h.updates), 0)::float8 as updates,
       coalesce(sum(h.download_seconds), 0)::float8 as "downloadSeconds",
       coalesce(sum(h.download_seconds / nullif(h.gap_seconds, 0)), 0)::float8 as "busyThreads",
       (count(*) filter (where h.updates > 5))::int as enough
     from generate_series(0, $5::int - 1) as place
     left join h on h.recrawl_group = place
     group by place
     order by place`,
    [...parameters(plan, now), plan.groups.length],
  );
  return {
    records: rows.map(({ enough: _enough, ...record }) => record),
    withEnoughUpdates: rows.map(({ enough }) => enough),
  };
}

/** Stores the channels' measurements, which the next plan uses where it has no newer ones. */
export async function keepRecords(pool: Pool, plan: RecrawlPlan, now: Date): Promise<void> {
  await pool.query(
    `with ${channelRecords}
     update recrawl_host p
     set gap_seconds = h.gap_seconds, download_seconds = h.download_seconds
     from h
     where p.host_hash = h.host_hash and p.channel_id = h.channel_id and h.updates > 0`,
    parameters(plan, now),
  );
}

// Packs what sitemaps and feeds state about a page's changes (a word and a day) into four bytes stored with the URL.
// A list counts only for its own host.

const firstDayMs = Date.UTC(2000, 0, 1);

const dayMs = 86_400_000;

const lastDay = 32_767;

/** The latest statement replaces the former one; URLs without a new one keep it. Hosts must be locked. */
export async function noteStated(client: PoolClient, urls: readonly AdmittedUrl[]): Promise<void> {
  const stated = urls.flatMap(({ key, changeFrequency, modifiedAt }) => {
    if (changeFrequency === undefined && modifiedAt === undefined) return [];
    const frequency = changeFrequency === undefined ? null : changeFrequencyWords.indexOf(changeFrequency);
    return [{ ...key, frequency, day: modifiedAt === undefined ? null : dayOf(modifiedAt) }];
  });
  if (stated.length === 0) return;
  await client.query(
    `update frontier_url u
     set stated_frequency = coalesce(given.frequency, u.stated_frequency),
         stated_modified_day = coalesce(given.modified_day, u.stated_modified_day)
     from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[])
       as given (host_hash, url_hash, frequency, modified_day)
     where u.host_hash = given.host_hash
       and u.url_hash = given.url_hash
       and (coalesce(given.frequency, u.stated_frequency), coalesce(given.modified_day, u.stated_modified_day))
         is distinct from (u.stated_frequency, u.stated_modified_day)`,
    columnsOf(stated, ["hostHash", "urlHash", "frequency", "day"]),
  );
}

/**
 * Makes pages due that their host's lists say have changed since the last fetch. Hosts must be locked; the caller
 * settles them.
 */
export async function fetchStatedChanges(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
  now: Date,
): Promise<void> {
  const stated = urls.flatMap(({ key, modifiedAt }) =>
    modifiedAt === undefined || modifiedAt > now ? [] : [{ ...key, modifiedAt }],
  );
  if (stated.length === 0) return;
  await client.query(
    `update frontier_url u
     set next_fetch_at = $4
     from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as given (host_hash, url_hash, modified_at)
     where u.host_hash = given.host_hash
       and u.url_hash = given.url_hash
       and u.state = 'due'
       and u.next_fetch_at > $4
       and u.last_outcome in ('fetched', 'unchanged')
       and u.last_fetched_at < given.modified_at`,
    [...columnsOf(stated, ["hostHash", "urlHash", "modifiedAt"]), now],
  );
}

export function statedChanges(frequency: number | null, day: number | null): StatedChanges {
  const word = frequency === null ? undefined : changeFrequencyWords[frequency];
  return {
    ...(word === undefined ? {} : { changeFrequency: word }),
    ...(day === null ? {} : { modifiedAt: new Date(firstDayMs + day * dayMs) }),
  };
}

function dayOf(moment: Date): number {
  return Math.min(lastDay, Math.max(0, Math.floor((moment.getTime() - firstDayMs) / dayMs)));
}

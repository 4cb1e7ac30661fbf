/**
 * Samples of what the crawl has done, for what a change of policies would come to. Each is bounded: the latest rows by
 * an index, or blocks of a table that is large (db/table-sizes.ts), of which the share is told.
 */
import type { Pool } from "pg";
import { asCrawlerId, asSubnetId, type HostHash } from "#core/ids";
import { estimatedRows, sampleOf } from "#db/table-sizes";
import type { ProbeMethod } from "#protocol/messages";
import { hostBudgetSql } from "../../frontier/host-budget-sql.ts";
import { sampledRounds } from "./round-sample-reads.ts";
import type { FrontierSizes, LinkSample, MeasuredByMethod, PolicySamples, ProbeRates } from "./types.ts";

/** Rows that are looked at in one reading, about. */
const mostHosts = 200_000;

const mostUrls = 50_000;

/** On average (test/bench/results/ingest.md). */
const linksOfPage = 100;

/** The latest rounds that probes are counted over. */
const latestRounds = 1000;

export function createPolicySamples(pool: Pool, now: () => Date): PolicySamples {
  return {
    rounds: async (most) => await sampledRounds(pool, most),
    fetches: async (hosts, perHost) => await sampledFetches(pool, hosts, perHost),
    decidedBefore: async (before, most) =>
      await count(
        pool,
        "select 1 from delegation where cause = 'probe-round' and measured and delegated_at < $1 limit $2",
        [before, most],
      ),
    frontier: async (pagesPerHost) => await frontier(pool, pagesPerHost),
    shareAtDepth: async (depth) => {
      const { table } = await sampled(pool, "frontier_url", mostUrls);
      const { rows } = await pool.query<{ urls: number; deep: number }>(
        `select count(*)::int as urls, count(*) filter (where depth >= $1)::int as deep from ${table}`,
        [depth],
      );
      const { urls, deep } = rows[0]!;
      return { urls, share: urls === 0 ? 0 : deep / urls };
    },
    links: async (most) => {
      const { table } = await sampled(pool, "out_link", most / linksOfPage);
      const { rows } = await pool.query<{ links: number; nofollow: number; hosts: number; unknown: number }>(
        `${namedLinks(table)}
         select (select count(*)::int from named) as links,
           (select count(*)::int from named where nofollow) as nofollow,
           count(*)::int as hosts,
           count(*) filter (where not exists (select from frontier_host h where h.host_hash = target.host_hash))::int as unknown
         from (select distinct to_host_hash as host_hash from named) target`,
        [most],
      );
      const { links, nofollow, hosts, unknown } = rows[0]!;
      return { links, nofollow, hosts, unknownHosts: unknown };
    },
    fetchRates: async (most) => await fetchRates(pool, most, now()),
    trustScores: async () => {
      const { rows } = await pool.query<{ name: string; score: number; distrusted: boolean }>(
        `select c.name, t.score, t.distrusted_at is not null as distrusted
         from crawler_trust t
         join crawler c using (crawler_id)
         where c.revoked_at is null
         order by t.score desc, c.name`,
      );
      return rows.map(({ distrusted, ...row }) => ({ ...row, isDistrusted: distrusted }));
    },
    measuredBy: async (most) => await measuredBy(pool, most),
    probeRates: async (mostWaiting) => await probeRates(pool, mostWaiting),
    leases: async (most) => {
      const { rows } = await pool.query<{
        seconds: number;
        urls: number;
        ending: "done" | "expired" | "returned";
      }>(
        `select extract(epoch from closed_at - granted_at)::float8 as seconds, url_count as urls, ending
         from lease
         where closed_at is not null and ending is not null
         order by lease_id desc
         limit $1`,
        [most],
      );
      return rows;
    },
    waitingWithUrls: async (urls, most) =>
      await count(
        pool,
        `select 1
         from frontier_host h
         where ${isWaiting}
         group by h.subnet_id
         having sum(greatest(0, h.url_count - h.fetched_urls)) >= $1
         limit $2`,
        [urls, most],
      ),
  };
}

/** $1: how many at most. */
const namedLinks = (table: string) => `
  with named as (
    select case when t.place is null then o.host_hash else o.hosts[t.place] end as to_host_hash,
      coalesce(t.ordinal = any (o.nofollows), false) as nofollow
    from ${table.replace("out_link", "out_link o")}
    cross join lateral unnest(array_fill(null::smallint, array[o.own_links::int]) || o.places)
      with ordinality as t (place, ordinal)
    limit $1
  )`;

/** What samples over several slices are made of, in one of them. */
export const slicedSamples = (pool: Pool, now: () => Date) => ({
  ...createPolicySamples(pool, now),
  linkTargets: async (most: number) => await linkTargets(pool, most),
  unknownHosts: async (hosts: readonly HostHash[]) => await unknownHosts(pool, hosts),
  waitingSubnets: async (most: number) => await waitingSubnets(pool, most),
});

interface LinkTargets extends Pick<LinkSample, "links" | "nofollow"> {
  /** Each once. */
  readonly targets: readonly HostHash[];
}

async function linkTargets(pool: Pool, most: number): Promise<LinkTargets> {
  const { table } = await sampled(pool, "out_link", most / linksOfPage);
  const { rows } = await pool.query<LinkTargets>(
    `${namedLinks(table)}
     select count(*)::int as links, (count(*) filter (where nofollow))::int as nofollow,
       coalesce(array_agg(distinct to_host_hash), '{}') as targets
     from named`,
    [most],
  );
  return rows[0]!;
}

/** Of hosts of the slice, whether each is in the frontier; in their order. */
async function unknownHosts(pool: Pool, hosts: readonly HostHash[]): Promise<boolean[]> {
  const { rows } = await pool.query<{ unknown: boolean }>(
    `select not exists (select from frontier_host h where h.host_hash = asked.host_hash) as unknown
     from unnest($1::bigint[]) with ordinality as asked (host_hash, place)
     order by asked.place`,
    [hosts],
  );
  return rows.map(({ unknown }) => unknown);
}

export interface WaitingSubnet {
  readonly subnetId: number;
  /** Of its hosts, those that were never fetched. */
  readonly urls: number;
}

async function waitingSubnets(pool: Pool, most: number): Promise<WaitingSubnet[]> {
  const { rows } = await pool.query<WaitingSubnet>(
    `select h.subnet_id as "subnetId", sum(greatest(0, h.url_count - h.fetched_urls))::float8 as urls
     from frontier_host h
     where ${isWaiting}
     group by h.subnet_id
     limit $1`,
    [most],
  );
  return rows;
}

/** A host of a subnet that waits for its first round. */
const isWaiting = `h.state = 'resolved'
  and h.due_at is not null
  and h.subnet_id is not null
  and not exists (select from delegation d where d.subnet_id = h.subnet_id)`;

async function count(pool: Pool, select: string, values: unknown[]): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from (${select}) counted`,
    values,
  );
  return rows[0]!.count;
}

/** The table, or blocks of it that hold about so many rows; `name` is ours. */
async function sampled(
  pool: Pool,
  name: "frontier_host" | "frontier_url" | "out_link",
  mostRows: number,
): Promise<{ readonly table: string; readonly share: number }> {
  const share = Math.min(1, mostRows / Math.max(1, await estimatedRows(pool, name)));
  return share === 1 ? { table: name, share } : { table: `${name} ${sampleOf(share)}`, share };
}

async function frontier(pool: Pool, pagesPerHost: number): Promise<FrontierSizes> {
  const { table, share } = await sampled(pool, "frontier_host", mostHosts);
  const { rows } = await pool.query<{
    hosts: number;
    fetched: number;
    fresh: number;
    held: number;
    releasable: number;
    over: number;
  }>(
    `select count(*)::float8 as hosts, coalesce(sum(fetched_urls), 0)::float8 as fetched,
       coalesce(sum(greatest(0, url_count - fetched_urls)), 0)::float8 as fresh,
       coalesce(sum(held_urls), 0)::float8 as held,
       coalesce(sum(least(held_urls, greatest(0, budget - url_count))), 0)::float8 as releasable,
       count(*) filter (where url_count > budget)::float8 as over
     from (select h.*, ${hostBudgetSql("h", "$1::int")} as budget from ${table.replace("frontier_host", "frontier_host h")}) host
     where state <> 'refused' and opt_out_id is null`,
    [pagesPerHost],
  );
  const { hosts, fetched, fresh, held, releasable, over } = rows[0]!;
  const whole = (found: number) => Math.round(found / share);
  return {
    hosts: whole(hosts),
    fetchedUrls: whole(fetched),
    newUrls: whole(fresh),
    heldUrls: whole(held),
    releasable: whole(releasable),
    hostsOver: whole(over),
    share,
  };
}

/** Of the last day, or of the time in which the latest of them came. */
async function fetchRates(pool: Pool, most: number, now: Date): ReturnType<PolicySamples["fetchRates"]> {
  const dayAgo = new Date(now.getTime() - 86_400_000);
  const { rows } = await pool.query<{
    crawler_id: number;
    fetches: number;
    since: Date;
    pages: number;
    watched: number;
  }>(
    `with latest as (
       select crawler_id, fetched_at from page_fetch where fetched_at > $1 order by fetched_at desc limit $2
     )
     select l.crawler_id, count(*)::int as fetches, min(min(l.fetched_at)) over () as since,
       coalesce(max(t.pages), 0)::float8 as pages, coalesce(max(t.watched_until_page), 0)::float8 as watched
     from latest l
     left join crawler_trust t using (crawler_id)
     group by l.crawler_id
     order by l.crawler_id`,
    [dayAgo, most],
  );
  const fetches = rows.reduce((sum, row) => sum + row.fetches, 0);
  const sinceMs = fetches < most ? dayAgo.getTime() : (rows[0]?.since.getTime() ?? 0);
  const hours = Math.max(1 / 3600, (now.getTime() - sinceMs) / 3_600_000);
  const crawlers = rows.map((row) => ({
    crawlerId: asCrawlerId(row.crawler_id),
    pagesPerDay: (row.fetches / hours) * 24,
    pages: row.pages,
    watchedUntilPage: row.watched,
  }));
  return { fetches, hours, crawlers };
}

async function measuredBy(pool: Pool, most: number): Promise<ReadonlyMap<ProbeMethod, MeasuredByMethod>> {
  const { rows } = await pool.query<MeasuredByMethod & { readonly method: ProbeMethod }>(
    `select method, sum(delegations)::int as delegations, sum(rounds)::int as rounds
     from (
       (select r.method, 1 as delegations, 0 as rounds
        from delegation d
        join probe_round r on r.round_id = d.round_id
        where d.measured
        limit $1)
       union all
       (select method, 0, 1 from probe_round where method is not null order by round_id desc limit $1)
     ) known
     where method is not null
     group by method`,
    [most],
  );
  return new Map(rows.map(({ method, ...counts }) => [method, counts]));
}

async function probeRates(pool: Pool, mostWaiting: number): Promise<ProbeRates> {
  const waiting = await count(
    pool,
    `select 1 from frontier_host h where ${isWaiting} group by h.subnet_id limit $1`,
    [mostWaiting],
  );
  const { rows } = await pool.query<{
    rounds: number;
    probes: number;
    answer_ms: number | null;
    online: number;
  }>(
    `with latest as (select round_id from probe_round where method is not null order by round_id desc limit $1)
     select (select count(*)::int from latest) as rounds,
       count(p.*) filter (where p.how = 'probe')::int as probes,
       avg(p.rtt_ms) filter (where p.outcome = 'measured')::float8 as answer_ms,
       (select count(*)::int from crawler where state = 'online' and revoked_at is null) as online
     from latest l
     left join probe p using (round_id)`,
    [latestRounds],
  );
  const { rounds, probes, answer_ms: answerMs, online } = rows[0]!;
  return {
    waiting,
    isCountedInFull: waiting < mostWaiting,
    rounds,
    probesPerRound: rounds === 0 ? null : probes / rounds,
    answerMs,
    online,
  };
}

// The latest fetches of hosts that were fetched recently, as recalibration compares them.

/** The hosts are those of the latest fetches, so many at most. */
const mostLatest = 20_000;

async function sampledFetches(
  pool: Pool,
  mostHosts: number,
  perHost: number,
): ReturnType<PolicySamples["fetches"]> {
  const { rows } = await pool.query<FetchRow>(
    `with recent as (
       select host_hash from page_fetch order by fetched_at desc limit ${mostLatest}
     ), host as (
       select r.host_hash, h.subnet_id, d.crawler_id
       from (select distinct host_hash from recent limit $1) r
       join frontier_host h using (host_hash)
       join delegation d on d.subnet_id = h.subnet_id
     )
     select host.host_hash::text as host_key, host.subnet_id, f.crawler_id, f.connect_ms, f.first_byte_ms,
       (extract(epoch from f.fetched_at) * 1000)::float8 as at_ms
     from host
     cross join lateral (
       select crawler_id, fetched_at, connect_ms, first_byte_ms
       from page_fetch
       where host_hash = host.host_hash and crawler_id = host.crawler_id
         and coalesce(connect_ms, first_byte_ms) is not null
       order by fetched_at desc
       limit $2
     ) f`,
    [mostHosts, perHost],
  );
  const allHosts = await estimatedRows(pool, "frontier_host");
  const hosts = new Set(rows.map(({ host_key }) => host_key)).size;
  return {
    hosts,
    allHosts: Math.max(hosts, Math.round(allHosts)),
    fetches: rows.map((row) => ({
      hostKey: row.host_key,
      subnetId: asSubnetId(row.subnet_id),
      crawlerId: asCrawlerId(row.crawler_id),
      atMs: row.at_ms,
      connectMs: row.connect_ms,
      firstByteMs: row.first_byte_ms,
    })),
  };
}

interface FetchRow {
  host_key: string;
  subnet_id: number;
  crawler_id: number;
  at_ms: number;
  connect_ms: number | null;
  first_byte_ms: number | null;
}

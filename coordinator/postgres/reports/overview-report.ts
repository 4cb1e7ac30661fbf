/** Totals of the whole crawl for the overview. Their cost grows with the tables: see KeptAnswer. */
import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import type { DelegationCause } from "../../flows/delegation-causes.ts";
import type { CrawlTotals, RecentDelegation } from "../../flows/show-overview.ts";
import { iso, isoOrNull, roundMs } from "./rows.ts";

type TotalsRow = Omit<CrawlTotals, "generationAppliedAt"> & { readonly generationAppliedAt: Date | null };

export async function crawlTotals(pool: Pool): Promise<CrawlTotals> {
  const { rows } = await pool.query<TotalsRow>(totalsSql);
  const row = rows[0]!;
  return {
    ...row,
    meanRttMs: roundMs(row.meanRttMs),
    generationAppliedAt: isoOrNull(row.generationAppliedAt),
  };
}

const totalsSql = `
  select hosts.*, urls.*, pages.*, rounds.*, owned.*, registry.*, waiting.*
  from (
    select count(*)::float8 as hosts,
      count(*) filter (where state = 'resolved')::float8 as "hostsResolved",
      count(*) filter (where state in ('unresolved', 'unresolvable'))::float8 as "hostsUnresolved",
      count(*) filter (where state = 'refused')::float8 as "hostsRefused"
    from frontier_host
  ) hosts,
  (
    select count(*)::float8 as urls,
      count(*) filter (where state = 'due')::float8 as "urlsDue",
      count(*) filter (where state = 'leased')::float8 as "urlsLeased",
      count(*) filter (where state = 'refused')::float8 as "urlsRefused",
      count(*) filter (where state = 'gone')::float8 as "urlsGone",
      count(*) filter (where state in ('due', 'leased') and last_fetched_at is null)::float8 as "urlsPending"
    from frontier_url
  ) urls,
  (
    select count(*)::float8 as pages, coalesce(sum(body_bytes), 0)::float8 as "bodyBytes",
      coalesce(sum(shipped_bytes), 0)::float8 as "shippedBytes"
    from page
  ) pages,
  (
    select (select count(*) from probe_round)::float8 as rounds, (select count(*) from probe where how = 'probe')::float8 as probes
  ) rounds,
  (
    select count(*)::float8 as "subnetsDelegated", avg(rtt_ms)::float8 as "meanRttMs" from delegation
  ) owned,
  (
    select max(generation) as generation, max(applied_at) as "generationAppliedAt"
    from registry_generation
    where state = 'applied'
  ) registry,
  (
    select count(distinct subnet_id)::float8 as "subnetsWaiting"
    from frontier_host h
    where lease_id is null and state = 'resolved' and due_at is not null and subnet_id is not null
      and not exists (select 1 from delegation d where d.subnet_id = h.subnet_id)
  ) waiting`;

/** The latest decisions, newest first. */
export async function recentDelegations(pool: Pool, limit: number): Promise<RecentDelegation[]> {
  const { rows } = await pool.query<{
    first_address: string;
    last_address: string;
    name: string;
    country: string | null;
    crawler: string;
    rtt_ms: number | null;
    delegated_at: Date;
    cause: DelegationCause;
  }>(
    `select host(s.first_address) as first_address, host(s.last_address) as last_address, s.name, s.country,
       c.name as crawler, d.rtt_ms, d.delegated_at, d.cause
     from delegation d
     join subnet s using (subnet_id)
     join crawler c using (crawler_id)
     order by d.delegated_at desc
     limit $1`,
    [limit],
  );
  return rows.map((row) => ({
    range: rangeText(row.first_address, row.last_address),
    name: row.name,
    country: row.country,
    crawler: row.crawler,
    rttMs: roundMs(row.rtt_ms),
    since: iso(row.delegated_at),
    cause: row.cause,
  }));
}

/** Totals of the whole crawl for the overview: exact while tables are small, told from a part of those that are large. */
import type { Pool } from "pg";
import type { DelegationCause } from "#core/delegation-cause";
import { rangeText } from "#db/range-text";
import {
  defaultMostBytes,
  iso,
  isoOrNull,
  roundMs,
  sampleTables,
  type TableSample,
} from "../database/cached-read.ts";
import type { CrawlTotals, RecentDelegation } from "./overview.ts";

type TotalsRow = Omit<CrawlTotals, "generationAppliedAt" | "isEstimate"> & {
  readonly generationAppliedAt: Date | null;
};

/** Of tables of more than `mostBytes`, a part is counted: their figures are about right. */
export async function crawlTotals(pool: Pool, mostBytes = defaultMostBytes): Promise<CrawlTotals> {
  const samples = await sampleTables(pool, sampledTables, mostBytes);
  const { rows } = await pool.query<TotalsRow>(totalsSql(samples));
  const row = rows[0]!;
  return {
    ...row,
    isEstimate: sampledTables.some((name) => samples[name].factor !== 1),
    meanRttMs: roundMs(row.meanRttMs),
    generationAppliedAt: isoOrNull(row.generationAppliedAt),
  };
}

const sampledTables = [
  "frontier_host",
  "frontier_url",
  "page",
  "probe_round",
  "probe",
  "delegation",
] as const;
/** SQL: those without a result yet, exactly; their rows are due meanwhile. */
const urlsUnderLeases =
  "select coalesce(sum(open_urls), 0)::float8 from lease where closed_at is null and not is_check";

type Samples = Readonly<Record<(typeof sampledTables)[number], TableSample>>;

function totalsSql(samples: Samples): string {
  /** SQL: the table, as far as it is read. */
  const part = (name: keyof Samples, alias = "") => `${name} ${alias} ${samples[name].clause}`;
  const count = (name: keyof Samples, what = "") =>
    `round(count(*) ${what} * ${samples[name].factor})::float8`;
  const sum = (name: keyof Samples, column: string) =>
    `round(coalesce(sum(${column}), 0) * ${samples[name].factor})::float8`;
  const states = (name: keyof Samples, condition: string) => count(name, `filter (where ${condition})`);
  return `
  select hosts.*, urls.*, pages.*, rounds.*, owned.*, registry.*, waiting.*
  from (
    select ${count("frontier_host")} as hosts,
      ${states("frontier_host", "state = 'resolved'")} as "hostsResolved",
      ${states("frontier_host", "state in ('unresolved', 'unresolvable')")} as "hostsUnresolved",
      ${states("frontier_host", "state = 'refused'")} as "hostsRefused"
    from ${part("frontier_host")}
  ) hosts,
  (
    select ${count("frontier_url")} as urls,
      greatest(0, ${states("frontier_url", "state = 'due'")} - (${urlsUnderLeases})) as "urlsDue",
      (${urlsUnderLeases}) as "urlsLeased",
      ${states("frontier_url", "state = 'refused'")} as "urlsRefused",
      ${states("frontier_url", "state = 'gone'")} as "urlsGone",
      ${states("frontier_url", "state = 'due' and last_fetched_at is null")} as "urlsPending"
    from ${part("frontier_url")}
  ) urls,
  (
    select ${count("page")} as pages, ${sum("page", "body_bytes")} as "bodyBytes",
      ${sum("page", "shipped_bytes")} as "shippedBytes"
    from ${part("page")}
  ) pages,
  (
    select (select ${count("probe_round")} from ${part("probe_round")}) as rounds,
      (select ${states("probe", "how = 'probe'")} from ${part("probe")}) as probes
  ) rounds,
  (
    select ${count("delegation")} as "subnetsDelegated", avg(rtt_ms)::float8 as "meanRttMs"
    from ${part("delegation")}
  ) owned,
  (
    select max(generation) as generation, max(applied_at) as "generationAppliedAt"
    from registry_generation
    where state = 'applied'
  ) registry,
  (
    -- Of many hosts a part is looked at; a subnet that waits has few, so that as many times more subnets wait.
    select round(count(distinct subnet_id) * ${samples.frontier_host.factor})::float8 as "subnetsWaiting"
    from ${part("frontier_host", "h")}
    where lease_id is null and state = 'resolved' and due_at is not null and subnet_id is not null
      and not exists (select 1 from delegation d where d.subnet_id = h.subnet_id)
  ) waiting`;
}

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

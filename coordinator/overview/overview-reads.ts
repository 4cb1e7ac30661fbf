/** Totals of the whole crawl for the overview: exact while tables are small, told from a part of those that are large. */

import type { Pool } from "pg";
import type { DelegationCause } from "#core/delegation-cause";
import { rangeText } from "#db/range-text";
import { pendingMigrations } from "#db/schema-state";
import { alertMutes, channelStates, heldWords, notedAlerts } from "../alerts/alert-store.ts";
import {
  defaultMostBytes,
  iso,
  isoOrNull,
  KeptAnswer,
  roundMs,
  sampleTables,
  type TableSample,
} from "../database/cached-read.ts";
import { accuracyDays } from "../delegation/accuracy.ts";
import { createAccuracyStore } from "../delegation/accuracy-store.ts";
import { createSubnetStore } from "../subnets/subnet-store.ts";
import { alertFacts } from "./alert-reads.ts";
import { gatedHosts } from "./bot-gate-reads.ts";
import { createChartReads } from "./chart-reads.ts";
import { hostsInHand } from "./in-hand-reads.ts";
import { spanFigures } from "./minute-figure-store.ts";
import type { CrawlTotals, RecentDelegation } from "./overview-api.ts";
import type { CrawlerGauge, OperationReads, ReadinessReads } from "./overview-types.ts";
import { clockLimit } from "./queue-api.ts";
import { leftOutUrls, longestWaiting, queueAges } from "./queue-reads.ts";

type TotalsRow = Omit<CrawlTotals, "generationAppliedAt" | "isEstimate"> & {
  readonly generationAppliedAt: Date | null;
};

/** SQL: the host `h` waits for its subnet to have a crawler. */
const waitsForCrawler = `lease_id is null and state = 'resolved' and due_at is not null and subnet_id is not null
  and not exists (select 1 from delegation d where d.subnet_id = h.subnet_id)`;

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

const asksPayment = "last_outcome is not distinct from 'payment-required'";

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
      ${states("frontier_host", "state = 'refused'")} as "hostsRefused",
      ${states("frontier_host", "challenges is not null")} as "hostsGated"
    from ${part("frontier_host")}
  ) hosts,
  (
    select ${count("frontier_url")} + (select ${sum("frontier_host", "held_urls")} from ${part("frontier_host")}) as urls,
      greatest(0, ${states("frontier_url", "state = 'due'")} - (${urlsUnderLeases})) as "urlsDue",
      (${urlsUnderLeases}) as "urlsLeased",
      ${states("frontier_url", "state = 'refused'")} as "urlsRefused",
      ${states("frontier_url", `state = 'gone' and not ${asksPayment}`)} as "urlsGone",
      ${states("frontier_url", `state = 'gone' and ${asksPayment}`)} as "urlsPaymentRequired",
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
    where ${waitsForCrawler}
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

// The reads of the overview beyond totals, over one pool; those whose cost grows are kept for a while (KeptAnswer).

/** `nowMs` is a clock that never goes back, for how long answers are kept. */
export function createOperationReads(pool: Pool, nowMs: () => number): OperationReads {
  const accuracy = createAccuracyStore(pool);
  const after = (now: Date) => new Date(now.getTime() - accuracyDays * 86_400_000);
  const ages = keptAt(async (now) => {
    const [queue, words] = await Promise.all([queueAges(pool, now), heldWords(pool, "clock-wrong")]);
    if (words === null) return queue;
    const verdict = {
      limitedBy: clockLimit,
      hosts: queue.hosts,
      words: `limited by a clock: ${words}`,
    } as const;
    return { ...queue, verdict };
  }, nowMs);
  const spans = new Map<number, (now: Date) => Promise<Awaited<ReturnType<typeof spanFigures>>>>();
  const counts = keptAt((now) => accuracy.counts(after(now)), nowMs);
  const shared = {
    queueAges: ages,
    gatedHosts: keptAt(async (now) => await gatedHosts(pool, now), nowMs),
    accuracyCounts: counts,
    figures: async (minutes: number, now: Date) => {
      const kept = spans.get(minutes) ?? keptAt((at) => spanFigures(pool, minutes, at), nowMs);
      spans.set(minutes, kept);
      return await kept(now);
    },
  };
  const facts = keptAt((now) => alertFacts(pool, shared, { now, nowMs }), nowMs);
  return {
    ...shared,
    ...createChartReads(pool),
    leftOutUrls: async (shown) => await leftOutUrls(pool, shown),
    longestWaiting: async (query, now) => await longestWaiting(pool, query, now),
    hostsInHand: async (query, now) => await hostsInHand(pool, query, now),
    accuracySamples: async (query, now) => await accuracy.list({ ...query, after: after(now) }),
    // Whoever mutes or acknowledges an alert sees so at once.
    alertFacts: async (now) => {
      const known = await facts(now);
      const [held, noted, channels] = await Promise.all([
        alertMutes(pool, now),
        notedAlerts(pool),
        channelStates(pool),
      ]);
      return { ...known, mutes: held, noted, channels };
    },
    crawlerGauges: async (most) => await crawlerGauges(pool, most),
  };
}

/** One answer, asked as of the moment of the latest caller. */
function keptAt<T>(ask: (now: Date) => Promise<T>, nowMs: () => number): (now: Date) => Promise<T> {
  let at = new Date(0);
  const kept = new KeptAnswer(async () => await ask(at), nowMs);
  return async (now) => {
    at = now;
    return await kept.get();
  };
}

/** Those that are connected first, so that a bound on them cuts off what has long been gone. */
async function crawlerGauges(pool: Pool, most: number): Promise<CrawlerGauge[]> {
  const { rows } = await pool.query<
    Omit<CrawlerGauge, "waitingResults"> & { heartbeat: Record<string, unknown> }
  >(
    `select c.name, c.state <> 'offline' as online, c.heartbeat, coalesce(l.leases, 0)::int as "openLeases"
     from crawler c
     left join (
       select crawler_id, count(*) as leases from lease where closed_at is null group by crawler_id
     ) l using (crawler_id)
     where c.revoked_at is null
     order by c.state = 'offline', c.last_seen_at desc nulls last, c.name
     limit $1`,
    [most],
  );
  const numberOf = (value: unknown) => (typeof value === "number" ? value : 0);
  return rows.map(({ heartbeat, ...row }) => ({
    ...row,
    waitingResults: numberOf(heartbeat.spooledResults),
    fetchedBytes: numberOf(heartbeat.fetchedBytes),
    shippedBytes: numberOf(heartbeat.shippedBytes),
  }));
}

// Whether the database is what this software needs: it has every migration, and says which registry is in force.

export function readinessReads(pool: Pool): ReadinessReads {
  const subnets = createSubnetStore(pool);
  return {
    pendingMigrations: async () => await pendingMigrations(pool),
    currentGeneration: async () => await subnets.currentGeneration(),
  };
}

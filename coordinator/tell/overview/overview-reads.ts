/**
 * The overview's reads: totals, the latest delegations, crawlers' gauges, readiness. Large tables are sampled, and costly
 * answers are cached.
 */

import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import { pendingMigrations } from "#db/schema-state";
import {
  defaultMostBytes,
  KeptAnswer,
  readsOver,
  roundedMs,
  sampleTables,
  type TableSample,
  toldRows,
} from "../../database/cached-read.ts";
import { accuracyDays } from "../../place/delegation/accuracy.ts";
import { createAccuracyStore } from "../../place/delegation/accuracy-store.ts";
import { createSubnetStore } from "../../place/subnets/subnet-store.ts";
import { createFleetLines } from "../fleet/fleet-reads.ts";
import type { AlertFacts } from "./alert-facts.ts";
import { alertFacts } from "./alert-reads.ts";
import { alertMutes, channelStates, heldWords, notedAlerts } from "./alerts/alert-store.ts";
import { createChartReads } from "./chart-reads.ts";
import { spanFigures } from "./figure-store.ts";
import type { CrawlTotals, RecentDelegation } from "./overview-api.ts";
import { clockLimit } from "./queue-api.ts";
import { gatedHosts, hostsInHand, leftOutUrls, longestWaiting, queueAges } from "./queue-reads.ts";

/** SQL: whether the host `h` waits until its subnet has a crawler. */
const waitsForCrawler = `lease_id is null and state = 'resolved' and due_at is not null and subnet_id is not null
  and not exists (select 1 from delegation d where d.subnet_id = h.subnet_id)`;

/** Tables larger than `mostBytes` are sampled, so that their figures are estimates. */
export async function crawlTotals(pool: Pool, mostBytes = defaultMostBytes): Promise<CrawlTotals> {
  const samples = await sampleTables(pool, sampledTables, mostBytes);
  const [totals] = await toldRows<Omit<CrawlTotals, "isEstimate">>(pool, totalsSql(samples));
  return { ...totals!, isEstimate: sampledTables.some((name) => samples[name].factor !== 1) };
}

const sampledTables = [
  "frontier_host",
  "frontier_url",
  "page",
  "probe_round",
  "probe",
  "delegation",
] as const;

/** SQL: the exact number of leased URLs without a result. Their rows still say due. */
const urlsUnderLeases =
  "select coalesce(sum(open_urls), 0)::float8 from lease where closed_at is null and not is_check";

const asksPayment = "last_outcome is not distinct from 'payment-required'";

type Samples = Readonly<Record<(typeof sampledTables)[number], TableSample>>;

function totalsSql(samples: Samples): string {
  /** SQL: the table, or its sample. */
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
    select ${count("delegation")} as "subnetsDelegated", ${roundedMs("avg(rtt_ms)")} as "meanRttMs"
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

/** The latest delegations, newest first. */
export async function recentDelegations(pool: Pool, limit: number): Promise<RecentDelegation[]> {
  const rows = await toldRows<RecentDelegation & { readonly first: string; readonly last: string }>(
    pool,
    `select host(s.first_address) as first, host(s.last_address) as last, s.name, s.country, c.name as crawler,
       ${roundedMs("d.rtt_ms")} as "rttMs", d.delegated_at as since, d.cause
     from delegation d
     join subnet s using (subnet_id)
     join crawler c using (crawler_id)
     order by d.delegated_at desc
     limit $1`,
    [limit],
  );
  return rows.map(({ first, last, ...row }) => ({ ...row, range: rangeText(first, last) }));
}

/** `nowMs` is a monotonic clock for the caches. */
export function createOverviewReads(pool: Pool, nowMs: () => number) {
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
  const totals = new KeptAnswer(() => crawlTotals(pool), nowMs);
  const facts = keptAt((now) => alertFacts(pool, shared, { now, nowMs }), nowMs);
  return {
    ...shared,
    ...createChartReads(pool),
    ...createFleetLines(pool, nowMs),
    ...readsOver(pool, {
      leftOutUrls,
      longestWaiting,
      hostsInHand,
      crawlerGauges,
      recentDelegations,
    }),
    accuracySamples: async (query: { readonly most: number; readonly farOnly: boolean }, now: Date) =>
      await accuracy.list({ ...query, after: after(now) }),
    crawlTotals: async () => await totals.get(),
    // Never cached, so that mutes and acknowledgements show at once.
    alertFacts: async (now: Date): Promise<AlertFacts> => {
      const known = await facts(now);
      const [held, noted, channels] = await Promise.all([
        alertMutes(pool, now),
        notedAlerts(pool),
        channelStates(pool),
      ]);
      return { ...known, mutes: held, noted, channels };
    },
  };
}

export type OverviewReads = ReturnType<typeof createOverviewReads>;

/** Caches one answer, which is read as of the latest caller's time. */
function keptAt<T>(ask: (now: Date) => Promise<T>, nowMs: () => number): (now: Date) => Promise<T> {
  let at = new Date(0);
  const kept = new KeptAnswer(async () => await ask(at), nowMs);
  return async (now) => {
    at = now;
    return await kept.get();
  };
}

/** Gauges of a crawler that is not revoked. */
interface CrawlerGauge {
  readonly name: string;
  readonly online: boolean;
  readonly openLeases: number;
  /** Unacknowledged results on its disk. */
  readonly waitingResults: number;
  /** Fetched since its own start, as it reports. */
  readonly fetchedBytes: number;
  readonly shippedBytes: number;
}

/** Returns connected crawlers first, so that the limit cuts off those that left long ago. */
async function crawlerGauges(pool: Pool, most: number): Promise<CrawlerGauge[]> {
  const said = (name: string) =>
    `coalesce(case jsonb_typeof(c.heartbeat -> '${name}') when 'number' then (c.heartbeat ->> '${name}')::float8 end, 0)`;
  const { rows } = await pool.query<CrawlerGauge>(
    `select c.name, c.state <> 'offline' as online, coalesce(l.leases, 0)::int as "openLeases",
       ${said("spooledResults")} as "waitingResults", ${said("fetchedBytes")} as "fetchedBytes",
       ${said("shippedBytes")} as "shippedBytes"
     from crawler c
     left join (
       select crawler_id, count(*) as leases from lease where closed_at is null group by crawler_id
     ) l using (crawler_id)
     where c.revoked_at is null
     order by c.state = 'offline', c.last_seen_at desc nulls last, c.name
     limit $1`,
    [most],
  );
  return rows;
}

export type ReadinessReads = ReturnType<typeof readinessReads>;

export function readinessReads(pool: Pool) {
  return {
    /** Migrations of this software that the database lacks. */
    pendingMigrations: async () => await pendingMigrations(pool),
    /** Null if no registry was imported. */
    currentGeneration: async () => await createSubnetStore(pool).currentGeneration(),
  };
}

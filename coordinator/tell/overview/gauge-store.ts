/** Table gauge_sample, and how crawlers stand in crawler_figures: what charts need of the past, written by the clock. */
import type { Pool } from "pg";
import type { FleetLine } from "../fleet/fleet-api.ts";
import { gaugeDays } from "./minute-figures.ts";
import { type QueueAges, waitReasons } from "./queue-api.ts";

/** How things stood at a moment. */
export interface Standing {
  readonly queue: QueueAges;
  readonly urlsInProgress: number;
  readonly openLeases: number;
  /** Registered ones. */
  readonly crawlers: readonly CrawlerStanding[];
}

export type CrawlerStanding = Pick<FleetLine, "crawlerId" | "state" | "subnets" | "meanRttMs">;

/** Seconds between two samples of the fleet. */
export const gaugeSeconds = 300;

/** Then one an hour is left. */
const fineDays = 14;

const dayMs = 86_400_000;

export const queueGauge = (reason: string) => `queue.${reason}`;

/** The names by which chart-reads finds them. */
export function gaugesOf({ queue, urlsInProgress, openLeases, crawlers }: Standing) {
  const hosts = new Map<string, number>(queue.reasons.map((one) => [one.reason, one.hosts]));
  const count = (state: CrawlerStanding["state"]) => crawlers.filter((one) => one.state === state).length;
  return {
    ...Object.fromEntries(waitReasons.map((reason) => [queueGauge(reason), hosts.get(reason) ?? 0])),
    queueMedianSeconds: queue.medianSeconds ?? 0,
    queueP95Seconds: queue.p95Seconds ?? 0,
    urlsInProgress,
    leases: openLeases,
    crawlersOnline: count("online"),
    crawlersDraining: count("draining"),
    crawlersOffline: count("offline"),
  };
}

/** True: this was the first sample of its five minutes; the others of coordinators that run beside are dropped. */
export async function addGauges(
  pool: Pool,
  now: Date,
  gauges: Readonly<Record<string, number>>,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into gauge_sample (at, gauges)
     values (date_bin('5 minutes', $1::timestamptz, '2000-01-01T00:00:00Z'), $2)
     on conflict do nothing`,
    [now, JSON.stringify(gauges)],
  );
  return rowCount === 1;
}

/** Of the hour, at its first quarter. A crawler that was removed meanwhile leaves nothing. */
export async function addStandings(
  pool: Pool,
  now: Date,
  crawlers: readonly Omit<CrawlerStanding, "state">[],
): Promise<void> {
  if (crawlers.length === 0) return;
  await pool.query(
    `insert into crawler_figures as q (quarter, crawler_id, subnets, rtt_ms)
     select date_trunc('hour', $1::timestamptz, 'UTC'), crawler_id, subnets, rtt_ms
     from unnest($2::int[], $3::int[], $4::real[]) as given (crawler_id, subnets, rtt_ms)
     where exists (select from crawler c where c.crawler_id = given.crawler_id)
     order by crawler_id
     on conflict (quarter, crawler_id) do update
     set subnets = excluded.subnets, rtt_ms = excluded.rtt_ms
     where q.subnets is null`,
    [
      now,
      crawlers.map(({ crawlerId }) => crawlerId),
      crawlers.map(({ subnets }) => subnets),
      crawlers.map(({ meanRttMs }) => meanRttMs),
    ],
  );
}

export async function forgetGauges(pool: Pool, now: Date): Promise<number> {
  const before = (days: number) => new Date(now.getTime() - days * dayMs);
  const { rowCount } = await pool.query(
    `delete from gauge_sample
     where at < $1 or (at < $2 and extract(minute from at at time zone 'UTC') <> 0)`,
    [before(gaugeDays), before(fineDays)],
  );
  return rowCount ?? 0;
}

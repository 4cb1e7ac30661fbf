/** How things stood at a moment, as charts show it: names and figures out of what the overview reads. */
import { leastSamples } from "#core/format";
import type { AccuracyEstimate } from "../delegation/accuracy.ts";
import type { Alert } from "./alert-rules.ts";
import type { CrawlTotals, FleetLine } from "./overview.ts";
import { type QueueAges, waitReasons } from "./overview-types.ts";

export interface Gauged {
  readonly queue: QueueAges;
  readonly totals: CrawlTotals;
  readonly fleet: readonly FleetLine[];
  readonly alerts: readonly Alert[];
  readonly accuracy: AccuracyEstimate;
  readonly openLeases: number;
}

/** How long a sample is kept: a year, and what it takes to see the same weeks of the year before. */
export const gaugeDays = 400;

export type Gauges = Readonly<Record<string, number>>;

/** What is not known has no name among them. */
export function gaugesOf({ queue, totals, fleet, alerts, accuracy, openLeases }: Gauged): Gauges {
  const registered = fleet.filter(({ revoked }) => !revoked);
  const crawlers = (state: string) => registered.filter((crawler) => crawler.state === state).length;
  const of = (severity: Alert["severity"]) => alerts.filter((alert) => alert.severity === severity).length;
  const optional = {
    queueMedianSeconds: queue.medianSeconds ?? 0,
    queueP95Seconds: queue.p95Seconds ?? 0,
    ...(totals.meanRttMs === null ? {} : { meanRttMs: totals.meanRttMs }),
    ...(accuracy.share === null || accuracy.samples < leastSamples ? {} : { accuracyShare: accuracy.share }),
  };
  return {
    ...Object.fromEntries(waitReasons.map((reason) => [queueGauge(reason), hostsOf(queue, reason)])),
    ...optional,
    leases: openLeases,
    urlsDue: totals.urlsDue,
    urlsInProgress: totals.urlsLeased,
    urlsPending: totals.urlsPending,
    pages: totals.pages,
    subnetsDelegated: totals.subnetsDelegated,
    subnetsWaiting: totals.subnetsWaiting,
    crawlersOnline: crawlers("online"),
    crawlersDraining: crawlers("draining"),
    crawlersOffline: crawlers("offline"),
    alertsCritical: of("critical"),
    alertsWarning: of("warning"),
  };
}

export const queueGauge = (reason: string) => `queue.${reason}`;

const hostsOf = (queue: QueueAges, reason: string) =>
  queue.reasons.find((one) => one.reason === reason)?.hosts ?? 0;

/** Of a crawler, once an hour. */
export interface CrawlerStanding {
  readonly crawlerId: number;
  readonly subnets: number;
  readonly meanRttMs: number | null;
}

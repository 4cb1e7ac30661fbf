/** Sets the gauges of what is from what the pages read: one truth for pages, command and Prometheus. */
import { accuracyEstimate } from "../delegation/accuracy.ts";
import { type AlertName, alertSeverities } from "./alerts.ts";
import { alertsOf } from "./alerts-of.ts";
import { maxCrawlersMeasured, type OperationMetrics } from "./operation-metrics.ts";
import { type CrawlerGauge, type OperationReads, type QueueAges, waitReasons } from "./operation-types.ts";
import type { OverviewReads } from "./overview.ts";

export interface ObservePorts {
  readonly reads: OverviewReads;
  readonly metrics: OperationMetrics;
  readonly now: () => Date;
}

export async function observeOperation({ reads, metrics, now }: ObservePorts): Promise<void> {
  const at = now();
  const [facts, queue, counts, totals, fleet, gauges, leftOut] = await Promise.all([
    reads.alertFacts(at),
    reads.queueAges(at),
    reads.accuracyCounts(at),
    reads.crawlTotals(),
    reads.fleet(),
    reads.crawlerGauges(maxCrawlersMeasured),
    reads.leftOutUrls(1),
  ]);
  metrics.databaseSeconds.observe(facts.databaseMs / 1000);
  setSeconds(metrics.figuresTimestamp, facts.figuresAtMs);
  setSeconds(metrics.registryTimestamp, facts.registryAppliedMs);
  observeAlerts(metrics, alertsOf(facts));
  observeQueue(metrics, queue);
  observeAccuracy(metrics, accuracyEstimate(counts));
  for (const [state, count] of urlStates(totals)) metrics.urls.set({ state }, count);
  metrics.leftOutUrls.set(leftOut.urls);
  metrics.boundHosts.set(leftOut.hosts);
  metrics.indexPages.set(totals.pages);
  metrics.subnets.set({ state: "delegated" }, totals.subnetsDelegated);
  metrics.subnets.set({ state: "waiting" }, totals.subnetsWaiting);
  const registered = fleet.filter(({ revoked }) => !revoked);
  for (const state of ["online", "draining", "offline"] as const) {
    metrics.crawlers.set({ state }, registered.filter((crawler) => crawler.state === state).length);
  }
  observeCrawlers(metrics, gauges, new Map(fleet.map(({ name, subnets }) => [name, subnets])));
}

function setSeconds(gauge: OperationMetrics["figuresTimestamp"], ms: number | null): void {
  if (ms !== null) gauge.set(ms / 1000);
}

function observeAlerts({ alerts: gauge }: OperationMetrics, alerts: ReturnType<typeof alertsOf>): void {
  const counts = new Map(alerts.map(({ name, count }) => [name, count]));
  for (const [name, severity] of Object.entries(alertSeverities)) {
    gauge.set({ name, severity }, counts.get(name as AlertName) ?? 0);
  }
}

/** An empty queue has the age 0. */
function observeQueue({ queueHosts, queueAgeSeconds }: OperationMetrics, queue: QueueAges): void {
  for (const reason of waitReasons) {
    queueHosts.set({ reason }, queue.reasons.find((one) => one.reason === reason)?.hosts ?? 0);
  }
  queueAgeSeconds.set({ stat: "median" }, queue.medianSeconds ?? 0);
  queueAgeSeconds.set({ stat: "p95" }, queue.p95Seconds ?? 0);
  queueAgeSeconds.set({ stat: "oldest" }, queue.oldestSeconds ?? 0);
}

function observeAccuracy(metrics: OperationMetrics, estimate: ReturnType<typeof accuracyEstimate>): void {
  const { samples, share, low, high } = estimate;
  metrics.accuracySamples.set(samples);
  if (share === null) metrics.accuracyShare.remove();
  else metrics.accuracyShare.set(share);
  metrics.accuracyInterval.set({ end: "low" }, low);
  metrics.accuracyInterval.set({ end: "high" }, high);
}

function urlStates(totals: Awaited<ReturnType<OverviewReads["crawlTotals"]>>) {
  return [
    ["due", totals.urlsDue],
    ["leased", totals.urlsLeased],
    ["refused", totals.urlsRefused],
    ["gone", totals.urlsGone],
  ] as const;
}

/** Anew each time, so that a crawler that is no longer there leaves no series behind. */
function observeCrawlers(
  metrics: OperationMetrics,
  gauges: Awaited<ReturnType<OperationReads["crawlerGauges"]>>,
  subnets: ReadonlyMap<string, number>,
): void {
  const of: readonly (readonly [OperationMetrics["crawlerUp"], (one: CrawlerGauge) => number])[] = [
    [metrics.crawlerUp, ({ online }) => (online ? 1 : 0)],
    [metrics.crawlerSubnets, ({ name }) => subnets.get(name) ?? 0],
    [metrics.crawlerLeases, ({ openLeases }) => openLeases],
    [metrics.crawlerWaitingResults, ({ waitingResults }) => waitingResults],
    [metrics.crawlerFetchedBytes, ({ fetchedBytes }) => fetchedBytes],
    [metrics.crawlerShippedBytes, ({ shippedBytes }) => shippedBytes],
  ];
  for (const [gauge, value] of of) {
    gauge.reset();
    for (const one of gauges) gauge.set({ crawler: one.name }, value(one));
  }
  metrics.waitingResults.set(gauges.reduce((sum, { waitingResults }) => sum + waitingResults, 0));
}

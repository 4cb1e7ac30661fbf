/**
 * Gauges of what is, set by the clock (coordinator/overview/start): what waits, what needs attention, how near the
 * delegations are, each crawler. Base units and names as Prometheus' conventions have them; what has few values is a
 * label, and crawlers are bounded in number.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Crawlers with gauges of their own; those that are connected come first. */
export const maxCrawlersMeasured = 500;

export interface OperationMetrics {
  /** 1: this software; its version is a label. */
  readonly buildInfo: Gauge<"version">;
  readonly failures: Counter<"blame">;
  readonly queueHosts: Gauge<"reason">;
  /** `stat`: median, p95, oldest. */
  readonly queueAgeSeconds: Gauge<"stat">;
  /** One series a rule, 0 where it finds nothing; otherwise how many crawlers or releases it is about. */
  readonly alerts: Gauge<"name" | "severity">;
  readonly accuracyShare: Gauge;
  /** `end`: low, high. */
  readonly accuracyInterval: Gauge<"end">;
  readonly accuracySamples: Gauge;
  readonly databaseSeconds: Histogram;
  /** When the last whole minute was written, seconds since 1970. */
  readonly figuresTimestamp: Gauge;
  readonly registryTimestamp: Gauge;
  readonly urls: Gauge<"state">;
  readonly leftOutUrls: Gauge;
  readonly boundHosts: Gauge;
  readonly indexPages: Gauge;
  readonly subnets: Gauge<"state">;
  readonly crawlers: Gauge<"state">;
  readonly waitingResults: Gauge;
  readonly crawlerUp: Gauge<"crawler">;
  readonly crawlerSubnets: Gauge<"crawler">;
  readonly crawlerLeases: Gauge<"crawler">;
  readonly crawlerWaitingResults: Gauge<"crawler">;
  readonly crawlerFetchedBytes: Gauge<"crawler">;
  readonly crawlerShippedBytes: Gauge<"crawler">;
}

export function createOperationMetrics(registry: Registry): OperationMetrics {
  const registers = [registry];
  const gauge = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge<Label>({ name: `nearcrawl_${name}`, help, labelNames, registers });
  return {
    buildInfo: gauge("build_info", "1, with the version of the coordinator's software", ["version"]),
    failures: new Counter({
      name: "nearcrawl_fetch_failures_total",
      help: "Fetches that failed, by who is to blame: target, network, crawler, us",
      labelNames: ["blame"],
      registers,
    }),
    queueHosts: gauge("queue_hosts", "Hosts that are due and not being fetched, by what they wait for", [
      "reason",
    ]),
    queueAgeSeconds: gauge(
      "queue_age_seconds",
      "How long hosts that are due have waited: median, p95, oldest",
      ["stat"],
    ),
    alerts: gauge("alerts", "Alerts of nearcrawl alerts, by rule; the value is how many it is about", [
      "name",
      "severity",
    ]),
    accuracyShare: gauge(
      "accuracy_ratio",
      "Share of sampled subnets whose crawler is within 5 ms of the nearest, over 30 days (0 to 1)",
    ),
    accuracyInterval: gauge("accuracy_interval_ratio", "Wilson interval (95 %) of nearcrawl_accuracy_ratio", [
      "end",
    ]),
    accuracySamples: gauge("accuracy_samples", "Samples behind nearcrawl_accuracy_ratio"),
    databaseSeconds: new Histogram({
      name: "nearcrawl_database_round_trip_seconds",
      help: "Seconds that the database takes for the simplest of questions",
      buckets: [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5],
      registers,
    }),
    figuresTimestamp: gauge(
      "figures_written_timestamp_seconds",
      "When the last minute's figures were written, Unix time",
    ),
    registryTimestamp: gauge(
      "registry_applied_timestamp_seconds",
      "When the registry in force was applied, Unix time",
    ),
    urls: gauge("frontier_urls", "URLs in the frontier, by state; about, where there are many", ["state"]),
    leftOutUrls: gauge(
      "frontier_left_out_urls",
      "Times that a URL was left out at its host's bound; of the 10,000 hosts with most, where there are more",
    ),
    boundHosts: gauge("frontier_bound_hosts", "Hosts at their bounds that had URLs left out, up to 10,000"),
    indexPages: gauge("index_pages", "Pages in the index; about, where there are many"),
    subnets: gauge("subnets", "Subnets with a crawler, and subnets that wait for a probe round", ["state"]),
    crawlers: gauge("crawlers", "Registered crawlers, by state", ["state"]),
    waitingResults: gauge("spooled_results", "Results on crawlers' disks that are not acknowledged yet"),
    crawlerUp: gauge("crawler_up", "1 while the crawler is connected", ["crawler"]),
    crawlerSubnets: gauge("crawler_subnets", "Subnets that the crawler has", ["crawler"]),
    crawlerLeases: gauge("crawler_open_leases", "Hosts that the crawler has leased", ["crawler"]),
    crawlerWaitingResults: gauge(
      "crawler_spooled_results",
      "Results on the crawler's disk, not acknowledged yet",
      ["crawler"],
    ),
    crawlerFetchedBytes: gauge(
      "crawler_fetched_bytes",
      "Bytes fetched since the crawler's start, as it says",
      ["crawler"],
    ),
    crawlerShippedBytes: gauge(
      "crawler_shipped_bytes",
      "Bytes shipped since the crawler's start, as it says",
      ["crawler"],
    ),
  };
}

/**
 * What Prometheus may ask for at /metrics. Counters for whatever the runbook asks about; the flows' callers
 * feed them, so that flows stay free of them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { CoordinatorMetrics } from "../federation/coordinator-metrics.ts";

export interface Metrics {
  readonly registry: Registry;
  /** Results by how the fetch ended: `fetched`, `http-error` … */
  readonly fetches: Counter<"outcome">;
  readonly pages: Counter;
  /** Results of pages whose site states something of a use, by what it comes to. */
  readonly statedPages: Counter<"use" | "answer">;
  /** Answers 402. */
  readonly paymentsAsked: Counter;
  readonly challenges: Counter<"provider">;
  readonly fetchedBytes: Counter;
  readonly shippedBytes: Counter;
  /** Results by what became of them here: `stored`, `duplicate`, `without-lease`. */
  readonly results: Counter<"taken">;
  readonly urlsAdmitted: Counter;
  readonly linksApplied: Counter;
  readonly probes: Counter<"method" | "outcome">;
  readonly rounds: Counter<"policy" | "cause" | "decided">;
  readonly roundsUnderWay: Gauge;
  readonly probesUnderWay: Gauge;
  /** Leases by event: `granted`, `returned`, `expired`. */
  readonly leases: Counter<"event">;
  /** Delegations moved without a round, by cause. */
  readonly moves: Counter<"cause">;
  readonly sessions: Gauge;
  readonly sessionsRefused: Counter<"code">;
  /** What crawlers and strangers did that they should not have done, by kind. */
  readonly incidents: Counter<"kind">;
  /** Crawlers by release and what became of it there: `offered`, `running`, `returned` … */
  readonly releases: Gauge<"version" | "state">;
  readonly requestSeconds: Histogram<"route" | "status">;
  /** What is, beside what happened. */
  readonly operation: OperationMetrics;
  /** Of the exchange with parent and children. */
  readonly coordinators: CoordinatorMetrics;
}

/** `processMetrics` adds memory, event loop and garbage collection of this process. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics) collectDefaultMetrics({ register: registry, prefix: "nearcrawl_" });
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter<Label>({ name: `nearcrawl_${name}_total`, help, labelNames, registers });
  const gauge = (name: string, help: string) => new Gauge({ name: `nearcrawl_${name}`, help, registers });
  return {
    registry,
    fetches: counter("fetches", "Results stored, by how the fetch ended", ["outcome"]),
    pages: counter("pages", "Pages stored"),
    statedPages: counter(
      "stated_pages",
      "Pages read, or as they were, whose site states what they may be used for, by use and answer",
      ["use", "answer"],
    ),
    paymentsAsked: counter("payments_asked", "Answers with status 402: the site asks to be paid"),
    challenges: counter(
      "challenges",
      "Answers of bot gates in place of a page or a robots.txt, by provider",
      ["provider"],
    ),
    fetchedBytes: counter("fetched_bytes", "Decoded body bytes of the pages that crawlers fetched"),
    shippedBytes: counter("shipped_bytes", "Compressed bytes that results took on the wire"),
    results: counter("results", "Results that arrived, by what became of them", ["taken"]),
    urlsAdmitted: counter("urls_admitted", "URLs new to the frontier"),
    linksApplied: counter(
      "links_applied",
      "URLs of other hosts that results named or linked to, taken from the outbox",
    ),
    probes: counter("probes", "Latency probes, by method and outcome", ["method", "outcome"]),
    rounds: counter("rounds", "Probe rounds, by policy, cause and whether they decided", [
      "policy",
      "cause",
      "decided",
    ]),
    roundsUnderWay: gauge("rounds_under_way", "Probe rounds not decided yet"),
    probesUnderWay: gauge("probes_under_way", "Probes not answered yet"),
    leases: counter("leases", "Leases granted, returned, expired", ["event"]),
    moves: counter("moves", "Subnets moved between crawlers without a round", ["cause"]),
    sessions: gauge("sessions", "Crawlers connected now"),
    sessionsRefused: counter("sessions_refused", "Sessions refused or ended by the coordinator", ["code"]),
    incidents: counter("incidents", "Incidents (nearcrawl fleet incidents), by kind", ["kind"]),
    releases: new Gauge({
      name: "nearcrawl_release_crawlers",
      help: "Crawlers by release and what became of it there",
      labelNames: ["version", "state"],
      registers,
    }),
    requestSeconds: new Histogram({
      name: "nearcrawl_http_request_seconds",
      help: "Seconds that pages and API answers took, by route and status",
      labelNames: ["route", "status"],
      buckets: [0.005, 0.02, 0.05, 0.15, 0.5, 2, 10],
      registers,
    }),
    operation: createOperationMetrics(registry),
    coordinators: new CoordinatorMetrics(registry),
  };
}

// Gauges of what is, set by the clock (coordinator/overview/start): what waits, what needs attention, how near the
// delegations are, each crawler. Base units and names as Prometheus' conventions have them; what has few values is a
// label, and crawlers are bounded in number.

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
  readonly linkOutboxLinks: Gauge;
  readonly linkOutboxAgeSeconds: Gauge;
  readonly alerts: Gauge<"name" | "severity">;
  /** Attempts to tell people of alerts: delivered, failed (and tried again), given-up. */
  readonly alertDeliveries: Counter<"channel" | "outcome">;
  readonly alertChannelFailures: Gauge<"channel">;
  readonly alertMessagesWaiting: Gauge<"channel">;
  /** Of the coordinator itself, without the database. */
  readonly databaseUp: Gauge;
  readonly databaseWritable: Gauge;
  readonly eventLoopDelay: Gauge<"stat">;
  readonly leads: Gauge;
  /** Of the index in memory; 0 pages: the database answers searches. */
  readonly searchIndexPages: Gauge;
  readonly searchIndexBytes: Gauge;
  readonly searchIndexBehindSeconds: Gauge;
  /** Unix time; a job that has not ended yet since the start has none. */
  readonly jobSuccess: Gauge<"job">;
  readonly jobFailures: Gauge<"job">;
  readonly diskFreeBytes: Gauge;
  readonly databaseBytes: Gauge;
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

function createOperationMetrics(registry: Registry): OperationMetrics {
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
    linkOutboxLinks: gauge(
      "link_outbox_links",
      "URLs of other hosts that results named or linked to, and that wait to be applied",
    ),
    linkOutboxAgeSeconds: gauge(
      "link_outbox_age_seconds",
      "How long the oldest of them has waited; 0: none waits",
    ),
    alerts: gauge("alerts", "Alerts of nearcrawl alerts, by rule; the value is how many it is about", [
      "name",
      "severity",
    ]),
    alertDeliveries: new Counter({
      name: "nearcrawl_alert_deliveries_total",
      help: "Attempts to tell people of alerts, by channel and outcome: delivered, failed, given-up",
      labelNames: ["channel", "outcome"],
      registers,
    }),
    alertChannelFailures: gauge(
      "alert_channel_failures",
      "How often a channel of alerts has failed in a row; 0: its last attempt succeeded",
      ["channel"],
    ),
    alertMessagesWaiting: gauge("alert_messages_waiting", "Messages about alerts that wait for an attempt", [
      "channel",
    ]),
    databaseUp: gauge("database_up", "1 while the database answers the coordinator, looked at every 2 s"),
    databaseWritable: gauge(
      "database_writable",
      "1 while the database can be written as far as is known, looked at every 30 s and after failures",
    ),
    eventLoopDelay: gauge(
      "event_loop_delay_seconds",
      "How late the process is, over the last minute or two: p99, longest",
      ["stat"],
    ),
    searchIndexPages: gauge(
      "search_index_pages",
      "Pages of the index in memory; 0: the database answers searches",
    ),
    searchIndexBytes: gauge("search_index_bytes", "What the index in memory takes"),
    searchIndexBehindSeconds: gauge(
      "search_index_behind_seconds",
      "Since the index in memory was last level with the database",
    ),
    leads: gauge("coordinator_leads", "1: this coordinator does what one does for all of a database"),
    jobSuccess: gauge(
      "job_last_success_timestamp_seconds",
      "When the job's turn last ended without an error, Unix time",
      ["job"],
    ),
    jobFailures: gauge("job_failures", "How often the job has failed in a row; 0: its last turn ended well", [
      "job",
    ]),
    diskFreeBytes: gauge(
      "database_free_bytes",
      "Free where the embedded database lies, or left of databaseGigabytes",
    ),
    databaseBytes: gauge("database_bytes", "What the database takes"),
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

/**
 * What Prometheus may ask for at /metrics: what the runbook asks about. Base units and names as Prometheus' conventions have
 * them; what has few values is a label, and crawlers are bounded in number. The flows' callers feed the counters, so that flows
 * stay free of them; the gauges are set by the clock (coordinator/tell/overview/start).
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { CoordinatorMetrics } from "../../crawl/federation/coordinator-metrics.ts";

/** `statedPages` is nearcrawl_stated_pages_total; after the help, the labels. */
const counters = {
  fetches: ["Results stored, by how the fetch ended", "outcome"],
  fetchFailures: ["Fetches that failed, by who is to blame: target, network, crawler, us", "blame"],
  pages: ["Pages stored"],
  statedPages: [
    "Pages read, or as they were, whose site states what they may be used for, by use and answer",
    "use",
    "answer",
  ],
  paymentsAsked: ["Answers with status 402: the site asks to be paid"],
  challenges: ["Answers of bot gates in place of a page or a robots.txt, by provider", "provider"],
  fetchedBytes: ["Decoded body bytes of the pages that crawlers fetched"],
  shippedBytes: ["Compressed bytes that results took on the wire"],
  results: ["Results that arrived, by what became of them", "taken"],
  urlsAdmitted: ["URLs new to the frontier"],
  linksApplied: ["URLs of other hosts that results named or linked to, taken from the outbox"],
  probes: ["Latency probes, by method and outcome", "method", "outcome"],
  rounds: ["Probe rounds, by policy, cause and whether they decided", "policy", "cause", "decided"],
  leases: ["Leases granted, returned, expired", "event"],
  moves: ["Subnets moved between crawlers without a round", "cause"],
  sessionsRefused: ["Sessions refused or ended by the coordinator", "code"],
  incidents: ["Incidents (nearcrawl fleet incidents), by kind", "kind"],
  alertDeliveries: [
    "Attempts to tell people of alerts, by channel and outcome: delivered, failed, given-up",
    "channel",
    "outcome",
  ],
} as const;

const gauges = {
  buildInfo: ["1, with the version of the coordinator's software", "version"],
  roundsUnderWay: ["Probe rounds not decided yet"],
  probesUnderWay: ["Probes not answered yet"],
  sessions: ["Crawlers connected now"],
  releaseCrawlers: ["Crawlers by release and what became of it there", "version", "state"],
  queueHosts: ["Hosts that are due and not being fetched, by what they wait for", "reason"],
  queueAgeSeconds: ["How long hosts that are due have waited: median, p95, oldest", "stat"],
  linkOutboxLinks: ["URLs of other hosts that results named or linked to, and that wait to be applied"],
  linkOutboxAgeSeconds: ["How long the oldest of them has waited; 0: none waits"],
  alerts: ["Alerts of nearcrawl alerts, by rule; the value is how many it is about", "name", "severity"],
  alertChannelFailures: [
    "How often a channel of alerts has failed in a row; 0: its last attempt succeeded",
    "channel",
  ],
  alertMessagesWaiting: ["Alerts that wait to be sent by a channel", "channel"],
  databaseUp: ["1 while the database answers the coordinator, looked at every 2 s"],
  databaseWritable: [
    "1 while the database can be written as far as is known, looked at every 30 s and after failures",
  ],
  eventLoopDelaySeconds: ["How late the process is, over the last minute or two: p99, longest", "stat"],
  searchIndexPages: ["Pages of the index in memory; 0: the database answers searches"],
  searchIndexBytes: ["What the index in memory takes"],
  searchIndexBehindSeconds: ["Since the index in memory was last level with the database"],
  coordinatorLeads: ["1: this coordinator does what one does for all of a database"],
  jobLastSuccessTimestampSeconds: ["When the job's turn last ended without an error, Unix time", "job"],
  jobFailures: ["How often the job has failed in a row; 0: its last turn ended well", "job"],
  databaseFreeBytes: ["Free where the embedded database lies, or left of databaseGigabytes"],
  databaseBytes: ["What the database takes"],
  accuracyRatio: [
    "Share of sampled subnets whose crawler is within 5 ms of the nearest, over 30 days (0 to 1)",
  ],
  accuracyIntervalRatio: ["Wilson interval (95 %) of nearcrawl_accuracy_ratio", "end"],
  accuracySamples: ["Samples behind nearcrawl_accuracy_ratio"],
  figuresWrittenTimestampSeconds: ["When the last minute's figures were written, Unix time"],
  registryAppliedTimestampSeconds: ["When the registry in force was applied, Unix time"],
  frontierUrls: ["URLs in the frontier, by state; about, where there are many", "state"],
  frontierLeftOutUrls: [
    "Times that a URL was left out at its host's bound; of the 10,000 hosts with most, where there are more",
  ],
  frontierBoundHosts: ["Hosts at their bounds that had URLs left out, up to 10,000"],
  indexPages: ["Pages in the index; about, where there are many"],
  subnets: ["Subnets with a crawler, and subnets that wait for a probe round", "state"],
  crawlers: ["Registered crawlers, by state", "state"],
  spooledResults: ["Results on crawlers' disks that are not acknowledged yet"],
  crawlerUp: ["1 while the crawler is connected", "crawler"],
  crawlerSubnets: ["Subnets that the crawler has", "crawler"],
  crawlerOpenLeases: ["Hosts that the crawler has leased", "crawler"],
  crawlerSpooledResults: ["Results on the crawler's disk, not acknowledged yet", "crawler"],
  crawlerFetchedBytes: ["Bytes fetched since the crawler's start, as it says", "crawler"],
  crawlerShippedBytes: ["Bytes shipped since the crawler's start, as it says", "crawler"],
} as const;

type Described = readonly [help: string, ...labels: string[]];
type LabelsOf<One> = One extends readonly [string, ...infer Labels extends string[]] ? Labels[number] : never;

type Counters = { readonly [Name in keyof typeof counters]: Counter<LabelsOf<(typeof counters)[Name]>> };
export type Gauges = { readonly [Name in keyof typeof gauges]: Gauge<LabelsOf<(typeof gauges)[Name]>> };

export interface Metrics extends Counters, Gauges {
  readonly registry: Registry;
  readonly httpRequestSeconds: Histogram<"route" | "status">;
  readonly databaseRoundTripSeconds: Histogram;
  /** Of the exchange with parent and children. */
  readonly coordinators: CoordinatorMetrics;
}

/** Crawlers with gauges of their own; those that are connected come first. */
export const maxCrawlersMeasured = 500;

/** `processMetrics` adds memory, event loop and garbage collection of this process. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics) collectDefaultMetrics({ register: registry, prefix: "nearcrawl_" });
  const registers = [registry];
  const made = <Metric>(
    described: Readonly<Record<string, Described>>,
    make: (name: string, help: string, labelNames: string[]) => Metric,
  ) => {
    const named = Object.entries(described).map(([key, [help, ...labels]]) => {
      const name = `nearcrawl_${key.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)}`;
      return [key, make(name, help, labels)] as const;
    });
    return Object.fromEntries(named);
  };
  return {
    registry,
    ...(made(
      counters,
      (name, help, labelNames) => new Counter({ name: `${name}_total`, help, labelNames, registers }),
    ) as Counters),
    ...(made(
      gauges,
      (name, help, labelNames) => new Gauge({ name, help, labelNames, registers }),
    ) as unknown as Gauges),
    httpRequestSeconds: new Histogram({
      name: "nearcrawl_http_request_seconds",
      help: "Seconds that pages and API answers took, by route and status",
      labelNames: ["route", "status"],
      buckets: [0.005, 0.02, 0.05, 0.15, 0.5, 2, 10],
      registers,
    }),
    databaseRoundTripSeconds: new Histogram({
      name: "nearcrawl_database_round_trip_seconds",
      help: "Seconds that the database takes for the simplest of questions",
      buckets: [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5],
      registers,
    }),
    coordinators: new CoordinatorMetrics(registry),
  };
}

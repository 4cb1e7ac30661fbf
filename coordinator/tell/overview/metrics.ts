/**
 * The metrics at /metrics, with base units and names by Prometheus' conventions. Values of small sets are labels, and the
 * number of crawlers is limited. Events feed the counters, and a job sets the gauges (overview/start).
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { knownGate } from "#protocol/bot-gate";
import { useAnswers } from "#protocol/preferences";
import type { FetchResult } from "#protocol/result";
import type { TakenResults } from "../../crawl/batch/accepted-result.ts";
import { asksPayment, challengeOf } from "../../crawl/batch/visit.ts";
import { CoordinatorMetrics } from "../../crawl/federation/coordinator-metrics.ts";
import type { AppliedLinks } from "../../crawl/frontier/link-outbox-store.ts";
import type { ResultBatch } from "../../place/crawlers/crawler.ts";
import type { FinishedRound } from "../../place/delegation/delegation.ts";
import { MinuteFigures } from "./minute-figures.ts";
import type { LiveState } from "./overview-ask.ts";

/** For each counter the help, then the labels. `statedPages` becomes nearcrawl_stated_pages_total. */
const counters = {
  fetches: ["Results stored, by how the fetch ended", "outcome"],
  fetchFailures: ["Failed fetches by cause: target, network, crawler, us", "blame"],
  pages: ["Pages stored"],
  statedPages: [
    "Fetched or unchanged pages whose site states what they may be used for, by use and answer",
    "use",
    "answer",
  ],
  paymentsAsked: ["Answers with status 402: the site asks to be paid"],
  challenges: ["Answers of bot gates instead of a page or robots.txt, by provider", "provider"],
  fetchedBytes: ["Decoded body bytes of the pages that crawlers fetched"],
  shippedBytes: ["Compressed bytes of results on the wire"],
  results: ["Arrived results by outcome", "taken"],
  urlsAdmitted: ["URLs new to the frontier"],
  linksApplied: ["URLs of other hosts that results linked to, taken from the outbox"],
  probes: ["Latency probes, by method and outcome", "method", "outcome"],
  rounds: ["Probe rounds, by policy, cause and whether they decided", "policy", "cause", "decided"],
  leases: ["Leases granted, returned, expired", "event"],
  moves: ["Subnets moved between crawlers without a round", "cause"],
  sessionsRefused: ["Sessions refused or ended by the coordinator", "code"],
  incidents: ["Incidents (nearcrawl fleet incidents), by kind", "kind"],
  alertDeliveries: [
    "Attempts to deliver alerts, by channel and outcome: delivered, failed, given-up",
    "channel",
    "outcome",
  ],
} as const;

const gauges = {
  buildInfo: ["1, with the version of the coordinator's software", "version"],
  roundsUnderWay: ["Undecided probe rounds"],
  probesUnderWay: ["Unanswered probes"],
  sessions: ["Crawlers connected now"],
  releaseCrawlers: ["Crawlers by release and its outcome there", "version", "state"],
  queueHosts: ["Due hosts that are not being fetched, by what they wait for", "reason"],
  queueAgeSeconds: ["Waiting time of due hosts: median, p95, oldest", "stat"],
  linkOutboxLinks: ["URLs of other hosts that results linked to and that wait to be applied"],
  linkOutboxAgeSeconds: ["Waiting time of the oldest of them; 0 when none waits"],
  alerts: ["Alerts by rule, as in nearcrawl alerts; the value is the number of targets", "name", "severity"],
  alertChannelFailures: ["Consecutive failures of an alert channel; 0 after a success", "channel"],
  alertMessagesWaiting: ["Alerts that wait to be sent by a channel", "channel"],
  databaseUp: ["1 while the database answers the coordinator, checked every 2 s"],
  databaseWritable: [
    "1 while the database can be written as far as is known, checked every 30 s and after failures",
  ],
  eventLoopDelaySeconds: ["Delay of the event loop over the last minute or two: p99, longest", "stat"],
  searchIndexPages: ["Pages of the search's index; 0 while it is away or is being built"],
  searchIndexBytes: ["Size of the search's index"],
  searchIndexBehindSeconds: ["Time since the search's index was level with the database"],
  coordinatorLeads: ["1 while this coordinator leads those of its database"],
  jobLastSuccessTimestampSeconds: ["Last successful end of the job's turn, Unix time", "job"],
  jobFailures: ["Consecutive failures of the job; 0 after a success", "job"],
  databaseFreeBytes: ["Free space of the embedded database's disk, or left of databaseGigabytes"],
  databaseBytes: ["Size of the database"],
  accuracyRatio: [
    "Share of sampled subnets whose crawler is within 5 ms of the nearest, over 30 days (0 to 1)",
  ],
  accuracyIntervalRatio: ["Wilson interval (95 %) of nearcrawl_accuracy_ratio", "end"],
  accuracySamples: ["Samples behind nearcrawl_accuracy_ratio"],
  figuresWrittenTimestampSeconds: ["Time of the last written minute's figures, Unix time"],
  registryAppliedTimestampSeconds: ["Time at which the registry in force was applied, Unix time"],
  frontierUrls: ["URLs in the frontier by state; estimated when there are many", "state"],
  frontierLeftOutUrls: ["URLs skipped at their host's limit; for the 10,000 hosts with most"],
  frontierBoundHosts: ["Hosts whose URLs were skipped at their limit, up to 10,000"],
  indexPages: ["Pages in the index; estimated when there are many"],
  subnets: ["Subnets with a crawler, and subnets that wait for a probe round", "state"],
  crawlers: ["Registered crawlers, by state", "state"],
  spooledResults: ["Results on crawlers' disks that are not acknowledged yet"],
  crawlerUp: ["1 while the crawler is connected", "crawler"],
  crawlerSubnets: ["Subnets that the crawler has", "crawler"],
  crawlerOpenLeases: ["Hosts that the crawler has leased", "crawler"],
  crawlerSpooledResults: ["Results on the crawler's disk, not acknowledged yet", "crawler"],
  crawlerFetchedBytes: ["Bytes fetched since the crawler's start, as it reports", "crawler"],
  crawlerShippedBytes: ["Bytes shipped since the crawler's start, as it reports", "crawler"],
} as const;

type Described = readonly [help: string, ...labels: string[]];
type LabelsOf<One> = One extends readonly [string, ...infer Labels extends string[]] ? Labels[number] : never;

type CounterMetrics = {
  readonly [Name in keyof typeof counters]: Counter<LabelsOf<(typeof counters)[Name]>>;
};
export type Gauges = { readonly [Name in keyof typeof gauges]: Gauge<LabelsOf<(typeof gauges)[Name]>> };

export interface Metrics extends CounterMetrics, Gauges {
  readonly registry: Registry;
  readonly httpRequestSeconds: Histogram<"route" | "status">;
  readonly databaseRoundTripSeconds: Histogram;
  /** The exchange with parent and children. */
  readonly coordinators: CoordinatorMetrics;
}

/** Maximum number of crawlers with gauges of their own, connected ones first. */
export const maxCrawlersMeasured = 500;

/** `processMetrics` adds memory, event loop and garbage collection. */
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
    ) as CounterMetrics),
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
      help: "Seconds that the database takes for the simplest query",
      buckets: [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5],
      registers,
    }),
    coordinators: new CoordinatorMetrics(registry),
  };
}

export class Counters {
  readonly metrics: Metrics = createMetrics({ processMetrics: true });
  readonly figures = new MinuteFigures();
  readonly #refusals = new Map<string, number>();

  /** Counts what arrives. A result that arrives twice counts twice here, but once in the database. */
  results(batch: ResultBatch, taken: TakenResults): void {
    const pages = batch.results.filter(({ result }) => result.page !== null);
    const fetchedBytes = pages.reduce((sum, { result }) => sum + result.bodyBytes, 0);
    const shippedBytes = batch.results.reduce((sum, { wireBytes }) => sum + wireBytes, 0);
    this.figures.results(batch, taken.stored);
    const { metrics } = this;
    for (const { result } of batch.results) {
      metrics.fetches.inc({ outcome: result.outcome.type });
      if (asksPayment(result.outcome)) metrics.paymentsAsked.inc();
      const challenge = challengeOf(result.outcome);
      if (challenge !== null) metrics.challenges.inc({ provider: knownGate(challenge.provider) });
      for (const [use, answer] of Object.entries(useAnswers(statedOfPage(result))))
        metrics.statedPages.inc({ use, answer });
      if (result.outcome.type === "failed") metrics.fetchFailures.inc({ blame: result.outcome.blame });
    }
    metrics.pages.inc(pages.length);
    metrics.fetchedBytes.inc(fetchedBytes);
    metrics.shippedBytes.inc(shippedBytes);
    metrics.results.inc({ taken: "stored" }, taken.stored);
    metrics.results.inc({ taken: "duplicate" }, taken.duplicates);
    metrics.results.inc({ taken: "without-lease" }, taken.withoutLease);
    metrics.urlsAdmitted.inc(taken.newUrls);
  }

  round(round: FinishedRound): void {
    this.figures.round(paid(round).length);
    const decided = round.crawlerId === null ? "no" : "yes";
    this.metrics.rounds.inc({ policy: round.policy, cause: round.cause, decided });
    for (const { outcome } of paid(round)) {
      this.metrics.probes.inc({ method: outcome.method, outcome: outcome.type });
    }
  }

  /** `refusals` has the total so far by code. */
  observe(live: LiveState, refusals: Readonly<Record<string, number>>): void {
    const { metrics } = this;
    metrics.sessions.set(live.sessions);
    metrics.roundsUnderWay.set(live.roundsUnderWay);
    metrics.probesUnderWay.set(live.probesUnderWay);
    for (const [code, count] of Object.entries(refusals)) {
      metrics.sessionsRefused.inc({ code }, count - (this.#refusals.get(code) ?? 0));
      this.#refusals.set(code, count);
    }
  }

  linksApplied({ effects, newUrls }: AppliedLinks): void {
    this.metrics.urlsAdmitted.inc(newUrls);
    this.metrics.linksApplied.inc(effects);
  }

  leases(event: "granted" | "returned" | "expired", count: number): void {
    this.metrics.leases.inc({ event }, count);
  }

  refusedResults(count: number): void {
    this.metrics.results.inc({ taken: "refused" }, count);
  }

  incident(kind: string): void {
    this.metrics.incidents.inc({ kind });
  }

  moves(cause: string, count: number): void {
    this.metrics.moves.inc({ cause }, count);
  }
}

const statedOfPage = ({ outcome, preferences = [] }: FetchResult) =>
  outcome.type === "fetched" || outcome.type === "unchanged" ? preferences : [];

/** Leaves out measurements of the crawl's own fetches, which cost no probe. */
const paid = ({ probes }: FinishedRound) => probes.filter(({ how }) => how !== "get");

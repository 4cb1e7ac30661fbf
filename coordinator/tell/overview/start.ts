/** The overview's jobs (figures by the minute, gauges, samples of the delegations' accuracy) and its pages. */

import type { Pool } from "pg";
import type { Gauge } from "prom-client";
import type { CrawlerId } from "#core/ids";
import type { IncidentLog } from "#core/incidents";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { WebPart } from "../../ask/add-operations.ts";
import { forgetTurns } from "../../crawl/frontier/address-turn-store.ts";
import { bringBack, wasAhead } from "../../crawl/frontier/of-the-future-writes.ts";
import { crawlerStates } from "../../place/crawlers/crawler.ts";
import {
  accuracyDays,
  accuracyEstimate,
  isSampleDue,
  type SamplingPorts,
  sampleAccuracy,
} from "../../place/delegation/accuracy.ts";
import { createAccuracyStore } from "../../place/delegation/accuracy-store.ts";
import type { AccuracySettings, ProbingSettings } from "../../place/delegation/delegation-settings.ts";
import type { FleetSettling } from "../../place/delegation/measure-peers.ts";
import type { DelegationQueue } from "../../place/delegation/queue.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { CrawlerGateway } from "../../run/gateway/gateway.ts";
import type { EngineState } from "../search/engine/search-engine.ts";
import type { AlertFacts } from "./alert-facts.ts";
import { alertRules, alertsOf, ownAlertNames } from "./alert-rules.ts";
import {
  addGauges,
  addStandings,
  figureWriter,
  forgetFigures,
  forgetGauges,
  forgetMinutesAfter,
  gaugeSeconds,
  gaugesOf,
  lastMinute,
  type Standing,
  sampleDisk,
} from "./figure-store.ts";
import { type Counters, type Metrics, maxCrawlersMeasured } from "./metrics.ts";
import type { LiveState } from "./overview-ask.ts";
import { createOverviewReads, type OverviewReads } from "./overview-reads.ts";
import { type OwnHealth, withOwnFacts } from "./own-health.ts";
import { waitReasons } from "./queue-api.ts";
import { type OverviewPagePorts, overviewPages } from "./routes.ts";

interface OverviewDutyPorts extends Omit<SamplingPorts, "accuracy"> {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly counters: Counters;
  /** Whether the crawlers have measured each other, so that probe rounds may begin. */
  readonly isSettled: () => boolean;
  readonly version: string;
  readonly health: Pick<OwnHealth, "facts">;
  readonly log: Log;
}

interface OverviewDuties {
  alertFacts(now: Date): Promise<AlertFacts>;
  start(): void;
  /** Also writes the current minute's figures. */
  stop(): Promise<void>;
}

/** A coordinator that is killed loses the figures of at most this time. */
const figuresMs = 1000;
/** Prometheus' usual interval. */
const observeMs = 30_000;
const forgetMs = 3_600_000;
/** Seldom, because to measure the database, the server looks at each of its files. */
const diskMs = 600_000;
const sampleMs = 30_000;

/** Samples are kept, for the charts, longer than they count. */
const keptDays = 3 * accuracyDays;

export function overviewDuties(
  ports: OverviewDutyPorts,
  config: {
    readonly probe: ProbingSettings;
    readonly accuracy: AccuracySettings;
    readonly allowSpecialPurpose: AllowedSpecialPurpose;
    readonly databaseGigabytes: number | null;
  },
): OverviewDuties {
  const { pool, timekeeper, counters, log, now } = ports;
  const writeFigures = figureWriter(pool);
  const accuracy = createAccuracyStore(pool);
  const reads = withOwnFacts(
    createOverviewReads(pool, () => performance.now()),
    ports.health,
  );
  const { metrics } = counters;
  return {
    alertFacts: async (at) => await reads.alertFacts(at),
    start: () => {
      metrics.buildInfo.set({ version: ports.version }, 1);
      const writeTurn = async () => await counters.figures.turn(writeFigures, now());
      timekeeper.every("write-figures", figuresMs, writeTurn, { onEach: true });
      let gaugedMs = 0;
      const observe = async () => {
        const seen = await observeOperation({ reads, metrics, now });
        const spanMs = 1000 * gaugeSeconds;
        const binMs = Math.floor(now().getTime() / spanMs) * spanMs;
        if (binMs === gaugedMs) return;
        const at = new Date(binMs);
        const isFirst = await addGauges(pool, at, gaugesOf(seen));
        // Each crawler is written with the first sample of an hour, or of the process.
        if (isFirst && (at.getUTCMinutes() === 0 || gaugedMs === 0))
          await addStandings(pool, at, seen.crawlers);
        gaugedMs = binMs;
      };
      timekeeper.every("observe-operation", observeMs, observe, { onEach: true, whateverTheClock: true });
      timekeeper.every("measure-disk", diskMs, async () => {
        const gigabytes = config.databaseGigabytes;
        const roomBytes = gigabytes === null ? null : gigabytes * 1e9;
        const { databaseBytes, freeBytes } = await sampleDisk(pool, { now: now(), roomBytes });
        metrics.databaseBytes.set(databaseBytes);
        if (freeBytes !== null) metrics.databaseFreeBytes.set(freeBytes);
      });
      timekeeper.every("forget-figures", forgetMs, async () => {
        await forgetFigures(pool, now());
        await forgetGauges(pool, now());
        await accuracy.forget(new Date(now().getTime() - keptDays * 86_400_000));
      });
      timekeeper.every("sample-accuracy", sampleMs, async () => {
        const isDue =
          ports.isSettled() && (await isSampleDue({ accuracy, now }, config.accuracy.subnetsPerHour));
        if (!isDue) return;
        const sample = await sampleAccuracy({ ...ports, accuracy }, config);
        if (sample === null) return;
        const { subnetId, ownerId, ownerRttMs, bestId, bestRttMs } = sample;
        log.debug({ subnetId, ownerId, ownerRttMs, bestId, bestRttMs }, "a delegation was sampled");
      });
    },
    stop: async () => {
      await counters.figures.flush(writeFigures).catch((error: unknown) => {
        log.error({ error }, "the last figures could not be written");
      });
    },
  };
}

interface LiveParts {
  readonly startedAt: Date;
  readonly gateway: CrawlerGateway;
  /** The whole fleet rather than only this coordinator's crawlers. */
  readonly fleet: { online(): readonly CrawlerId[] };
  readonly queue: DelegationQueue;
  readonly settling: FleetSettling;
  readonly state: Pick<CoordinatorState, "generation">;
}

export function liveState(parts: LiveParts): LiveState {
  const { startedAt, gateway, fleet, queue, settling, state } = parts;
  const sessions = gateway.online().length;
  const phase =
    fleet.online().length === 0
      ? "waiting for crawlers"
      : settling.settled
        ? "crawling"
        : "crawlers measure each other";
  return {
    startedAt,
    phase,
    sessions,
    roundsUnderWay: queue.running,
    probesUnderWay: gateway.probesUnderWay,
    treeGeneration: state.generation,
  };
}

/** Sets the gauges from the reads of the pages, so that pages, command and Prometheus agree. */
export async function observeOperation({
  reads,
  metrics,
  now,
}: {
  readonly reads: OverviewReads;
  readonly metrics: Metrics;
  readonly now: () => Date;
}): Promise<Standing> {
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
  metrics.databaseRoundTripSeconds.observe(facts.databaseMs / 1000);
  setSeconds(metrics.figuresWrittenTimestampSeconds, facts.figuresAtMs);
  setSeconds(metrics.registryAppliedTimestampSeconds, facts.registryAppliedMs);
  const found = new Map(alertsOf(facts).map(({ name, count }) => [name, count]));
  for (const { name, severity } of alertRules) metrics.alerts.set({ name, severity }, found.get(name) ?? 0);
  const channels = facts.channels ?? [];
  setEach(metrics.alertChannelFailures, "channel", channels, ({ failures }) => failures);
  setEach(metrics.alertMessagesWaiting, "channel", channels, ({ waiting }) => waiting);
  const waiting = new Map(queue.reasons.map(({ reason, hosts }) => [reason, hosts]));
  for (const reason of waitReasons) metrics.queueHosts.set({ reason }, waiting.get(reason) ?? 0);
  setAll(metrics.queueAgeSeconds, "stat", {
    median: queue.medianSeconds ?? 0,
    p95: queue.p95Seconds ?? 0,
    oldest: queue.oldestSeconds ?? 0,
  });
  metrics.linkOutboxLinks.set(facts.linkOutbox.effects);
  metrics.linkOutboxAgeSeconds.set(facts.linkOutbox.ageSeconds);
  const accuracy = accuracyEstimate(counts);
  metrics.accuracySamples.set(accuracy.samples);
  if (accuracy.share === null) metrics.accuracyRatio.remove();
  else metrics.accuracyRatio.set(accuracy.share);
  setAll(metrics.accuracyIntervalRatio, "end", { low: accuracy.low, high: accuracy.high });
  setAll(metrics.frontierUrls, "state", {
    ...{ due: totals.urlsDue, leased: totals.urlsLeased, refused: totals.urlsRefused, gone: totals.urlsGone },
    "payment-required": totals.urlsPaymentRequired,
  });
  metrics.frontierLeftOutUrls.set(leftOut.urls);
  metrics.frontierBoundHosts.set(leftOut.hosts);
  metrics.indexPages.set(totals.pages);
  setAll(metrics.subnets, "state", { delegated: totals.subnetsDelegated, waiting: totals.subnetsWaiting });
  const crawlers = fleet.filter(({ revoked }) => !revoked);
  for (const state of crawlerStates)
    metrics.crawlers.set({ state }, crawlers.filter((crawler) => crawler.state === state).length);
  const subnets = new Map(fleet.map((one) => [one.name, one.subnets]));
  setEach(metrics.crawlerUp, "crawler", gauges, ({ online }) => (online ? 1 : 0));
  setEach(metrics.crawlerSubnets, "crawler", gauges, ({ name }) => subnets.get(name) ?? 0);
  setEach(metrics.crawlerOpenLeases, "crawler", gauges, (one) => one.openLeases);
  setEach(metrics.crawlerSpooledResults, "crawler", gauges, ({ waitingResults }) => waitingResults);
  setEach(metrics.crawlerFetchedBytes, "crawler", gauges, ({ fetchedBytes }) => fetchedBytes);
  setEach(metrics.crawlerShippedBytes, "crawler", gauges, ({ shippedBytes }) => shippedBytes);
  metrics.spooledResults.set(gauges.reduce((sum, { waitingResults }) => sum + waitingResults, 0));
  const openLeases = gauges.reduce((sum, one) => sum + one.openLeases, 0);
  return { queue, urlsInProgress: totals.urlsLeased, openLeases, crawlers };
}

function setAll<Label extends string>(
  gauge: Gauge<Label>,
  label: Label,
  values: Readonly<Record<string, number>>,
): void {
  for (const [name, value] of Object.entries(values))
    gauge.set({ [label]: name } as Record<Label, string>, value);
}

/** Resets the gauge first, so that no series remains for what no longer exists. */
function setEach<Label extends string, One extends { readonly name: string }>(
  gauge: Gauge<Label>,
  label: Label,
  all: readonly One[],
  of: (one: One) => number,
): void {
  gauge.reset();
  for (const one of all) gauge.set({ [label]: one.name } as Record<Label, string>, of(one));
}

function setSeconds(gauge: Gauge, ms: number | null): void {
  if (ms !== null) gauge.set(ms / 1000);
}

/** Needs no database. `leads` means that this coordinator does the work that is done once for the fleet. */
export function observeOwn(
  metrics: Metrics,
  health: Pick<OwnHealth, "facts" | "alerts">,
  leads: boolean,
): void {
  const { silent, unwritable, eventLoop, jobs } = health.facts();
  metrics.databaseUp.set(silent === null ? 1 : 0);
  metrics.databaseWritable.set(unwritable === null ? 1 : 0);
  metrics.coordinatorLeads.set(leads ? 1 : 0);
  if (eventLoop !== null) {
    const { p99Ms, mostMs } = eventLoop;
    setAll(metrics.eventLoopDelaySeconds, "stat", { p99: p99Ms / 1000, longest: mostMs / 1000 });
  }
  for (const { name, succeededMs, failures } of jobs) {
    if (succeededMs !== null) metrics.jobLastSuccessTimestampSeconds.set({ job: name }, succeededMs / 1000);
    metrics.jobFailures.set({ job: name }, failures);
  }
  const counts = new Map(health.alerts().map(({ name, count }) => [name, count]));
  for (const { name, severity } of alertRules) {
    // `observeOperation` sets the alerts that the database knows as well.
    if (!ownAlertNames.has(name) || (name === "coordinator-silent" && silent === null)) continue;
    metrics.alerts.set({ name, severity }, counts.get(name) ?? 0);
  }
}

export function observeIndex(metrics: Metrics, state: EngineState): void {
  const { pages, bytes, secondsBehind } =
    state.type === "ready" ? state : { pages: 0, bytes: 0, secondsBehind: 0 };
  metrics.searchIndexPages.set(pages);
  metrics.searchIndexBytes.set(bytes);
  metrics.searchIndexBehindSeconds.set(secondsBehind);
}

const bringBackDuty = "bring-back-what-is-of-the-future";

/**
 * Schedules the removal of old incidents and turns, and the repair of times that a clock wrote ahead. Returns a function to
 * call when the clock is right again, with the distance of its jump.
 */
export function scheduleUpkeep(parts: {
  readonly pool: Pool;
  readonly incidents: IncidentLog;
  readonly timekeeper: Timekeeper;
  readonly log: Log;
  readonly now: () => Date;
}): (jumpedMs: number) => void {
  const { pool, incidents, timekeeper, log, now } = parts;
  timekeeper.every("forget-what-is-old", forgetMs, async () => {
    await incidents.forgetOld(now());
    await forgetTurns(pool, now());
  });
  // Times are checked once after a start, because the clock may have been corrected while nothing ran.
  let isSuspect = true;
  let isKnown = false;
  timekeeper.every(bringBackDuty, bringBackMs, async () => {
    const at = now();
    const last = await lastMinute(pool);
    const isWritten = last !== null && last.getTime() - at.getTime() > clocksApartMs;
    if (!isWritten && !isSuspect) return;
    if (isWritten || isKnown || (await wasAhead(pool, at))) {
      const hosts = await bringBack(pool, at);
      log.warn({ hosts }, "what a clock that was ahead had put into the future is back");
    }
    await forgetMinutesAfter(pool, new Date(at.getTime() + clocksApartMs));
    [isSuspect, isKnown] = [false, false];
  });
  timekeeper.hurry(bringBackDuty);
  return (jumpedMs) => {
    [isSuspect, isKnown] = [true, jumpedMs < 0];
    timekeeper.hurry(bringBackDuty);
  };
}

const bringBackMs = 60_000;
/** More than the clocks of coordinators differ. */
const clocksApartMs = 120_000;

type PartOptions = { readonly pool: Pool } & Omit<OverviewPagePorts, "reads">;

export function overviewPart({ pool, ...options }: PartOptions): WebPart {
  const reads = createOverviewReads(pool, () => performance.now());
  return overviewPages({ ...options, reads: withOwnFacts(reads, options.health) });
}

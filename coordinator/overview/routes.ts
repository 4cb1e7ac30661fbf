/** The overview and what stands behind its numbers: alerts, the queue, samples of how near the delegations are. */

import type { FastifyInstance } from "fastify";
import type { Log } from "#core/log";
import { timeRange } from "#core/time-range";
import { within } from "#core/within";
import { accuracyEstimate } from "../delegation/accuracy.ts";
import { accuracyBody, accuracyCsv } from "../delegation/accuracy-page.ts";
import { type Access, refusalFor, type Visit } from "../web/access.ts";
import { EventStreams } from "../web/event-streams.ts";
import { withCellLabels } from "../web/table-labels.ts";
import { type AskedView, sendRefusal, type Views } from "../web/views.ts";
import { alertReader, alertsBody } from "./alerts-page.ts";
import { inHandBody, inHandCsv } from "./in-hand-page.ts";
import { LiveEvents, maxListeners } from "./live-event-routes.ts";
import type { Metrics } from "./metrics.ts";
import { type LiveState, type Overview, showOverview } from "./overview.ts";
import { overviewApi } from "./overview-api.ts";
import { alertRegions, overviewBody, overviewRegions, usualRange } from "./overview-page.ts";
import type { OverviewReads, ReadinessReads } from "./overview-reads.ts";
import type { AlertsInTime, HealthFault, OwnHealth } from "./own-health.ts";
import { type InHandSort, inHandSorts, queueApi, type WaitReason, waitReasons } from "./queue-api.ts";
import { queueBody, queueCsv } from "./queue-page.ts";

interface LiveOverviewPorts {
  readonly reads: OverviewReads;
  /** Null: of a command, which has the database alone. */
  readonly live: () => LiveState | null;
}

export interface OverviewViewPorts extends LiveOverviewPorts {
  readonly alerts: Pick<AlertsInTime, "list">;
  /** By the alert's name: its paragraph. */
  readonly runbook?: ReadonlyMap<string, string>;
  /** Whether a coordinator works on the database; left out: this one does. */
  readonly runs?: () => Promise<boolean>;
}

const noRunbook: ReadonlyMap<string, string> = new Map();

/** Rows of a table, at most; programs may have more. */
const rowsShown = 100;

const rowsInCsv = 1000;

export function addOverviewViews(views: Views, ports: OverviewViewPorts): void {
  views.describe({
    path: "/",
    operation: overviewApi.overview,
    view: async (asked) => await overviewView(asked, ports),
  });
  views.describe({
    path: "/alerts",
    operation: overviewApi.alerts,
    view: async (asked) => await alertsView(asked, ports),
  });
  views.describe({
    path: "/fleet/queue",
    operation: queueApi.queue,
    view: async (asked) => await queueView(asked, ports),
  });
  views.describe({
    path: "/fleet/in-hand",
    operation: queueApi.hostsInHand,
    view: async (asked) => await inHandView(asked, ports),
  });
  views.describe({
    path: "/accuracy",
    operation: overviewApi.accuracy,
    view: async (asked) => await accuracyView(asked, ports),
  });
}

async function overviewView({ query, now }: AskedView, { reads, live, runs }: OverviewViewPorts) {
  const value = await showOverview(reads, live(), {
    ...{ range: timeRange(query, now, usualRange), now },
    runs: (await runs?.()) ?? true,
  });
  return {
    status: 200,
    value,
    title: titleOf(value),
    body: ({ actor }: Visit) => overviewBody(value, alertReader(actor)),
  };
}

/** A tab that is not looked at tells by its title that something is the matter. */
function titleOf({ alerts }: Overview): string {
  return alerts.length === 0 ? "Overview" : `(${alerts.length}) Overview`;
}

async function alertsView({ now }: AskedView, { alerts, runbook = noRunbook }: OverviewViewPorts) {
  const value = await alerts.list(now);
  return {
    status: 200,
    value,
    title: "Alerts",
    body: (viewer: Visit) => alertsBody({ list: value, runbook, viewer }),
  };
}

/** Of the hosts at their bounds. */
const leftOutShown = 10;

async function queueView(asked: AskedView, { reads }: OverviewViewPorts) {
  const reason = asked.query("reason");
  if (reason !== "" && !isReason(reason)) return `reason: must be one of ${waitReasons.join(", ")}`;
  const most = asked.query("format") === "csv" ? rowsInCsv : rowsShown;
  const [ages, leftOut, gated, history, hosts] = await Promise.all([
    reads.queueAges(asked.now),
    reads.leftOutUrls(leftOutShown),
    reads.gatedHosts(asked.now),
    reads.charts("queue", timeRange(asked.query, asked.now)),
    reads.longestWaiting({ reason: reason === "" ? null : reason, most }, asked.now),
  ]);
  const at = asked.now.toISOString();
  const value = { at, reason: reason === "" ? null : reason, ages, hosts, leftOut, gated, history };
  return {
    status: 200,
    value,
    title: "Queue",
    body: () => queueBody(value),
    csv: () => queueCsv(value),
  };
}

async function inHandView({ query, now }: AskedView, { reads }: OverviewViewPorts) {
  const sort = query("sort") || "rate";
  if (!isSort(sort)) return `sort: must be one of ${inHandSorts.join(", ")}`;
  const most = query("format") === "csv" ? rowsInCsv : rowsShown;
  const value = await reads.hostsInHand({ sort, most }, now);
  return {
    status: 200,
    value,
    title: "Hosts in progress",
    body: (visit: Visit) => inHandBody(value, sort, visit),
    csv: () => inHandCsv(value),
  };
}

async function accuracyView(asked: AskedView, { reads }: OverviewViewPorts) {
  const farOnly = asked.query("only") === "far";
  const most = asked.query("format") === "csv" ? rowsInCsv : rowsShown;
  const [counts, history, samples] = await Promise.all([
    reads.accuracyCounts(asked.now),
    reads.charts("accuracy", timeRange(asked.query, asked.now, "30d")),
    reads.accuracySamples({ most, farOnly }, asked.now),
  ]);
  const value = {
    at: asked.now.toISOString(),
    estimate: accuracyEstimate(counts),
    farOnly,
    samples,
    history,
  };
  return {
    status: 200,
    value,
    title: "How near the delegations are",
    body: () => accuracyBody(value),
    csv: () => accuracyCsv(value),
  };
}

function isReason(text: string): text is WaitReason {
  return (waitReasons as readonly string[]).includes(text);
}

function isSort(text: string): text is InHandSort {
  return (inHandSorts as readonly string[]).includes(text);
}

// The overview of a running coordinator, and its live events.

/** An office with a page on every desk; one address leaves room for the others. */
export const maxListenersOfAddress = 30;

interface EventPorts extends LiveOverviewPorts {
  readonly now: () => Date;
  readonly alerts: Pick<AlertsInTime, "list">;
  readonly access: Access;
  readonly log: Log;
  readonly settings: { readonly version: string };
}

/** Then the alerts alone are sent, and the rest of the page stays as it was. */
const renderMs = 10_000;

const minuteMs = 60_000;

export function addEvents(app: FastifyInstance, ports: EventPorts): void {
  const everything = async () => {
    // By the minute, so that charts stay as they are in between.
    const now = ports.now();
    const minute = new Date(Math.floor(now.getTime() / minuteMs) * minuteMs);
    const range = timeRange(() => "", minute, usualRange);
    return overviewRegions(await showOverview(ports.reads, ports.live(), { range, now }));
  };
  const unlessItFails = (regions: ReturnType<typeof everything>) =>
    regions.catch((error: unknown) => {
      ports.log.warn({ error }, "no live update could be made of all regions");
      return null;
    });
  const render = async () => {
    const alerts = await ports.alerts.list(ports.now());
    const whole = alerts.incomplete === null ? await within(renderMs, unlessItFails(everything())) : null;
    const regions = whole ?? alertRegions(alerts.alerts);
    return Object.fromEntries(
      Object.entries(regions).map(([name, region]) => [name, withCellLabels(region.markup)]),
    );
  };
  const events = new LiveEvents(render, (error) => ports.log.warn({ error }, "no live update could be made"));
  const streams = new EventStreams({
    most: maxListeners,
    mostOfAddress: maxListenersOfAddress,
    tooMany: tooManyListeners,
  });
  app.addHook("preClose", async () => events.close());
  app.get("/events", { config: { boundedElsewhere: true } }, async (request, reply) => {
    const refusal = await refusalFor(ports.access, request, "read");
    if (refusal) return sendRefusal(request, reply, refusal, ports.settings);
    const response = streams.take(request, reply, {
      isFull: events.full,
      version: ports.settings.version,
    });
    if (response !== null) events.listen(response);
    return reply;
  });
}

const tooManyListeners = {
  status: 503,
  title: "Too many listeners",
  words: "As many pages as can be kept live are live. This one stays as it is; reload it to see news.",
};

// For those who run the coordinator: whether it lives (/health), whether it can work (/ready), what it counts (/metrics).

interface OperationPorts {
  readonly reads: ReadinessReads;
  readonly health: Pick<OwnHealth, "look">;
  /** `treeGeneration`: of the tree in memory; null: it is empty. Left out where there is no tree (tests of pages). */
  readonly live: () => { readonly treeGeneration?: number | null } | null;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: { readonly version: string };
}

/** However busy the coordinator is: one line from memory, and one look at the database for all that ask. */
const always = { config: { boundedElsewhere: true } } as const;

export function addOperation(app: FastifyInstance, ports: OperationPorts): void {
  const { settings } = ports;
  app.get("/health", always, async () => ({ status: "ok", version: settings.version }));
  // Whoever asks while it is being looked gets the same answer.
  let looking: Promise<HealthFault[]> | null = null;
  app.get("/ready", always, async (_request, reply) => {
    looking ??= faultsNow(ports).finally(() => {
      looking = null;
    });
    const faults = await looking;
    const inTheWay = faults.filter(({ isInTheWay }) => isInTheWay);
    const told = faults.map(({ since, ...fault }) => ({ ...fault, since: since?.toISOString() ?? null }));
    reply.header("cache-control", "no-store");
    if (inTheWay.length === 0) return { ready: true, faults: told };
    const reason = inTheWay.map(({ words }) => words).join("; ");
    return reply.code(503).send({ ready: false, reason, faults: told });
  });
  app.get("/metrics", async (request, reply) => {
    const refusal = await refusalFor(ports.access, request, "metrics-read");
    if (refusal) return sendRefusal(request, reply, refusal, settings);
    reply.header("cache-control", "no-store");
    return reply.type(ports.metrics.registry.contentType).send(await ports.metrics.registry.metrics());
  });
}

/** As long as the look at the database takes at most: whoever asks waits no longer than that. */
const factsMs = 1000;

/** Where the database does not say whether it has all migrations, it is not known to lack any. */
async function faultsNow(ports: OperationPorts): Promise<HealthFault[]> {
  const [faults, missing] = await Promise.all([
    ports.health.look(),
    within(
      factsMs,
      missingParts(ports).catch((error: unknown) => {
        ports.log.warn({ error }, "what readiness asks the database was not answered");
        return null;
      }),
    ),
  ]);
  return [...(missing ?? []), ...faults];
}

/** A tree that is one import behind serves on, and counts as there. */
async function missingParts({ reads, live }: OperationPorts): Promise<HealthFault[]> {
  const [pending, generation] = await Promise.all([reads.pendingMigrations(), reads.currentGeneration()]);
  const missing: HealthFault[] = [];
  if (pending.length > 0)
    missing.push({
      ...{ code: "migrations-missing", words: migrationWords(pending), since: null, isInTheWay: true },
    });
  if (generation !== null && live()?.treeGeneration === null) missing.push(noTree);
  return missing;
}

function migrationWords(pending: readonly string[]): string {
  return (
    `the database lacks ${pending.length === 1 ? "a migration" : `${pending.length} migrations`} ` +
    `(${pending.slice(0, 5).join(", ")}): start the coordinator of this version`
  );
}

const noTree: HealthFault = {
  code: "tree-missing",
  words: "a registry is in force, and its tree is not in memory yet",
  since: null,
  isInTheWay: true,
};

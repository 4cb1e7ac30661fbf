/** What a running coordinator tells live, and those who run it: the overview's events, /health, /ready and /metrics. */

import type { FastifyInstance } from "fastify";
import type { Log } from "#core/log";
import { timeRange } from "#core/time-range";
import { within } from "#core/within";
import { sendRefusal } from "../ask/views.ts";
import { type Access, refusalFor } from "../web/access.ts";
import { EventStreams } from "../web/event-streams.ts";
import { withCellLabels } from "../web/table-labels.ts";
import { LiveEvents, maxListeners } from "./live-event-routes.ts";
import type { Metrics } from "./metrics.ts";
import { showOverview } from "./overview.ts";
import { alertRegions, type OverviewPorts, overviewRegions, usualRange } from "./overview-ask.ts";
import type { ReadinessReads } from "./overview-reads.ts";
import type { AlertsInTime, HealthFault, OwnHealth } from "./own-health.ts";

// The overview of a running coordinator, and its live events.

/** An office with a page on every desk; one address leaves room for the others. */
export const maxListenersOfAddress = 30;

interface EventPorts extends Pick<OverviewPorts, "reads" | "live"> {
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
    const range = timeRange({}, minute, usualRange);
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

/** Routes of the overview, the alerts, the live events, /health, /ready and /metrics. */

import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Log } from "#core/log";
import { timeRange } from "#core/time-range";
import { within } from "#core/timer-ms";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { sendRefusal } from "../../ask/views.ts";
import { type Access, refusalFor } from "../../web/access.ts";
import { EventStreams } from "../../web/event-streams.ts";
import { withCellLabels } from "../../web/html.ts";
import { alertOperations } from "./alerts/alerts-ask.ts";
import type { Metrics } from "./metrics.ts";
import {
  alertRegions,
  type OverviewPorts,
  overviewOperations,
  overviewRegions,
  showOverview,
  usualRange,
} from "./overview-ask.ts";
import type { ReadinessReads } from "./overview-reads.ts";
import { AlertsInTime, type HealthFault, type OwnHealth } from "./own-health.ts";

export interface OverviewPagePorts extends OverviewPorts {
  readonly health: OwnHealth;
  readonly log: Log;
  readonly now: () => Date;
  readonly version: string;
}

/** `reads` must include the coordinator's own facts. */
export function overviewPages(ports: OverviewPagePorts): WebPart {
  const alerts = new AlertsInTime(ports.reads, ports.health);
  const operations = { ...alertOperations, ...overviewOperations };
  return (to) => {
    addOperations(operations, { ...ports, alerts })(to);
    addEvents(to.app, { ...ports, access: to.access, alerts });
  };
}

/** Enough for an office with a page on every desk, while other addresses still find a slot. */
export const maxListenersOfAddress = 30;

interface EventPorts extends OverviewPagePorts {
  readonly alerts: Pick<AlertsInTime, "list">;
  readonly access: Access;
}

/** After this time, only the alerts are sent, and the rest of the page remains as it was. */
const renderMs = 10_000;

const minuteMs = 60_000;

function addEvents(app: FastifyInstance, ports: EventPorts): void {
  const everything = async () => {
    // The time is rounded to the minute, so that charts do not change in between.
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
    if (refusal) return sendRefusal(request, reply, refusal, ports);
    const response = streams.take(request, reply, {
      isFull: events.full,
      version: ports.version,
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

// Server-sent events: every two seconds, while somebody listens, the regions of the overview that have changed. The overview
// is rendered once per tick for all listeners. Slow listeners are dropped, and their browsers reconnect.

export const maxListeners = 100;
const tickMs = 2000;

const maxBehindBytes = 1_000_000;

/** After this time the browser must reconnect and is authorised again, so that signed-out people get no more. */
const mostStreamMs = 300_000;

export class LiveEvents {
  readonly #render: () => Promise<Readonly<Record<string, string>>>;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<ServerResponse>();
  #sent: Readonly<Record<string, string>> = {};
  #timer: NodeJS.Timeout | null = null;
  #rendering = false;

  /** `render` returns the regions' HTML by name. */
  constructor(render: () => Promise<Readonly<Record<string, string>>>, onError: (error: unknown) => void) {
    this.#render = render;
    this.#onError = onError;
  }

  get full(): boolean {
    return this.#listeners.size >= maxListeners;
  }

  /**
   * Takes over a response whose head is written. The first event repeats all regions of the last tick, so that reconnecting
   * often causes no work.
   */
  listen(response: ServerResponse): void {
    this.#listeners.add(response);
    const end = setTimeout(() => this.#letGo(response), mostStreamMs).unref();
    response.on("close", () => {
      clearTimeout(end);
      this.#forget(response);
    });
    response.write("retry: 3000\n\n");
    this.#timer ??= setInterval(() => void this.tick(), tickMs).unref();
    if (Object.keys(this.#sent).length === 0) void this.tick();
    else response.write(eventOf(this.#sent));
  }

  async tick(): Promise<void> {
    if (this.#rendering || this.#listeners.size === 0) return;
    this.#rendering = true;
    try {
      const regions = await this.#render();
      const changed = Object.entries(regions).filter(([name, markup]) => this.#sent[name] !== markup);
      this.#sent = this.#listeners.size === 0 ? {} : regions;
      this.#send(eventOf(Object.fromEntries(changed)));
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#rendering = false;
    }
  }

  /** Ends every stream, so that the server can close. */
  close(): void {
    for (const response of this.#listeners) response.end();
    this.#listeners.clear();
    this.#stop();
  }

  #send(event: string): void {
    for (const response of this.#listeners) {
      if (response.writableLength > maxBehindBytes) response.destroy();
      else response.write(event);
    }
  }

  #letGo(response: ServerResponse): void {
    this.#forget(response);
    response.end();
  }

  #forget(response: ServerResponse): void {
    this.#listeners.delete(response);
    if (this.#listeners.size === 0) this.#stop();
  }

  #stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    // Regions rendered before a pause would be outdated.
    this.#sent = {};
  }
}

function eventOf(regions: Readonly<Record<string, string>>): string {
  return `event: overview\ndata: ${JSON.stringify({ regions })}\n\n`;
}

// For operators: whether the process runs (/health), whether it can work (/ready), and its metrics.

interface OperationPorts {
  readonly reads: ReadinessReads;
  readonly health: Pick<OwnHealth, "look">;
  /** `treeGeneration` is null while the tree in memory is empty, and absent without a tree (tests of pages). */
  readonly live: () => { readonly treeGeneration?: number | null } | null;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: { readonly version: string };
}

/** These routes answer however busy the coordinator is, at the cost of one check of the database for all callers. */
const always = { config: { boundedElsewhere: true } } as const;

export function addOperation(app: FastifyInstance, ports: OperationPorts): void {
  const { settings } = ports;
  app.get("/health", always, async () => ({ status: "ok", version: settings.version }));
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

/** The maximum duration of a check of the database. */
const factsMs = 1000;

/** If the database does not say whether migrations are missing, none count as missing. */
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

/** A tree that is one import behind is good enough. */
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

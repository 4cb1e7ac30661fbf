/** The overview, the list of alerts, and the overview's live events. */
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
import { LiveEvents, maxListeners } from "./live-event-routes.ts";
import { showOverview } from "./overview.ts";
import {
  alertRegions,
  type OverviewPorts,
  overviewOperations,
  overviewRegions,
  usualRange,
} from "./overview-ask.ts";
import { AlertsInTime, type OwnHealth } from "./own-health.ts";

export interface OverviewPagePorts extends OverviewPorts {
  readonly health: OwnHealth;
  readonly log: Log;
  readonly now: () => Date;
  readonly version: string;
}

/** `reads`: with what the coordinator knows of itself. */
export function overviewPages(ports: OverviewPagePorts): WebPart {
  const alerts = new AlertsInTime(ports.reads, ports.health);
  const operations = { ...alertOperations, ...overviewOperations };
  return (to) => {
    addOperations(operations, { ...ports, alerts })(to);
    addEvents(to.app, { ...ports, access: to.access, alerts });
  };
}

// The live events.

/** An office with a page on every desk; one address leaves room for the others. */
export const maxListenersOfAddress = 30;

interface EventPorts extends OverviewPagePorts {
  readonly alerts: Pick<AlertsInTime, "list">;
  readonly access: Access;
}

/** Then the alerts alone are sent, and the rest of the page stays as it was. */
const renderMs = 10_000;

const minuteMs = 60_000;

function addEvents(app: FastifyInstance, ports: EventPorts): void {
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

/** The overview of a running coordinator: its rates, sampled while the server runs, and its live events. */
import type { FastifyInstance } from "fastify";
import type { Log } from "#core/log";
import { type Access, refusalFor } from "../web/access.ts";
import { EventStreams } from "../web/event-streams.ts";
import { sendRefusal } from "../web/views.ts";
import { LiveEvents, maxListeners } from "./live-event-routes.ts";
import { type HistoryRange, historyRangeNames } from "./operation-types.ts";
import { type LiveState, type Overview, type OverviewReads, showOverview } from "./overview.ts";
import { overviewRegions } from "./overview-page.ts";
import { RateMeter } from "./rate-meter.ts";

/** An office with a page on every desk; one address leaves room for the others. */
export const maxListenersOfAddress = 30;
export interface LiveOverviewPorts {
  readonly reads: OverviewReads;
  readonly live: () => LiveState;
  readonly now: () => Date;
}

export type ShowLiveOverview = (range: HistoryRange) => Promise<Overview>;

/** The overview with its rates, which are sampled from the start of the server to its end. */
export function liveOverview(app: FastifyInstance, ports: LiveOverviewPorts): ShowLiveOverview {
  const meter = new RateMeter();
  const sample = () => meter.sample(ports.live().totals, ports.now().getTime());
  let timer: NodeJS.Timeout | null = null;
  app.addHook("onReady", async () => {
    sample();
    timer = setInterval(sample, RateMeter.stepMs).unref();
  });
  app.addHook("onClose", async () => {
    if (timer) clearInterval(timer);
  });
  return async (range) => {
    const live = ports.live();
    const now = ports.now();
    const rates = meter.rates(live.totals, now.getTime());
    return await showOverview(ports.reads, live, { rates, range, now });
  };
}

export interface EventPorts extends LiveOverviewPorts {
  readonly access: Access;
  readonly log: Log;
  readonly settings: { readonly version: string };
}

/** Every range's history is among the regions: a page takes the one that it shows. */
export function addEvents(app: FastifyInstance, ports: EventPorts, overview: ShowLiveOverview): void {
  const render = async () => {
    const histories = historyRangeNames.map(async (range) => await ports.reads.history(range, ports.now()));
    const regions = overviewRegions(await overview("1h"), await Promise.all(histories));
    return Object.fromEntries(Object.entries(regions).map(([name, region]) => [name, region.markup]));
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

/** What sites see of us: the crawler's page with its two forms, and the published data of the fleet. */
import type { FastifyRequest } from "fastify";
import type { Log } from "#core/log";
import { addOperations } from "../../ask/add-operations.ts";
import type { WebPart } from "../../ask/web-part.ts";
import type { FleetOutside } from "../../place/crawlers/public-list-reads.ts";
import { type PageViewer, sendPage } from "../../web/page-frame.ts";
import type { ComplaintStore } from "./complaint-store.ts";
import { contactOperations, FormLimits } from "./contact-ask.ts";
import { contactBody } from "./contact-page.ts";
import { contactApi } from "./opt-outs-api.ts";
import type { PublishedSettings } from "./published.ts";
import { addPublishedRoutes } from "./published-routes.ts";
import type { OptOutStore } from "./store.ts";

export interface ContactPorts {
  readonly optOuts: Pick<OptOutStore, "request">;
  readonly complaints: Pick<ComplaintStore, "add">;
  readonly fleet: FleetOutside;
}

interface Context {
  readonly settings: PublishedSettings & { readonly version: string };
  readonly now: () => Date;
  readonly log: Log;
  readonly viewerOf: (request: FastifyRequest) => Promise<PageViewer | undefined>;
}

export function contactPart(ports: ContactPorts, { settings, now, log, viewerOf }: Context): WebPart {
  return (to) => {
    const { app } = to;
    app.pages?.push(contactApi.fleetAddresses);
    app.get("/about-crawler", async (request, reply) => {
      const viewer = await viewerOf(request);
      if (viewer) reply.header("cache-control", "no-store").header("vary", "cookie");
      const about = { title: "About this crawler", path: "/about-crawler", version: settings.version };
      return sendPage(reply, { ...about, body: contactBody(settings), ...(viewer && { viewer }) });
    });
    addPublishedRoutes(app, ports.fleet, { settings, now });
    const limits = new FormLimits(() => performance.now());
    addOperations(contactOperations, { ...ports, limits, log })(to);
  };
}

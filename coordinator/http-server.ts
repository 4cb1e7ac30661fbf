/**
 * The coordinator's web server: pages, API, live events, metrics, health. `createWebServer` gives a server
 * that does not listen yet; main attaches the crawlers' gateway to its `.server` and lets it listen.
 */
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import { type FastifyInstance, type FastifyRequest, fastify } from "fastify";
import type { AuditLog } from "#core/audit";
import type { Log } from "#core/log";
import type { FrontierOrder } from "./frontier/order/strategies.ts";
import type { CrawlScope, NameResolver } from "./frontier/ports.ts";
import type { ContactSettings } from "./opt-outs/contact-page.ts";
import { addContactRoutes, type ContactPorts } from "./opt-outs/contact-routes.ts";
import type { Metrics } from "./overview/metrics.ts";
import type { ReadinessReads } from "./overview/operation-types.ts";
import type { LiveState, OverviewReads } from "./overview/overview.ts";
import { addEvents, addOperation, addOverviewViews, liveOverview } from "./overview/routes.ts";
import { addReleaseFiles, type ReleaseFilePorts } from "./releases/download-routes.ts";
import type { PageReads } from "./search/page-facts.ts";
import type { SearchReads } from "./search/reads.ts";
import { type Access, openAccess, viewerOf } from "./web/access.ts";
import { Actions } from "./web/actions.ts";
import { addApiRoutes } from "./web/api-page.ts";
import { guard, refuseUnrouted } from "./web/guard.ts";
import { addRateLimits } from "./web/rate-limits.ts";
import { Views } from "./web/views.ts";
import type { WhoReads } from "./who/place.ts";
import { addViews } from "./who/routes.ts";

/** Adds the routes of one part of the pages. */
export type WebPart = (to: {
  readonly app: FastifyInstance;
  readonly views: Views;
  readonly actions: Actions;
  /** For routes that are no views: who asks, and what they may. */
  readonly access: Access;
}) => void;

export interface WebSettings extends ContactSettings {
  readonly version: string;
  /** Certificate and key in PEM form; null: plain HTTP, for loopback or behind a proxy. */
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer } | null;
  /** One proxy stands in front, and says in X-Forwarded-For who asks. */
  readonly behindProxy?: boolean;
  /** Where people reach the pages, as the settings say. */
  readonly publicUrl?: string | null;
  /** How long a form may take to arrive; left out: 10 s. */
  readonly bodyTimeoutMs?: number;
}

export interface WebPorts {
  readonly reads: WhoReads & SearchReads & PageReads & OverviewReads & ReadinessReads;
  readonly resolver: NameResolver;
  readonly scope: CrawlScope;
  /** In what order URLs are fetched; left out, `who` tells no place. */
  readonly order?: FrontierOrder;
  /** The coordinator's own; left out: every host is its own. */
  readonly domainSets?: readonly string[];
  /** What the coordinator's memory knows now. */
  readonly live: () => LiveState;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: WebSettings;
  readonly now: () => Date;
  /** Without them, the contact page takes no forms, and nothing lists the fleet's addresses and keys. */
  readonly contact?: ContactPorts;
  /** Left out: nobody can sign in, and the pages are for whoever reaches them. */
  readonly access?: Access;
  /** Where what is changed is written down; left out: nowhere. */
  readonly audit?: Pick<AuditLog, "record">;
  /** Further pages, API routes and actions (coordinator/web-parts). */
  readonly parts?: readonly WebPart[];
  /** Without them, nothing is below /releases/. */
  readonly releaseFiles?: Omit<ReleaseFilePorts, "version">;
}

/** How long a request may take to arrive, and an idle connection to stay. */
const patience = {
  ...{ headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 30_000 },
  // Node looks every 30 s otherwise, and so three times as late.
  connectionsCheckingInterval: 2000,
};

const unaudited = { record: async () => {} };

/** In the source folder and in dist alike: beside this file's folder. */
const assetsFolder = fileURLToPath(new URL("./web/assets/", import.meta.url));

export function createWebServer(ports: WebPorts): FastifyInstance {
  const { settings } = ports;
  const guarded = { version: settings.version, secure: settings.tls !== null };
  const app = fastify({
    serverFactory: (handler) =>
      settings.tls
        ? createSecureServer({ ...patience, ...settings.tls }, handler)
        : createServer(patience, handler),
    bodyLimit: 1024,
    routerOptions: { maxParamLength: 200 },
    forceCloseConnections: true,
    frameworkErrors: (error, request, reply) => {
      refuseUnrouted(error, { request, reply, settings: guarded });
    },
    // The one in front, and no other address that X-Forwarded-For may name.
    trustProxy: settings.behindProxy === true ? (_address, hop) => hop < 1 : false,
  });
  const access = ports.access ?? openAccess;
  const knowing = { ...ports, access, viewerOf: (request: FastifyRequest) => viewerOf(access, request) };
  guard(app, {
    ...{ ...knowing, settings: guarded },
    ...(settings.bodyTimeoutMs === undefined ? {} : { bodyTimeoutMs: settings.bodyTimeoutMs }),
  });
  addRateLimits(app, settings);
  app.register(fastifyStatic, { root: assetsFolder, prefix: "/assets/", maxAge: "1h", index: false });
  const overview = liveOverview(app, ports);
  const shared = { access, version: settings.version, now: ports.now };
  const views = new Views(app, shared);
  const actions = new Actions(app, { ...shared, audit: ports.audit ?? unaudited });
  addOverviewViews(views, { ...ports, overview });
  addViews(views, ports);
  addApiRoutes(app, views, settings.publicUrl ?? null);
  for (const addPart of ports.parts ?? []) addPart({ app, views, actions, access });
  addEvents(app, { ...ports, access: shared.access }, overview);
  if (ports.releaseFiles) addReleaseFiles(app, { ...ports.releaseFiles, version: settings.version });
  addContactRoutes(app, ports.contact ?? null, knowing);
  addOperation(app, { ...ports, access: shared.access });
  return app;
}

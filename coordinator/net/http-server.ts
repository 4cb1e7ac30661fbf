/**
 * The coordinator's web server: pages, API, live events, metrics, health. `createWebServer` gives a server
 * that does not listen yet; main attaches the crawlers' gateway to its `.server` and lets it listen.
 */
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import { type FastifyInstance, fastify } from "fastify";
import type { AuditLog } from "../flows/audit-ports.ts";
import type { CrawlScope, NameResolver } from "../flows/ports.ts";
import type { SearchReads } from "../flows/search-pages.ts";
import { type LiveState, type Overview, type OverviewReads, showOverview } from "../flows/show-overview.ts";
import type { WhoReads } from "../flows/who-reads.ts";
import type { Log } from "../log.ts";
import type { ContactSettings } from "../web/contact-page.ts";
import { overviewRegions } from "../web/overview-page.ts";
import { type Access, openAccess, refusalFor } from "./access.ts";
import { Actions } from "./actions.ts";
import { addApiRoutes } from "./api-routes.ts";
import { addContactRoutes, type ContactPorts } from "./contact-routes.ts";
import { addViews } from "./http-api.ts";
import { guard, sendError } from "./http-guard.ts";
import { LiveEvents } from "./live-events.ts";
import type { Metrics } from "./metrics.ts";
import { addOperatorApi, type OperatorApiPorts } from "./operator-api.ts";
import { RateMeter } from "./rate-meter.ts";
import { addReleaseFiles, type ReleaseFilePorts } from "./release-files.ts";
import { sendRefusal, Views } from "./views.ts";

/** Adds the routes of one part of the pages. */
export type WebPart = (to: {
  readonly app: FastifyInstance;
  readonly views: Views;
  readonly actions: Actions;
}) => void;

export interface WebSettings extends ContactSettings {
  readonly version: string;
  /** Certificate and key in PEM form; null: plain HTTP, for loopback or behind a proxy. */
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer } | null;
  /** One proxy stands in front, and says in X-Forwarded-For who asks. */
  readonly behindProxy?: boolean;
}

export interface WebPorts {
  readonly reads: WhoReads & SearchReads & OverviewReads & { ping(): Promise<void> };
  readonly resolver: NameResolver;
  readonly scope: CrawlScope;
  /** What the coordinator's memory knows now. */
  readonly live: () => LiveState;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: WebSettings;
  readonly now: () => Date;
  /** Without them, nothing can be changed over HTTP. */
  readonly operators?: Omit<OperatorApiPorts, "version" | "log">;
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
const patience = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 30_000 };

const unaudited = { record: async () => {} };

/** In the source folder and in dist alike: beside this file's folder. */
const assetsFolder = fileURLToPath(new URL("../web/assets/", import.meta.url));

export function createWebServer(ports: WebPorts): FastifyInstance {
  const { settings } = ports;
  const app = fastify({
    serverFactory: (handler) =>
      settings.tls
        ? createSecureServer({ ...patience, ...settings.tls }, handler)
        : createServer(patience, handler),
    bodyLimit: 1024,
    routerOptions: { maxParamLength: 200 },
    forceCloseConnections: true,
    // The one in front, and no other address that X-Forwarded-For may name.
    trustProxy: settings.behindProxy === true ? (_address, hop) => hop < 1 : false,
  });
  guard(app, { ...ports, settings: { version: settings.version, secure: settings.tls !== null } });
  app.register(fastifyStatic, { root: assetsFolder, prefix: "/assets/", maxAge: "1h", index: false });
  const overview = addOverview(app, ports);
  const shared = { access: ports.access ?? openAccess, version: settings.version, now: ports.now };
  const views = new Views(app, shared);
  const actions = new Actions(app, { ...shared, audit: ports.audit ?? unaudited });
  addViews(views, { ...ports, overview });
  addApiRoutes(app, views);
  for (const addPart of ports.parts ?? []) addPart({ app, views, actions });
  addEvents(app, { ...ports, access: shared.access }, overview);
  if (ports.releaseFiles) addReleaseFiles(app, { ...ports.releaseFiles, version: settings.version });
  if (ports.operators) {
    addOperatorApi(app, { ...ports.operators, log: ports.log, version: settings.version });
  }
  addContactRoutes(app, ports.contact ?? null, ports);
  addOperation(app, { ...ports, access: shared.access });
  return app;
}

type GuardedPorts = WebPorts & { readonly access: Access };

/** The overview with its rates, which are sampled from the start of the server to its end. */
function addOverview(app: FastifyInstance, ports: WebPorts): () => Promise<Overview> {
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
  return async () => {
    const live = ports.live();
    const now = ports.now();
    return await showOverview(ports.reads, live, { rates: meter.rates(live.totals, now.getTime()), now });
  };
}

function addEvents(app: FastifyInstance, ports: GuardedPorts, overview: () => Promise<Overview>): void {
  const render = async () => {
    const regions = Object.entries(overviewRegions(await overview()));
    return Object.fromEntries(regions.map(([name, region]) => [name, region.markup]));
  };
  const events = new LiveEvents(render, (error) => ports.log.warn({ error }, "no live update could be made"));
  app.addHook("preClose", async () => events.close());
  app.get("/events", { config: { boundedElsewhere: true } }, async (request, reply) => {
    const refusal = await refusalFor(ports.access, request, "read");
    if (refusal) return sendRefusal(request, reply, refusal, ports.settings);
    if (events.full) return sendError(request, reply, tooManyListeners, ports.settings);
    reply.hijack();
    reply.raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-accel-buffering": "no",
    });
    if (request.method === "HEAD") return reply.raw.end();
    return events.listen(reply.raw);
  });
}

const tooManyListeners = {
  status: 503,
  title: "Too many listeners",
  words: "As many pages as can be kept live are live. This one stays as it is; reload it to see news.",
};

function addOperation(app: FastifyInstance, ports: GuardedPorts): void {
  const { settings } = ports;
  app.get("/health", async () => ({ status: "ok", version: settings.version }));
  app.get("/ready", async (_request, reply) => {
    try {
      await ports.reads.ping();
      return { ready: true };
    } catch (error) {
      ports.log.warn({ error }, "not ready: the database does not answer");
      return reply.code(503).send({ ready: false, reason: "the database does not answer" });
    }
  });
  app.get("/metrics", async (request, reply) => {
    const refusal = await refusalFor(ports.access, request, "metrics-read");
    if (refusal) return sendRefusal(request, reply, refusal, settings);
    return reply.type(ports.metrics.registry.contentType).send(await ports.metrics.registry.metrics());
  });
}

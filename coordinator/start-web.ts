/** The coordinator's web server with all its pages. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer, Server as SecureServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { type FastifyInstance, type FastifyRequest, fastify } from "fastify";
import type { Pool } from "pg";
import type { AuditLog } from "#core/audit";
import { ConfigError } from "#core/errors";
import { hostInUrl } from "#core/ip/url-host";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import { createPool, type Database } from "#db/server-database";
import type { WebPart } from "./ask/add-operations.ts";
import { addApiRoutes } from "./ask/api-page.ts";
import { Views } from "./ask/views.ts";
import type { CoordinatorConfig } from "./config.ts";
import { createAuditLog } from "./database/audit-log.ts";
import { stateCoordinatorPlace } from "./place/crawlers/coordinator-place-store.ts";
import type { CoordinatorState } from "./place/delegation/state.ts";
import type { RegistryHost } from "./run/registry/registry-view.ts";
import type { FleetPorts } from "./tell/fleet/fleet-store.ts";
import type { Metrics } from "./tell/overview/metrics.ts";
import type { LiveState } from "./tell/overview/overview-ask.ts";
import type { ReadinessReads } from "./tell/overview/overview-reads.ts";
import type { OwnHealth } from "./tell/overview/own-health.ts";
import { addOperation } from "./tell/overview/routes.ts";
import type { SearchEngine } from "./tell/search/engine/search-engine.ts";
import { type Access, openAccess, ownerAccess, ownersRouting, viewerOf } from "./web/access.ts";
import { assets } from "./web/assets.ts";
import { compressAnswers } from "./web/compression.ts";
import { guard, refuseUnrouted, sendError } from "./web/guard.ts";
import type { OwnCertificate } from "./web/own-certificate.ts";
import { addRateLimits } from "./web/rate-limits.ts";
import { hashCrawlerKey } from "./web/secrets.ts";
import { rememberingAccess } from "./web/session-access.ts";
import { sendValidated } from "./web/validators.ts";

interface OpenWebOptions {
  readonly config: CoordinatorConfig;
  readonly database: Database;
  readonly resolver: NameResolver;
  readonly live: () => LiveState;
  /** The socket for the home's commands, or null. */
  readonly socketPath: string | null;
  readonly health: OwnHealth;
  /** Null means plain HTTP, on loopback or behind a proxy. */
  readonly certificate: OwnCertificate | null;
  /** Readiness checks use connections of their own. */
  readonly readiness: ReadinessReads;
  readonly metrics: Metrics;
  readonly searchEngine: SearchEngine;
  readonly version: string;
  readonly log: Log;
  readonly registryHost: RegistryHost | null;
  readonly state: CoordinatorState;
  readonly succession: FleetPorts["succession"];
  /** It is called before listening, so that the crawlers' path exists from the start. */
  readonly attach: (server: Server) => void;
  /** It is awaited before a change is answered, so that the change is in the journal by then. */
  readonly beforeAnswer?: () => Promise<void>;
  readonly now: () => Date;
  /** Makes the access check, which reads the database. */
  readonly access: (pool: Pool) => Access;
  /** Each room's pages, API and actions. */
  readonly rooms: (options: RoomOptions) => Promise<readonly WebPart[]>;
}

export interface RoomOptions
  extends Omit<
    OpenWebOptions,
    ("rooms" | "access" | "attach" | "beforeAnswer" | "certificate" | "readiness") | ("socketPath" | "live")
  > {
  /** The pages' connections, which are few and have short timeouts. */
  readonly pool: Pool;
  /** The coordinator's live state; null in a command. */
  readonly live: () => LiveState | null;
  /** Whether a coordinator runs on the database. If absent, this process is one. */
  readonly runs?: () => Promise<boolean>;
  /** The coordinator's connections, for long reads. */
  readonly patientPool: Pool;
  readonly access: Access;
}

const readingConnections = 4;
const readingTimeoutMs = 5000;

/** How many ports after a taken one are tried. */
const portsTried = 20;

export async function openWebServer(options: OpenWebOptions): Promise<{ web: FastifyInstance; url: string }> {
  const { config, database, log } = options;
  const tls = options.certificate?.pair ?? null;
  // Pages have few connections of their own with short timeouts, so that they never starve the crawl.
  const pool = createPool(database.url, readingConnections, readingTimeoutMs);
  const remembering = rememberingAccess(options.access(pool), {
    silence: () => options.health.facts().silent?.words ?? null,
    look: async () => await options.health.silence(),
    hash: hashCrawlerKey,
    nowMs: () => performance.now(),
  });
  const access = ownerAccess(remembering, false);
  const web = createWebServer({
    access,
    ...(options.beforeAnswer === undefined ? {} : { beforeAnswer: options.beforeAnswer }),
    audit: createAuditLog(pool),
    reads: options.readiness,
    health: options.health,
    live: options.live,
    metrics: options.metrics,
    log,
    now: options.now,
    parts: await options.rooms({ ...options, patientPool: database.pool, pool, access }),
    settings: {
      version: options.version,
      tls,
      behindProxy: config.behindProxy,
      publicUrl: config.publicUrl,
    },
  });
  web.addHook("onClose", async () => await pool.end());
  let socket: Server | null = null;
  const pagesServer = config.listen.pagesPort === null ? null : serverOf(tls, web.routing);
  web.addHook("preClose", async () => {
    for (const server of [pagesServer, socket]) {
      server?.close();
      server?.closeAllConnections();
    }
  });
  try {
    options.attach(web.server as Server);
    await listen(web, config.listen);
    if (options.socketPath !== null) socket = await listenForOwner(web, options.socketPath, log);
    if (pagesServer !== null) await listenForPages(pagesServer, config.listen, log);
    const url = urlOf(web, config);
    for (const server of [web.server, pagesServer])
      if (server instanceof SecureServer) options.certificate?.serve(server);
    await stateCoordinatorPlace(
      database.pool,
      {
        webUrl: config.publicUrl ?? url,
        certificatePin: options.certificate?.pin ?? null,
        hasPublicUrl: config.publicUrl !== null,
        domainSets: config.domainSets,
        backupWarnHours: config.backup.warnAfterHours || null,
      },
      options.now(),
    );
    return { web, url };
  } catch (error) {
    await web.close();
    throw error;
  }
}

function urlOf(web: FastifyInstance, config: CoordinatorConfig): string {
  const { port } = web.server.address() as AddressInfo;
  const host = hostInUrl(config.listen.host);
  return `${config.tls ? "https" : "http"}://${host}:${port}`;
}

/**
 * A whole fleet may connect within a second, and a refused crawler retries only after seconds. Node accepts one
 * connection per event-loop turn, some hundreds a second under load, so crawlers in a longer queue would time out
 * anyway.
 */
const backlog = 4096;

async function listen(web: FastifyInstance, at: CoordinatorConfig["listen"]): Promise<void> {
  await atFreePort(at, async (port) => void (await web.listen({ host: at.host, port, backlog })));
}

/** Returns the configured port, or the next free one if it is taken. It must be known before any URL is made. */
export async function portToListenAt(at: CoordinatorConfig["listen"]): Promise<number> {
  return await atFreePort(at, async (port) => {
    const server = createServer().listen(port, at.host);
    try {
      await once(server, "listening");
      return (server.address() as AddressInfo).port;
    } finally {
      server.close();
    }
  });
}

async function atFreePort<Found>(
  { host, port }: CoordinatorConfig["listen"],
  listenAt: (port: number) => Promise<Found>,
): Promise<Found> {
  for (let tried = 0; ; tried += 1) {
    try {
      return await listenAt(port === 0 ? 0 : port + tried);
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (!taken || tried >= portsTried || port + tried >= 65_535) {
        throw new ConfigError([`listen: ${host}:${port}: ${(error as Error).message}`]);
      }
    }
  }
}

/** Maximum length of a socket path that Linux, macOS and the BSDs all accept. */
const mostSocketPath = 103;

/**
 * Listens for commands, which only the home's owner can send. When that is impossible, the coordinator starts without the
 * socket and commands use the database. A stale socket is removed; a socket that answers belongs to another coordinator.
 */
async function listenForOwner(web: FastifyInstance, path: string, log: Log): Promise<Server | null> {
  const server = createServer(patience, ownersRouting(web.routing));
  try {
    if (Buffer.byteLength(path) > mostSocketPath) throw new Error(`longer than ${mostSocketPath} bytes`);
    if (await answersAt(path)) throw new Error("another coordinator of this home has it");
    await rm(path, { force: true });
    // umask applies while listen creates the path, so others can never connect.
    const usualMask = process.umask(0o177);
    try {
      server.listen({ path });
    } finally {
      process.umask(usualMask);
    }
    await once(server, "listening");
    return server;
  } catch (error) {
    server.close();
    log.warn({ path, reason: (error as Error).message }, "commands go by the database, not by a socket");
    return null;
  }
}

async function answersAt(path: string): Promise<boolean> {
  const socket = connect({ path });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/**
 * Gives the pages an accept queue of their own, unaffected by connecting crawlers: Node accepts one connection of each queue
 * per event-loop turn.
 */
async function listenForPages(
  server: Server,
  { host, pagesPort }: CoordinatorConfig["listen"],
  log: Log,
): Promise<void> {
  server.listen({ host, port: pagesPort });
  try {
    await once(server, "listening");
  } catch (error) {
    throw new ConfigError([`listen.pagesPort: ${host}:${pagesPort}: ${(error as Error).message}`]);
  }
  log.info({ host, port: (server.address() as AddressInfo).port }, "pages have a port of their own, too");
}

interface WebSettings {
  readonly version: string;
  /** PEM, or null for plain HTTP (on loopback or behind a proxy). */
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer } | null;
  /** Whether exactly one proxy is in front, which sets X-Forwarded-For. */
  readonly behindProxy?: boolean;
  /** The pages' configured address. */
  readonly publicUrl?: string | null;
  /** Time limit for a form to arrive. Default: 10 s. */
  readonly bodyTimeoutMs?: number;
}

export interface WebPorts {
  readonly reads: ReadinessReads;
  readonly live: RoomOptions["live"];
  readonly health: OwnHealth;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly settings: WebSettings;
  readonly now: () => Date;
  /** If absent, nobody can sign in and the pages are public. */
  readonly access?: Access;
  /** It is awaited before a change is answered. */
  readonly beforeAnswer?: () => Promise<void>;
  /** Records changes. If absent, nothing is recorded. */
  readonly audit?: Pick<AuditLog, "record">;
  readonly parts?: readonly WebPart[];
}

/** How long a request may take to arrive, and how long an idle connection may stay. */
const patience = {
  ...{ headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 30_000 },
  // Node's default of 30 s would enforce these limits far too late.
  connectionsCheckingInterval: 2000,
};

function serverOf(tls: WebSettings["tls"], handler: RequestListener): Server {
  return tls ? createSecureServer({ ...patience, ...tls }, handler) : createServer(patience, handler);
}

const unaudited = { record: async () => {} };

/** Imported when needed, because it imports every room's operations. */
const describeApi = async () => (await import("./open-api.ts")).describeApi();

export function createWebServer(ports: WebPorts): FastifyInstance {
  const { settings } = ports;
  const guarded = { version: settings.version, secure: settings.tls !== null };
  const app = fastify({
    serverFactory: (handler) => serverOf(settings.tls, handler),
    bodyLimit: 1024,
    routerOptions: { maxParamLength: 200 },
    forceCloseConnections: true,
    frameworkErrors: (error, request, reply) => {
      refuseUnrouted(error, { request, reply, settings: guarded });
    },
    // Trusts only the proxy in front, whatever X-Forwarded-For contains.
    trustProxy: settings.behindProxy === true ? (_address, hop) => hop < 1 : false,
  });
  const access = ports.access ?? openAccess;
  const knowing = { ...ports, access, viewerOf: (request: FastifyRequest) => viewerOf(access, request) };
  compressAnswers(app);
  guard(app, {
    ...{ ...knowing, settings: guarded },
    ...(settings.bodyTimeoutMs === undefined ? {} : { bodyTimeoutMs: settings.bodyTimeoutMs }),
  });
  addRateLimits(app, settings);
  if (ports.beforeAnswer) answerAfter(app, ports.beforeAnswer);
  addAssets(app, settings);
  addRobots(app);
  const shared = { access, version: settings.version, now: ports.now };
  const views = new Views(app, shared);
  const deeds = { ...shared, audit: ports.audit ?? unaudited };
  addApiRoutes(app, views, describeApi, settings.publicUrl ?? null);
  for (const addPart of ports.parts ?? []) addPart({ app, views, deeds, access });
  addOperation(app, { ...ports, access: shared.access });
  return app;
}

/** Answers changes only after `beforeAnswer`, whose failure becomes the answer. Reads are answered at once. */
function answerAfter(app: FastifyInstance, beforeAnswer: () => Promise<void>): void {
  const waited = new WeakSet<FastifyRequest>();
  app.addHook("onSend", async (request) => {
    if (request.method === "GET" || request.method === "HEAD" || waited.has(request)) return;
    waited.add(request);
    await beforeAnswer();
  });
}

function addAssets(app: FastifyInstance, settings: { readonly version: string }): void {
  app.get("/assets/:name", (request: FastifyRequest<{ Params: { name: string } }>, reply) => {
    const asset = assets().get(request.params.name);
    if (asset === undefined) return sendError(request, reply, noAsset, settings);
    const isNamed = (request.query as { v?: unknown }).v === asset.digest;
    return sendValidated(request, reply, {
      ...asset,
      tag: `"${asset.digest}"`,
      lastModified: null,
      cacheControl: isNamed ? "public, max-age=31536000, immutable" : "no-cache",
    });
  });
}

/**
 * The robots.txt for other crawlers (RFC 9309). The description of our crawler is public; other pages are costly and useless
 * to an index.
 */
const robots = `User-agent: *
Allow: /about-crawler
Allow: /assets/
Allow: /.well-known/
Disallow: /
`;

function addRobots(app: FastifyInstance): void {
  app.get("/robots.txt", (_request, reply) =>
    reply.header("cache-control", "public, max-age=86400").type("text/plain; charset=utf-8").send(robots),
  );
}

const noAsset = { status: 404, title: "No such page", words: "Nothing is at this address." };

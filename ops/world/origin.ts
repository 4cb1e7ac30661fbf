/**
 * The web servers of all sites: one HTTP/1.1 server that selects the site by the Host header. It listens on loopback
 * and takes connections directly from the crawlers' proxies. site-plan.ts plans what a path answers. This file adds
 * status codes, validators (RFC 9110 section 13), compression and the site's own delay.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { LRUCache } from "lru-cache";
import type { WorldSite } from "./model.ts";
import { type Furniture, pageHtml, siteFurniture } from "./page-html.ts";
import { WorldConnection } from "./proxy.ts";
import { hashText } from "./seeded-random.ts";
import { type PlannedPage, planSite, type SitePlan } from "./site-plan.ts";
import { pageAt, type WorldState } from "./world-state.ts";

/** How many plans are cached. Recreating one takes well under a millisecond. */
const plansKept = 4000;

interface RunningOrigin {
  readonly port: number;
  readonly requestLog: RequestLog;
  /** Serves a connection that did not come through the port. */
  readonly connect: (connection: WorldConnection) => void;
  close(): Promise<void>;
}

export async function startOrigin(state: WorldState): Promise<RunningOrigin> {
  const requestLog = new RequestLog();
  const plans = new LRUCache<string, SitePlan>({ max: plansKept });
  const planOf = (site: WorldSite): SitePlan => {
    const plan = plans.get(site.host) ?? planSite(state.world, site);
    plans.set(site.host, plan);
    return plan;
  };
  const server = createServer({ keepAliveTimeout: 30_000 }, (request, response) => {
    const site = siteAsked(state, request);
    const answer = site === null ? noSuchSite : answerOf(planOf(site), request, state);
    log(requestLog, request, answer.status);
    state.queue.at(performance.now() + (site?.serverDelayMs ?? 0), () => send(request, response, answer));
  });
  const port = await listen(server);
  return {
    port,
    requestLog,
    connect: (connection) => void server.emit("connection", connection),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Entries are large, and only requested while a site's pages are crawled. */
const furnitures = new LRUCache<string, Furniture>({ max: 300 });

function furnitureOf({ site, pages }: SitePlan): Furniture {
  const known = furnitures.get(site.host);
  if (known) return known;
  const furniture = siteFurniture(hashText(pages[0]?.seed ?? 0, site.host));
  furnitures.set(site.host, furniture);
  return furniture;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Created only when it is sent, since HEAD and 304 need no body. */
  readonly body: () => string;
}

const plain = { "content-type": "text/plain; charset=utf-8" };
const noSuchSite: Answer = { status: 404, headers: plain, body: () => "no such site here\n" };

/** The site in the Host header. A connection to another site's address finds nothing. */
function siteAsked(state: WorldState, request: IncomingMessage): WorldSite | null {
  const host = (request.headers.host ?? "").replace(/:\d+$/, "").replace(/\.$/, "").toLowerCase();
  const site = state.siteByHost.get(host) ?? null;
  const connection = request.socket as unknown;
  const isElsewhere =
    connection instanceof WorldConnection && site?.addresses.includes(connection.address) !== true;
  return isElsewhere ? null : site;
}

function answerOf(plan: SitePlan, request: IncomingMessage, state: WorldState): Answer {
  if (request.method !== "GET" && request.method !== "HEAD")
    return { status: 405, headers: { ...plain, allow: "GET, HEAD" }, body: () => "GET and HEAD only\n" };
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  if (path === "/robots.txt" && plan.robots !== null)
    return { status: 200, headers: plain, body: () => plan.robots ?? "" };
  if (path === "/sitemap.xml" && plan.hasSitemap) return sitemapOf(plan);
  const known = plan.byPath.get(path);
  if (known?.type === "redirect") {
    return {
      status: known.status,
      headers: { ...plain, location: known.to },
      body: () => `moved to ${known.to}\n`,
    };
  }
  if (known) return pageAnswer(plan, known.page, { request, state });
  const html = { "content-type": "text/html; charset=utf-8" };
  return {
    status: 404,
    headers: html,
    body: () => `<!doctype html><title>Not found</title><h1>Not found</h1>\n`,
  };
}

interface Asked {
  readonly request: IncomingMessage;
  readonly state: WorldState;
}

function pageAnswer(plan: SitePlan, planned: PlannedPage, { request, state }: Asked): Answer {
  const version = state.changes?.at(plan.site.host, planned.path, Date.now());
  const page = version === undefined ? planned : pageAt(planned, version);
  const hash = hashText(page.seed, `${plan.site.host}${page.path}`);
  const etag = `"${hash.toString(16)}"`;
  const changedAtMs = version?.changedAtMs ?? Date.UTC(2026, 0, 1) + (hash % (200 * 86_400)) * 1000;
  const lastModified = new Date(changedAtMs).toUTCString();
  const headers = {
    "content-type": "text/html; charset=utf-8",
    etag,
    "last-modified": lastModified,
    vary: "accept-encoding",
  };
  if (isUnchanged(request, etag, lastModified)) return { status: 304, headers, body: () => "" };
  return { status: 200, headers, body: () => pageHtml(plan, page, furnitureOf(plan)) };
}

/** If-None-Match takes precedence over If-Modified-Since (RFC 9110 section 13.2.2). */
function isUnchanged(request: IncomingMessage, etag: string, lastModified: string): boolean {
  const tags = request.headers["if-none-match"];
  if (tags !== undefined)
    return tags === "*" || tags.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
  const since = request.headers["if-modified-since"];
  return since !== undefined && Date.parse(since) >= Date.parse(lastModified);
}

function sitemapOf(plan: SitePlan): Answer {
  const urls = plan.pages.map((page) => `<url><loc>http://${plan.site.host}${page.path}</loc></url>`);
  return {
    status: 200,
    headers: { "content-type": "application/xml" },
    body: () =>
      `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${urls.join("\n")}\n</urlset>\n`,
  };
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  if (response.destroyed) return;
  if (request.method === "HEAD" || answer.status === 304) {
    response.writeHead(answer.status, answer.headers).end();
    return;
  }
  const body = Buffer.from(answer.body(), "utf8");
  const gzip = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? "")) && body.length > 600;
  const sent = gzip ? gzipSync(body, { level: 1 }) : body;
  response.writeHead(answer.status, {
    ...answer.headers,
    "content-length": sent.length,
    ...(gzip ? { "content-encoding": "gzip" } : {}),
  });
  response.end(sent);
}

function log(requestLog: RequestLog, request: IncomingMessage, status: number): void {
  const connection = request.socket as unknown;
  requestLog.add({
    host: (request.headers.host ?? "").slice(0, 253),
    path: (request.url ?? "").slice(0, 2048),
    method: request.method ?? "",
    status,
    atMs: Date.now(),
    crawlerIndex: connection instanceof WorldConnection ? connection.crawlerIndex : null,
    userAgent: (request.headers["user-agent"] ?? "").slice(0, 200),
  });
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

/** The latest requests to the origins, which show whether a crawl was polite. */

interface LoggedRequest {
  readonly host: string;
  readonly path: string;
  readonly method: string;
  readonly status: number;
  /** When the request's head had arrived, in ms since the epoch. */
  readonly atMs: number;
  /** The crawler whose proxy was used. Null for a direct connection to the origin's port. */
  readonly crawlerIndex: number | null;
  readonly userAgent: string;
}

/** A ring buffer that drops the oldest requests when full. */
export class RequestLog {
  readonly #limit: number;
  readonly #ring: LoggedRequest[] = [];
  #total = 0;

  constructor(limit = 200_000) {
    this.#limit = limit;
  }

  add(request: LoggedRequest): void {
    this.#ring[this.#total % this.#limit] = request;
    this.#total++;
  }

  /** Counts all requests, including dropped ones. */
  get total(): number {
    return this.#total;
  }

  /** Returns the requests that are kept, oldest first. */
  entries(): LoggedRequest[] {
    if (this.#total <= this.#limit) return [...this.#ring];
    const split = this.#total % this.#limit;
    return [...this.#ring.slice(split), ...this.#ring.slice(0, split)];
  }
}

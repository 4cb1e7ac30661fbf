/** Opens what a running crawler is looked at and steered through: the control socket, and the page if it is wanted. */

import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { CrawlerLog } from "../core/log.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { endServer, openControl, reply, replyReport, type Steered, serverBounds } from "./control-server.ts";
import { pagePolicy, refreshSeconds, statusPage } from "./status-page.ts";
import type { StatusReport } from "./status-report.ts";

export async function openStatus(of: {
  readonly config: Pick<CrawlerConfig, "home" | "status">;
  readonly crawler: Steered;
  readonly log: CrawlerLog;
}): Promise<{ close(): Promise<void> }> {
  const { config, crawler, log } = of;
  const { port } = config.status;
  const page =
    port === 0 ? null : new PageServer({ port, report: () => crawler.report(), steered: crawler, log });
  const told: Steered = {
    report: () => ({ ...crawler.report(), pageUrl: page?.url ?? null }),
    pause: (reason) => crawler.pause(reason),
    resume: () => crawler.resume(),
    drain: (reason) => crawler.drain(reason),
    renewSigningKey: () => crawler.renewSigningKey(),
  };
  const control = await openControl({ home: config.home, crawler: told, log });
  return {
    close: async () => {
      await Promise.all([control.close(), page?.close()]);
    },
  };
}

// The local page, on loopback alone. Whoever is logged in on the machine may look; pausing and resuming takes the key in the
// link that the control socket tells, which only the folder's owner can ask.
// A page of the web that the administrator's browser has open cannot read it: names that lead to 127.0.0.1 (DNS
// rebinding) fail the check of the Host header, and no answer may be used by another origin.

interface PageSettings {
  readonly port: number;
  readonly report: () => StatusReport;
  /** What can be paused and resumed here; left out: the page is to look at. */
  readonly steered?: Pick<Steered, "pause" | "resume">;
  readonly log: CrawlerLog;
  /** A port that is taken (by the process before this one, say) is asked for again after this. */
  readonly retryMs?: number;
}

/** A port that is taken for so many tries belongs to another crawler: the next one is tried. */
const triesPerPort = 2;
const mostPorts = 20;
const mostFormBytes = 1024;
const formType = "application/x-www-form-urlencoded";

const loopback = "127.0.0.1";
const mostConnections = 32;
const defaultRetryMs = 10_000;

const headers = {
  "content-security-policy": pagePolicy(false),
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

export class PageServer {
  readonly #settings: PageSettings;
  readonly #server: Server;
  readonly #key = randomBytes(18).toString("base64url");
  #retry: NodeJS.Timeout | undefined;
  #isTold = false;
  #failures = 0;

  constructor(settings: PageSettings) {
    this.#settings = settings;
    this.#server = createServer(serverBounds, (request, response) => this.#answer(request, response));
    this.#server.maxConnections = mostConnections;
    this.#server.on("error", (error) => this.#onError(error)).unref();
    this.#listen();
  }

  /** Null while it does not listen. */
  get port(): number | null {
    return (this.#server.address() as AddressInfo | null)?.port ?? null;
  }

  /** With the key; null while it does not listen. */
  get url(): string | null {
    return this.port === null ? null : `http://${loopback}:${this.port}/?key=${this.#key}`;
  }

  async close(): Promise<void> {
    clearTimeout(this.#retry);
    await endServer(this.#server);
  }

  #listen(): void {
    const { port } = this.#settings;
    const further = Math.floor(this.#failures / triesPerPort) % mostPorts;
    this.#server.listen(port === 0 ? 0 : Math.min(65_535, port + further), loopback);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    const { report, steered } = this.#settings;
    const { pathname, searchParams } = new URL(request.url ?? "/", `http://${loopback}`);
    const deed = deeds[pathname];
    if (!isOurs(request.headers.host, this.port)) {
      reply(response, 421, `this page is at http://${loopback}:${this.port}/ and under no other name`);
    } else if (request.method === "POST" && deed !== undefined && steered !== undefined) {
      void this.#steer(() => deed(steered), request, response);
    } else if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      reply(response, 405, "this page is to look at: pause, resume and drain are commands");
    } else if (pathname === "/status.json") {
      replyReport(response, report());
    } else if (pathname === "/") {
      const isStill = searchParams.has("still");
      const key = steered !== undefined && this.#isKey(searchParams.get("key")) ? this.#key : null;
      if (!isStill) response.setHeader("refresh", String(refreshSeconds));
      response.setHeader("content-security-policy", pagePolicy(key !== null));
      response.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
      response.end(statusPage(report(), { isStill, key }));
    } else reply(response, 404, "there is / and /status.json");
  }

  #isKey(given: string | null): boolean {
    const [theirs, ours] = [Buffer.from(given ?? ""), Buffer.from(this.#key)];
    return theirs.length === ours.length && timingSafeEqual(theirs, ours);
  }

  /** By a form of this page, which has the key: no other site's page knows it. */
  async #steer(deed: () => void, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const form = await formOf(request);
      if (form === null || !this.#isKey(form.get("key"))) {
        reply(response, 403, "pausing and resuming takes the link that `status` prints");
        return;
      }
      deed();
      response.writeHead(303, { location: `/?key=${this.#key}`, "cache-control": "no-store" }).end();
    } catch (error) {
      this.#settings.log.warn({ error }, "what was asked on the local page failed");
      if (!response.headersSent) reply(response, 500, error instanceof Error ? error.message : String(error));
    }
  }

  #onError(error: Error): void {
    const { log, port, retryMs = defaultRetryMs } = this.#settings;
    if (!this.#isTold) log.warn({ port, error }, "the local status page cannot be served; it is tried again");
    this.#isTold = true;
    this.#failures += 1;
    this.#retry = setTimeout(() => this.#listen(), retryMs).unref();
  }
}

type PageDeed = (crawler: Pick<Steered, "pause" | "resume">) => void;

const deeds: Readonly<Record<string, PageDeed>> = {
  "/pause": (crawler) => crawler.pause("on the local page"),
  "/resume": (crawler) => crawler.resume(),
};

/** Null: it is no form, or a large one. */
async function formOf(request: IncomingMessage): Promise<URLSearchParams | null> {
  if (request.headers["content-type"] !== formType) return null;
  let text = "";
  for await (const piece of request) {
    text += String(piece);
    if (text.length > mostFormBytes) return null;
  }
  return new URLSearchParams(text);
}

/** With the port that browsers name; 80 they leave out. */
function isOurs(host: string | undefined, port: number | null): boolean {
  const names = [loopback, "localhost"];
  return names.some((name) => host === `${name}:${port}` || (port === 80 && host === name));
}

/** Opens what a running crawler is looked at and steered through: the control socket, and the page if it is wanted. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { CrawlerLog } from "../core/log.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { endServer, openControl, reply, replyReport, type Steered, serverBounds } from "./control-server.ts";
import { pagePaths, pagePolicy, refreshSeconds, statusPage } from "./status-page.ts";
import type { StatusReport } from "./status-report.ts";

export async function openStatus(of: {
  readonly config: Pick<CrawlerConfig, "home" | "status">;
  readonly crawler: Steered;
  readonly log: CrawlerLog;
}): Promise<{ close(): Promise<void> }> {
  const { config, crawler, log } = of;
  const control = await openControl({ home: config.home, crawler, log });
  const { port } = config.status;
  const page = port === null ? null : new PageServer({ port, report: () => crawler.report(), log });
  return {
    close: async () => {
      await Promise.all([control.close(), page?.close()]);
    },
  };
}

// The local page, where `[status] port` of the settings asks for one: loopback alone, to look at and nothing else.
// A page of the web that the administrator's browser has open cannot read it: names that lead to 127.0.0.1 (DNS
// rebinding) fail the check of the Host header, and no answer may be used by another origin.

interface PageSettings {
  readonly port: number;
  readonly report: () => StatusReport;
  readonly log: CrawlerLog;
  /** A port that is taken (by the process before this one, say) is asked for again after this. */
  readonly retryMs?: number;
}

const loopback = "127.0.0.1";
const mostConnections = 32;
const defaultRetryMs = 10_000;

const headers = {
  "content-security-policy": pagePolicy,
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

export class PageServer {
  readonly #settings: PageSettings;
  readonly #server: Server;
  #retry: NodeJS.Timeout | undefined;
  #isTold = false;

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

  async close(): Promise<void> {
    clearTimeout(this.#retry);
    await endServer(this.#server);
  }

  #listen(): void {
    this.#server.listen(this.#settings.port, loopback);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    const { report } = this.#settings;
    if (!isOurs(request.headers.host, this.port)) {
      reply(response, 421, `this page is at http://${loopback}:${this.port}/ and under no other name`);
    } else if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      reply(response, 405, "this page is to look at: pause, resume and drain are commands");
    } else if (request.url === "/status.json") {
      replyReport(response, report());
    } else if (request.url === pagePaths.live || request.url === pagePaths.still) {
      const isStill = request.url === pagePaths.still;
      if (!isStill) response.setHeader("refresh", String(refreshSeconds));
      response.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
      response.end(statusPage(report(), isStill));
    } else reply(response, 404, "there is / and /status.json");
  }

  #onError(error: Error): void {
    const { log, port, retryMs = defaultRetryMs } = this.#settings;
    if (!this.#isTold) log.warn({ port, error }, "the local status page cannot be served; it is tried again");
    this.#isTold = true;
    this.#retry = setTimeout(() => this.#listen(), retryMs).unref();
  }
}

/** With the port that browsers name; 80 they leave out. */
function isOurs(host: string | undefined, port: number | null): boolean {
  const names = [loopback, "localhost"];
  return names.some((name) => host === `${name}:${port}` || (port === 80 && host === name));
}

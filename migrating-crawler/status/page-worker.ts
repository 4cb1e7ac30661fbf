/**
 * Serves the local page on loopback in a thread (open-status.ts explains why). Anyone logged in on the machine may view it.
 * Pausing and resuming require the key in the link from the control socket, which only the folder's owner can read.
 *
 * A web page in the administrator's browser can neither read nor do anything here. Names that resolve to 127.0.0.1 (DNS
 * rebinding) fail the Host check, which comes first. Requests marked as cross-site (Sec-Fetch-Site, Origin) are refused. No
 * other origin may use an answer.
 */
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { guardedServer, reply, replyJson, targetOf } from "./control-server.ts";
import { pagePolicy, refreshSeconds, statusPage } from "./status-page.ts";
import type { StatusReport } from "./status-report.ts";

export interface PageThreadData {
  readonly port: number;
  /** The key that pausing and resuming require. Null makes the page read-only. */
  readonly key: string | null;
  readonly retryMs: number;
}

export type PageDeed = "pause" | "resume";

export type FromPageThread =
  | { readonly type: "report" | PageDeed }
  | { readonly type: "listening"; readonly port: number }
  | { readonly type: "problem"; readonly words: string; readonly reason: string };

/** Answers follow the order of the messages. `fault` is an error message, and `report` is JSON if it was requested. */
export interface ToPageThread {
  readonly fault: string | null;
  readonly report: string;
}

const loopback = "127.0.0.1";
/** If a port is in use for this many tries, it belongs to another crawler, and the next port is tried. */
const triesPerPort = 2;
const mostPorts = 20;
const mostConnections = 32;
const mostFormBytes = 1024;
const formType = "application/x-www-form-urlencoded";
/** The crawl makes at most one report in this time, whatever the number of readers. */
const reportMs = 1000;

const headers = {
  "content-security-policy": pagePolicy(false),
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  // With no-referrer, browsers would send this page's own form with `Origin: null`.
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

serve(parentPort!, workerData as PageThreadData);

function serve(parent: MessagePort, { port, key, retryMs }: PageThreadData): void {
  const waiting: ((answer: ToPageThread) => void)[] = [];
  parent.on("message", (answer: ToPageThread) => waiting.shift()?.(answer));
  const ask = (message: FromPageThread) =>
    new Promise<ToPageThread>((resolve) => {
      waiting.push(resolve);
      parent.postMessage(message);
    });
  let known: { readonly atMs: number; readonly report: Promise<string> } | null = null;
  const server = guardedServer({
    mostConnections,
    answer: (request, response) => answer(request, response, page),
    onFault: (error) =>
      void ask({ type: "problem", words: "a look at the local status page failed", reason: String(error) }),
  });
  const page: Page = {
    key,
    port: () => (server.address() as AddressInfo | null)?.port ?? null,
    report: () => {
      if (known === null || performance.now() - known.atMs > reportMs)
        known = { atMs: performance.now(), report: ask({ type: "report" }).then(reportIn) };
      return known.report;
    },
    steer: async (deed) => {
      const { fault } = await ask({ type: deed });
      known = null;
      if (fault !== null) throw new Error(fault);
    },
  };
  let failures = 0;
  const listen = () => {
    const further = Math.floor(failures / triesPerPort) % mostPorts;
    server.listen(port === 0 ? 0 : Math.min(65_535, port + further), loopback);
  };
  server.on("listening", () => void ask({ type: "listening", port: page.port()! }));
  server.on("error", (error) => {
    const words = "the local status page cannot be served; it is tried again";
    if (failures === 0) void ask({ type: "problem", words, reason: error.message });
    failures += 1;
    setTimeout(listen, retryMs);
  });
  listen();
}

function reportIn({ fault, report }: ToPageThread): string {
  if (fault !== null) throw new Error(fault);
  return report;
}

interface Page {
  readonly key: string | null;
  readonly port: () => number | null;
  readonly report: () => Promise<string>;
  readonly steer: (deed: PageDeed) => Promise<void>;
}

async function answer(request: IncomingMessage, response: ServerResponse, page: Page): Promise<void> {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (!isOurs(request, page.port())) {
    return reply(response, 421, `this page is at http://${loopback}:${page.port()}/ and under no other name`);
  }
  if (!isOfThisSite(request))
    return reply(response, 403, "this page is for no other page's use: open it by its address");
  const { path, query } = targetOf(request);
  const deed = deeds.get(path);
  if (request.method === "POST" && deed !== undefined && page.key !== null) {
    const form = await formOf(request);
    if (form === null || !isKey(form.get("key"), page.key))
      return reply(response, 403, "pausing and resuming takes the link that `status` prints");
    await page.steer(deed);
    response.writeHead(303, { location: `/?key=${page.key}`, "cache-control": "no-store" }).end();
  } else if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    reply(response, 405, "this page is to look at: pause, resume and drain are commands");
  } else if (path === "/status.json") {
    replyJson(response, await page.report());
  } else if (path === "/") {
    const isStill = query.has("still");
    const key = page.key !== null && isKey(query.get("key"), page.key) ? page.key : null;
    const text = statusPage(JSON.parse(await page.report()) as StatusReport, { isStill, key });
    if (!isStill) response.setHeader("refresh", String(refreshSeconds));
    response.setHeader("content-security-policy", pagePolicy(key !== null));
    response
      .writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" })
      .end(text);
  } else reply(response, 404, "there is / and /status.json");
}

const deeds: ReadonlyMap<string, PageDeed> = new Map([
  ["/pause", "pause"],
  ["/resume", "resume"],
]);

/** Requires exactly one Host header, with the port, which browsers omit for 80. */
function isOurs({ headersDistinct }: IncomingMessage, port: number | null): boolean {
  const [host, ...more] = headersDistinct.host ?? [];
  const names = [loopback, "localhost"];
  return (
    more.length === 0 && names.some((name) => host === `${name}:${port}` || (port === 80 && host === name))
  );
}

/** A client that sends neither header is not a browser that a site could misuse. */
function isOfThisSite({
  headers: { host, origin, "sec-fetch-site": site = "none" },
}: IncomingMessage): boolean {
  return (site === "none" || site === "same-origin") && (origin === undefined || origin === `http://${host}`);
}

function isKey(theirs: string | null, ours: string): boolean {
  const [one, other] = [Buffer.from(theirs ?? ""), Buffer.from(ours)];
  return one.length === other.length && timingSafeEqual(one, other);
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams | null> {
  if (request.headers["content-type"] !== formType) return null;
  let text = "";
  for await (const piece of request) {
    text += String(piece);
    if (text.length > mostFormBytes) return null;
  }
  return new URLSearchParams(text);
}

/** Opens the control socket of a running crawler and, if wanted, its local page. */

import { randomBytes } from "node:crypto";
import type { Worker } from "node:worker_threads";
import { timerMs } from "#core/timer-ms";
import type { CrawlerLog } from "../core/log.ts";
import { startThread } from "../core/thread.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { openControl, type Steered } from "./control-server.ts";
import type { FromPageThread, PageDeed, PageThreadData, ToPageThread } from "./page-worker.ts";
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
  const control = await openControl({ home: config.home, crawler, log, pageUrl: () => page?.url ?? null });
  return {
    close: async () => {
      await Promise.all([control.close(), page?.close()]);
    },
  };
}

// Serves the local page from its own thread. Anyone who can reach loopback can send requests, including any web page in the
// administrator's browser, and this must not cost the crawl more than one report a second. An uncaught error or endless loop
// affects only that thread, which is restarted. Memory is shared (V8 ends the whole process when a thread's heap is full), so
// requests, reports and connections are limited. A separate process would isolate the page better, but Node's permission model
// forbids starting one.

interface PageSettings {
  readonly port: number;
  readonly report: () => StatusReport;
  /** What the page can pause and resume. If absent, the page is read-only. */
  readonly steered?: Pick<Steered, PageDeed>;
  readonly log: CrawlerLog;
  /** A port that is in use (perhaps by the previous process) is tried again after this time. */
  readonly retryMs?: number;
}

const defaultRetryMs = 10_000;
/** The wait before an ended thread is replaced, doubled each time. */
const restart = { firstMs: 1000, mostMs: 300_000 };

export class PageServer {
  readonly #settings: PageSettings;
  readonly #key = randomBytes(18).toString("base64url");
  #thread: Worker | null = null;
  #port: number | null = null;
  #again: NodeJS.Timeout | undefined;
  #ends = 0;
  #closed = false;

  constructor(settings: PageSettings) {
    this.#settings = settings;
    this.#start();
  }

  get port(): number | null {
    return this.#port;
  }

  get url(): string | null {
    return this.#port === null ? null : `http://127.0.0.1:${this.#port}/?key=${this.#key}`;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#port = null;
    clearTimeout(this.#again);
    await this.#thread?.terminate();
  }

  #start(): void {
    const { port, steered, log, retryMs = defaultRetryMs } = this.#settings;
    const key = steered === undefined ? null : this.#key;
    const data: PageThreadData = { port, key, retryMs };
    const thread = startThread({ beside: import.meta.url, name: "page-worker", data });
    this.#thread = thread;
    thread.on("message", (message: FromPageThread) => thread.postMessage(this.#take(message)));
    thread.on("error", (error) => log.warn({ error }, "the local status page has failed"));
    thread.on("exit", () => this.#onExit());
    thread.unref();
  }

  #onExit(): void {
    this.#port = null;
    if (this.#closed) return;
    const waitMs = Math.min(restart.mostMs, restart.firstMs * 2 ** Math.min(this.#ends, 30));
    this.#ends += 1;
    this.#again = setTimeout(() => this.#start(), timerMs(waitMs)).unref();
  }

  #take(message: FromPageThread): ToPageThread {
    const { report, steered, log } = this.#settings;
    if (message.type === "listening") this.#port = message.port;
    if (message.type === "problem") log.warn({ port: this.#port, reason: message.reason }, message.words);
    try {
      if (message.type === "pause") steered?.pause("on the local page");
      if (message.type === "resume") steered?.resume();
      return { fault: null, report: message.type === "report" ? JSON.stringify(report()) : "" };
    } catch (error) {
      return { fault: error instanceof Error ? error.message : String(error), report: "" };
    }
  }
}

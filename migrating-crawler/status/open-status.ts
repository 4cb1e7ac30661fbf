/** Opens what a running crawler is looked at and steered through: the control socket, and the page if it is wanted. */

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

// The local page is served by a thread of its own. Whoever can reach loopback can send it anything, which any web page in
// the administrator's browser can; nothing of that is to cost the crawl more than a report a second. An error that nobody
// caught or an endless loop over there ends or holds up that thread alone, and an ended one is started again. Memory is the
// process's (V8 ends all of it when a thread's heap is full), and so requests, reports and connections are bounded there. A
// process of its own would bound that, too, but Node's permission model lets a crawler start none.

interface PageSettings {
  readonly port: number;
  readonly report: () => StatusReport;
  /** What can be paused and resumed here; left out: the page is to look at. */
  readonly steered?: Pick<Steered, PageDeed>;
  readonly log: CrawlerLog;
  /** A port that is taken (by the process before this one, say) is asked for again after this. */
  readonly retryMs?: number;
}

const defaultRetryMs = 10_000;
/** Before a thread that has ended is followed by another: doubled each time. */
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

  /** Null while it does not listen. */
  get port(): number | null {
    return this.#port;
  }

  /** With the key; null while it does not listen. */
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

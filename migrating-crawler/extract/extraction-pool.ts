/**
 * Extracts pages in threads, so that the main thread keeps its sockets and timers responsive. The settings give the number of
 * threads, which start with the first page. A page that crashes its thread or takes too long fails alone (`extraction-failed`
 * or `extraction-timeout`, both counted as this software's fault), and the thread is replaced. The main thread extracts pages
 * if no thread is allowed or can start.
 */

import type { Worker } from "node:worker_threads";
import { timerMs } from "#core/timer-ms";
import { Failure } from "../core/failure.ts";
import { startThread } from "../core/thread.ts";
import { youngMegabytes } from "../limits/machine-watch.ts";
import { type Extracted, extractPage, type FetchedBody } from "./extract-page.ts";
import type { FromExtractionThread, ToExtractionThread } from "./extraction-worker.ts";

export type ExtractPage = (body: FetchedBody) => Promise<Extracted>;

export interface ExtractionSettings {
  /** With 0, the main thread extracts the pages. */
  readonly threads: number;
  /** Time limit for one page, from when a thread begins it. The longest pages (5 MB) take a second. */
  readonly pageMs?: number;
  /** Limit for the waits during a page, for probes and for the crawler's processor share. */
  readonly heldMs?: number;
  /** Memory for the thread's objects. A page that needs more ends the thread. */
  readonly heapMegabytes?: number;
  readonly youngMegabytes?: number;
}

const defaultPageMs = 10_000;
/** With the lowest processor share, one second of work takes 50 seconds. */
const defaultHeldMs = 600_000;
/** The tables of all languages take 30 MB, and a page of 5 MB takes 100 MB. */
const defaultHeapMegabytes = 192;

export class ExtractionPool {
  readonly #settings: Required<ExtractionSettings>;
  readonly #threads = new Set<ExtractionThread>();
  #waiting: ExtractionTask[] = [];
  #canStart = true;
  #closed = false;

  constructor(settings: ExtractionSettings) {
    this.#settings = {
      pageMs: defaultPageMs,
      heldMs: defaultHeldMs,
      heapMegabytes: defaultHeapMegabytes,
      youngMegabytes: youngMegabytes(null),
      ...settings,
    };
  }

  readonly extract: ExtractPage = async (body) => {
    if (this.#settings.threads === 0 || !this.#canStart) return await extractPage(body);
    await body.quiet();
    if (this.#closed) throw new Failure("stopped", "the crawler stops");
    return await new Promise<Extracted>((resolve, reject) => {
      this.#waiting.push({ body, resolve, reject });
      this.#hand();
    });
  };

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of this.#waiting.splice(0)) task.reject(new Failure("stopped", "the crawler stops"));
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  #hand(): void {
    for (const thread of this.#threads) {
      while (this.#waiting.length > 0 && thread.hasRoom()) thread.give(this.#waiting.shift()!);
    }
    const { threads } = this.#settings;
    if (this.#waiting.length > 0 && this.#threads.size < threads) this.#start();
  }

  #start(): void {
    const thread: ExtractionThread = new ExtractionThread({
      ...this.#settings,
      onRoom: () => this.#hand(),
      onEnd: ({ left, started }) => {
        this.#threads.delete(thread);
        this.#waiting.unshift(...left);
        if (this.#closed) return;
        if (started) this.#hand();
        else this.#extractHere();
      },
    });
    this.#threads.add(thread);
  }

  /** The threads never became ready, so pages must not wait for them. */
  #extractHere(): void {
    this.#canStart = false;
    for (const { body, resolve, reject } of this.#waiting.splice(0)) extractPage(body).then(resolve, reject);
  }
}

// One thread that extracts pages, as seen from the main thread. It starts when the object is created, is given a page or two
// ahead, and is watched. It ends when it is closed, breaks, or spends too long on a page. The pool then creates a new one.
//
//   starting → ready ⇄ working → ended

interface ExtractionTask {
  readonly body: FetchedBody;
  readonly resolve: (extracted: Extracted) => void;
  readonly reject: (error: Error) => void;
}

interface ThreadSettings extends Required<Omit<ExtractionSettings, "threads">> {
  readonly onRoom: () => void;
  /** Is called once with the pages that were not begun. `started` is true if the thread had become ready. */
  readonly onEnd: (end: { readonly left: readonly ExtractionTask[]; readonly started: boolean }) => void;
}

/** The current page and the next one, so that the thread never waits for the main thread. */
const mostTasks = 2;

class ExtractionThread {
  readonly #settings: ThreadSettings;
  readonly #worker: Worker;
  #tasks: ExtractionTask[] = [];
  #ready = false;
  #ended = false;
  #clock: NodeJS.Timeout | undefined;
  #leftMs = 0;
  #leftHeldMs = 0;
  #beganMs = 0;

  constructor(settings: ThreadSettings) {
    this.#settings = settings;
    this.#worker = startThread({
      ...{ beside: import.meta.url, name: "extraction-worker" },
      limits: {
        maxOldGenerationSizeMb: settings.heapMegabytes,
        maxYoungGenerationSizeMb: settings.youngMegabytes,
      },
    });
    this.#worker.on("message", (message: FromExtractionThread) => this.#take(message));
    this.#worker.on("error", (error) => this.#end(new Failure("extraction-failed", error.message)));
    this.#worker.on("exit", () =>
      this.#end(new Failure("extraction-failed", "the extraction thread ended by itself")),
    );
  }

  hasRoom(): boolean {
    return this.#ready && !this.#ended && this.#tasks.length < mostTasks;
  }

  give(task: ExtractionTask): void {
    const { quiet: _quiet, bytes, ...body } = task.body;
    // Copies the bytes, because the body may be part of a larger buffer or used elsewhere.
    const copy = new Uint8Array(bytes);
    const message: ToExtractionThread = { type: "extract", body, bytes: copy };
    this.#tasks.push(task);
    this.#worker.postMessage(message, [copy.buffer]);
    if (this.#tasks.length === 1) this.#begin();
  }

  async close(): Promise<void> {
    this.#end(new Failure("stopped", "the crawler stops"));
    await this.#worker.terminate();
  }

  #take(message: FromExtractionThread): void {
    if (this.#ended) return;
    switch (message.type) {
      case "ready":
        this.#ready = true;
        this.#worker.unref();
        break;
      case "may-i-go-on":
        void this.#pause();
        return;
      case "extracted":
        this.#next()?.resolve(message.extracted);
        break;
      case "failed":
        this.#next()?.reject(new Failure("extraction-failed", message.reason));
    }
    this.#settings.onRoom();
  }

  #next(): ExtractionTask | undefined {
    clearTimeout(this.#clock);
    const done = this.#tasks.shift();
    if (this.#tasks.length > 0) this.#begin();
    else this.#worker.unref();
    return done;
  }

  #begin(): void {
    this.#worker.ref();
    this.#leftMs = this.#settings.pageMs;
    this.#leftHeldMs = this.#settings.heldMs;
    this.#startClock(this.#leftMs, `the page took over ${this.#leftMs} ms to extract`);
  }

  #startClock(ms: number, words: string): void {
    clearTimeout(this.#clock);
    this.#beganMs = performance.now();
    this.#clock = setTimeout(() => this.#end(new Failure("extraction-timeout", words)), timerMs(ms));
  }

  /** This wait does not count towards the page's time, but must be limited too. */
  async #pause(): Promise<void> {
    const { pageMs, heldMs } = this.#settings;
    this.#leftMs -= performance.now() - this.#beganMs;
    this.#startClock(this.#leftHeldMs, `the page waited over ${heldMs} ms for its turns`);
    await this.#tasks[0]?.body.quiet();
    if (this.#ended) return;
    this.#leftHeldMs -= performance.now() - this.#beganMs;
    this.#startClock(this.#leftMs, `the page took over ${pageMs} ms to extract`);
    const go: ToExtractionThread = { type: "go" };
    this.#worker.postMessage(go);
  }

  #end(failure: Failure): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#clock);
    const [broken, ...left] = this.#tasks;
    this.#tasks = [];
    broken?.reject(failure);
    if (failure.code === "stopped") for (const task of left.splice(0)) task.reject(failure);
    void this.#worker.terminate();
    this.#settings.onEnd({ left, started: this.#ready });
  }
}

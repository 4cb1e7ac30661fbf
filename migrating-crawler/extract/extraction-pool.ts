/**
 * Extracts pages in threads, so that the main thread keeps sockets and clocks: so many threads as the crawler's
 * host allows, started with the first page. A page that breaks its thread or takes too long is the failure of that
 * page alone (`extraction-failed`, `extraction-timeout`, both our own fault); the thread is replaced. Where no
 * thread can be started, and with none allowed, the main thread extracts.
 */

import { Failure } from "../core/failure.ts";
import { youngMegabytes } from "../limits/memory-watch.ts";
import { type Extracted, extractPage, type FetchedBody } from "./extract-page.ts";
import { type ExtractionTask, ExtractionThread } from "./extraction-thread.ts";

export type ExtractPage = (body: FetchedBody) => Promise<Extracted>;

export interface ExtractionSettings {
  /** 0: in the main thread. */
  readonly threads: number;
  /** For one page, from when a thread begins with it. The longest pages (5 MB) take a second. */
  readonly pageMs?: number;
  /** For what a page waits between: for probes, and for the crawler's share of the processor. */
  readonly heldMs?: number;
  /** Memory of a thread's objects, in MB. */
  readonly heapMegabytes?: number;
  /** Of that, for young ones. */
  readonly youngMegabytes?: number;
}

const defaultPageMs = 10_000;
/** A second's work at the least share that a host can set takes 50. */
const defaultHeldMs = 600_000;
/** The tables of all languages take 30; a page of 5 MB and what is made of it 100. */
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

  /** Throws a Failure. */
  readonly extract: ExtractPage = async (body) => {
    if (this.#settings.threads === 0 || !this.#canStart) return await extractPage(body);
    await body.quiet();
    if (this.#closed) throw new Failure("stopped", "the crawler stops");
    return await new Promise<Extracted>((resolve, reject) => {
      this.#waiting.push({ body, resolve, reject });
      this.#hand();
    });
  };

  /** Pages that are not extracted yet are rejected. */
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

  /** A thread that never was ready: there will be none, and pages must not wait for it. */
  #extractHere(): void {
    this.#canStart = false;
    for (const { body, resolve, reject } of this.#waiting.splice(0)) extractPage(body).then(resolve, reject);
  }
}

/**
 * Extracts pages in threads, so that the main thread keeps its sockets and timers responsive. The host sets the number
 * of threads; they start with the first page. A page that crashes its thread or takes too long fails alone
 * (`extraction-failed`, `extraction-timeout`, both our fault), and the thread is replaced. The main thread extracts
 * when no thread is allowed or can start.
 */

import { Failure } from "../core/failure.ts";
import { youngMegabytes } from "../limits/memory-watch.ts";
import { type Extracted, extractPage, type FetchedBody } from "./extract-page.ts";
import { type ExtractionTask, ExtractionThread } from "./extraction-thread.ts";

export type ExtractPage = (body: FetchedBody) => Promise<Extracted>;

export interface ExtractionSettings {
  /** With 0 the main thread extracts. */
  readonly threads: number;
  /** The time limit of one page once a thread has begun it. The longest pages (5 MB) take a second. */
  readonly pageMs?: number;
  /** The limit for waiting in between, for probes and the crawler's processor share. */
  readonly heldMs?: number;
  /** Memory for a thread's objects, in MB. */
  readonly heapMegabytes?: number;
  /** The part of it for young objects. */
  readonly youngMegabytes?: number;
}

const defaultPageMs = 10_000;
/** At the lowest processor share a second of work takes 50. */
const defaultHeldMs = 600_000;
/** The tables of all languages take 30, and a page of 5 MB takes 100. */
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

  /** Rejects pages that are not extracted yet. */
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

  /** Threads never became ready, so pages must not wait for them. */
  #extractHere(): void {
    this.#canStart = false;
    for (const { body, resolve, reject } of this.#waiting.splice(0)) extractPage(body).then(resolve, reject);
  }
}

/**
 * How long pages take while something else goes on: asked by the clock, each on a connection of its own, whatever became
 * of the question before.
 */
import { request } from "undici";
import { Histogram } from "./histogram.ts";

/** A page that takes longer has failed. */
const mostMs = 20_000;
/** Questions without an answer; while there are so many, none is added. */
const mostOpen = 50;

export class PageWatch {
  readonly times = new Histogram();
  readonly #url: string;
  readonly #timer: NodeJS.Timeout;
  readonly #open = new Set<{ readonly abort: AbortController; readonly done: Promise<void> }>();
  failed = 0;

  constructor(url: string, everyMs: number) {
    this.#url = url;
    this.#timer = setInterval(() => this.#open.size < mostOpen && this.#ask(), everyMs);
  }

  /** Questions under way are given up, and count as long as they have lasted. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    for (const { abort } of this.#open) abort.abort();
    await Promise.all([...this.#open].map(({ done }) => done));
  }

  #ask(): void {
    const abort = new AbortController();
    const startMs = performance.now();
    const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(mostMs)]);
    const done = request(this.#url, { signal, reset: true })
      .then(async ({ body, statusCode }) => (await body.text()) !== "" && statusCode === 200)
      .catch(() => abort.signal.aborted)
      .then((isWell) => {
        this.times.add(performance.now() - startMs);
        if (!isWell) this.failed += 1;
        this.#open.delete(one);
      });
    const one = { abort, done };
    this.#open.add(one);
  }
}

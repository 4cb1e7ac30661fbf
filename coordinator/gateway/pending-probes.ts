/** Probe requests under way: matches reports to requests, and answers for crawlers that do not. */
import type { CrawlerId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";

interface PendingProbe {
  readonly crawlerId: CrawlerId;
  readonly method: ProbeMethod;
  readonly settle: (outcome: ProbeOutcome) => void;
}

export class PendingProbes {
  readonly #pending = new Map<number, PendingProbe>();
  #lastRequestId = 0;

  get size(): number {
    return this.#pending.size;
  }

  /** Resolves with the report, or with a `failed` outcome after `waitMs`. `ask` sends the request; false: it could not. */
  request(
    probe: { readonly crawlerId: CrawlerId; readonly method: ProbeMethod; readonly waitMs: number },
    ask: (requestId: number) => boolean,
  ): Promise<ProbeOutcome> {
    this.#lastRequestId += 1;
    const requestId = this.#lastRequestId;
    return new Promise((resolve) => {
      const settle = (outcome: ProbeOutcome) => {
        clearTimeout(deadline);
        this.#pending.delete(requestId);
        resolve(outcome);
      };
      const silent = failed(probe.method, `the crawler did not report within ${probe.waitMs} ms`);
      const deadline = setTimeout(() => settle(silent), probe.waitMs);
      this.#pending.set(requestId, { crawlerId: probe.crawlerId, method: probe.method, settle });
      if (!ask(requestId)) settle(failed(probe.method, "the crawler is not connected"));
    });
  }

  /** A report to a request of another crawler, or to none (any more), is dropped: false. */
  report(crawlerId: CrawlerId, requestId: number, outcome: ProbeOutcome): boolean {
    const probe = this.#pending.get(requestId);
    if (probe?.crawlerId !== crawlerId) return false;
    probe.settle(outcome);
    return true;
  }

  /** The crawler's session ended. */
  abandon(crawlerId: CrawlerId, reason: string): void {
    for (const probe of [...this.#pending.values()]) {
      if (probe.crawlerId === crawlerId) probe.settle(failed(probe.method, `the crawler left: ${reason}`));
    }
  }
}

function failed(method: ProbeMethod, reason: string): ProbeOutcome {
  return { type: "failed", method, reason: reason.slice(0, 500) };
}

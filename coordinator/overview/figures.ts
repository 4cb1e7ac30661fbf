/**
 * Counts what happens and writes it down once a minute, as the minute ends. What cannot be written is kept and
 * written with the next minute, so nothing is lost while the database is away, and little when the coordinator dies.
 */
import type { CrawlerId } from "#core/ids";
import type { ResultBatch } from "../results/take-results.ts";
import {
  type Blame,
  type CrawlerFigures,
  type FailuresByBlame,
  type FigureStore,
  type Figures,
  minuteDays,
  noFigures,
  quarterDays,
} from "./figure-ports.ts";

const minuteMs = 60_000;
const dayMs = 86_400_000;

export class MinuteFigures {
  #figures: Figures = noFigures;
  readonly #crawlers = new Map<CrawlerId, CrawlerFigures>();
  #minuteMs: number | null = null;

  /**
   * `stored`: how many of the batch's results were stored. Which ones they were is not told, so of a batch that
   * holds others too (sent again, or without a lease) everything counts for that share; what was shipped was shipped.
   */
  results({ crawlerId, results }: ResultBatch, stored: number): void {
    const share = results.length === 0 ? 0 : Math.min(1, stored / results.length);
    const part = (count: number) => Math.round(count * share);
    const pages = results.filter(({ result }) => result.page !== null);
    const failures = failuresOf(results, part);
    this.#figures = addedFigures(this.#figures, {
      ...noFigures,
      fetches: stored,
      pages: part(pages.length),
      fetchedBytes: part(sum(pages, ({ result }) => result.bodyBytes)),
      shippedBytes: sum(results, ({ wireBytes }) => wireBytes),
      failures,
    });
    const wireBytes = part(sum(results, ({ result }) => result.wireBytes));
    const figures = { crawlerId, fetches: stored, wireBytes, failures };
    this.#crawlers.set(crawlerId, addedCrawler(this.#crawlers, figures));
  }

  round(probes: number): void {
    this.#figures = addedFigures(this.#figures, { ...noFigures, rounds: 1, probes });
  }

  /** Called every few seconds; writes when a minute has ended. */
  async turn(store: Pick<FigureStore, "add">, now: Date): Promise<void> {
    const thisMinuteMs = Math.floor(now.getTime() / minuteMs) * minuteMs;
    this.#minuteMs ??= thisMinuteMs;
    if (thisMinuteMs === this.#minuteMs) return;
    const endedMs = this.#minuteMs;
    this.#minuteMs = thisMinuteMs;
    await this.#write(store, new Date(endedMs));
  }

  /** What there is of the minute under way: for a coordinator that stops. */
  async flush(store: Pick<FigureStore, "add">): Promise<void> {
    if (this.#minuteMs !== null) await this.#write(store, new Date(this.#minuteMs));
  }

  async #write(store: Pick<FigureStore, "add">, minute: Date): Promise<void> {
    const figures = this.#figures;
    const crawlers = [...this.#crawlers.values()];
    this.#figures = noFigures;
    this.#crawlers.clear();
    try {
      await store.add(minute, figures, crawlers);
    } catch (error) {
      this.#figures = addedFigures(this.#figures, figures);
      for (const one of crawlers) this.#crawlers.set(one.crawlerId, addedCrawler(this.#crawlers, one));
      throw error;
    }
  }
}

/** Removes what nobody looks at any more. */
export async function forgetFigures(store: Pick<FigureStore, "forget">, now: Date): Promise<number> {
  const before = (days: number) => new Date(now.getTime() - days * dayMs);
  return await store.forget({ minutes: before(minuteDays), quarters: before(quarterDays) });
}

function failuresOf(results: ResultBatch["results"], part: (count: number) => number): FailuresByBlame {
  const of = (blame: Blame) =>
    part(
      results.filter(({ result: { outcome } }) => outcome.type === "failed" && outcome.blame === blame)
        .length,
    );
  return { target: of("target"), network: of("network"), crawler: of("crawler"), us: of("us") };
}

function addedFailures(a: FailuresByBlame, b: FailuresByBlame): FailuresByBlame {
  return {
    target: a.target + b.target,
    network: a.network + b.network,
    crawler: a.crawler + b.crawler,
    us: a.us + b.us,
  };
}

function addedFigures(a: Figures, b: Figures): Figures {
  return {
    fetches: a.fetches + b.fetches,
    pages: a.pages + b.pages,
    fetchedBytes: a.fetchedBytes + b.fetchedBytes,
    shippedBytes: a.shippedBytes + b.shippedBytes,
    rounds: a.rounds + b.rounds,
    probes: a.probes + b.probes,
    failures: addedFailures(a.failures, b.failures),
  };
}

function addedCrawler(known: ReadonlyMap<CrawlerId, CrawlerFigures>, more: CrawlerFigures): CrawlerFigures {
  const before = known.get(more.crawlerId);
  if (!before) return more;
  return {
    crawlerId: more.crawlerId,
    fetches: before.fetches + more.fetches,
    wireBytes: before.wireBytes + more.wireBytes,
    failures: addedFailures(before.failures, more.failures),
  };
}

function sum<T>(rows: readonly T[], of: (row: T) => number): number {
  return rows.reduce((total, row) => total + of(row), 0);
}

/**
 * Counts what happens and adds it to its minute at every turn, each second, so that a coordinator that is killed takes no
 * more than a second's figures with it. What cannot be written is kept and written with a later turn. Where nothing happens,
 * one row a minute says that somebody was there.
 */
import type { CrawlerId } from "#core/ids";
import type { FetchOutcome } from "#protocol/result";
import type { ResultBatch } from "../results/take-results.ts";

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
    const figures = { crawlerId, fetches: stored, pages: part(pages.length), wireBytes, failures };
    this.#crawlers.set(crawlerId, addedCrawler(this.#crawlers, figures));
  }

  round(probes: number): void {
    this.#figures = addedFigures(this.#figures, { ...noFigures, rounds: 1, probes });
  }

  /** Called every second; writes what there is to write. */
  async turn(store: Pick<FigureStore, "add">, now: Date): Promise<void> {
    const thisMinuteMs = Math.floor(now.getTime() / minuteMs) * minuteMs;
    this.#minuteMs ??= thisMinuteMs;
    const isOver = thisMinuteMs !== this.#minuteMs;
    const minute = new Date(this.#minuteMs);
    this.#minuteMs = thisMinuteMs;
    if (isOver || this.#crawlers.size > 0 || this.#figures.rounds > 0) await this.#write(store, minute);
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

/** Removes what nobody looks at any more; what is left of it are the sums of its days. */
export async function forgetFigures(
  store: Pick<FigureStore, "sumDays" | "forget">,
  now: Date,
): Promise<number> {
  await store.sumDays(now);
  const before = (days: number) => new Date(now.getTime() - days * dayMs);
  return await store.forget({
    minutes: before(minuteDays),
    quarters: before(quarterDays),
    crawlerDays: before(crawlerDays),
  });
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
    pages: before.pages + more.pages,
    wireBytes: before.wireBytes + more.wireBytes,
    failures: addedFailures(before.failures, more.failures),
  };
}

function sum<T>(rows: readonly T[], of: (row: T) => number): number {
  return rows.reduce((total, row) => total + of(row), 0);
}

// Figures of the past that outlive a coordinator: of the whole crawl by minute, of each crawler by quarter of an hour.

/** Who is to blame for a failed fetch (protocol/result). */
export type Blame = Extract<FetchOutcome, { readonly type: "failed" }>["blame"];

export type FailuresByBlame = Readonly<Record<Blame, number>>;

const noFailures: FailuresByBlame = { target: 0, network: 0, crawler: 0, us: 0 };

/** Counted within a span of time. */
export interface Figures {
  readonly fetches: number;
  readonly pages: number;
  /** Decoded bodies of the pages. */
  readonly fetchedBytes: number;
  /** What all results took on the wire to the coordinator. */
  readonly shippedBytes: number;
  readonly rounds: number;
  /** Without those that the crawl's own fetches spared. */
  readonly probes: number;
  readonly failures: FailuresByBlame;
}

const noFigures: Figures = {
  ...{ fetches: 0, pages: 0, fetchedBytes: 0, shippedBytes: 0, rounds: 0, probes: 0 },
  failures: noFailures,
};

export interface CrawlerFigures {
  readonly crawlerId: CrawlerId;
  readonly fetches: number;
  readonly pages: number;
  /** As they came over the partner's line. */
  readonly wireBytes: number;
  readonly failures: FailuresByBlame;
}

export interface FigureStore {
  /** Adds to what is there of that minute, and of the quarter of an hour around it. */
  add(minute: Date, figures: Figures, crawlers: readonly CrawlerFigures[]): Promise<void>;
  /** Sums up the minutes and the crawlers' quarters of the days that are not summed up yet. */
  sumDays(now: Date): Promise<number>;
  /** Removes what is older; returns how many minutes. */
  forget(before: {
    readonly minutes: Date;
    readonly quarters: Date;
    readonly crawlerDays: Date;
  }): Promise<number>;
}

/** How long the minutes are kept. */
export const minuteDays = 90;

/** And the crawlers' quarters: a week is what anybody compares crawlers over. */
export const quarterDays = 7;

/** The sums of a crawler's days: a year, and what it takes to see the same weeks of the year before. */
export const crawlerDays = 400;

/**
 * Counts what happens and adds it to its minute at every turn, each second, so that a coordinator that is killed takes no
 * more than a second's figures with it. What cannot be written is kept and written with a later turn. Where nothing happens,
 * one row a minute says that somebody was there.
 */
import type { CrawlerId } from "#core/ids";
import type { FetchOutcome } from "#protocol/result";
import type { ResultBatch } from "../../place/crawlers/result-batch.ts";

/** Who is to blame for a failed fetch (protocol/result). */
export type Blame = Extract<FetchOutcome, { readonly type: "failed" }>["blame"];

export const failureColumns = {
  target: "target_failures",
  network: "network_failures",
  crawler: "crawler_failures",
  us: "our_failures",
} as const satisfies Readonly<Record<Blame, string>>;

const failures = Object.values(failureColumns);

/**
 * Of the whole crawl, by minute and by day. fetched_bytes: decoded bodies of the pages; shipped_bytes: what all results took on
 * the wire to the coordinator; probes: without those that the crawl's own fetches spared.
 */
export const minuteColumns = [
  ...(["fetches", "pages", "fetched_bytes", "shipped_bytes", "rounds", "probes"] as const),
  ...failures,
];

/** Of a crawler, by quarter of an hour and by day. wire_bytes: as they came over the partner's line. */
export const crawlerColumns = [...(["fetches", "pages", "wire_bytes"] as const), ...failures];

type Counts<Name extends string> = Readonly<Record<Name, number>>;
export type MinuteCounts = Counts<(typeof minuteColumns)[number]>;
export type CrawlerCounts = Counts<(typeof crawlerColumns)[number]>;

/** Adds to what is there of that minute, and of the quarter of an hour around it. */
export type WriteFigures = (
  minute: Date,
  counts: MinuteCounts,
  crawlers: ReadonlyMap<CrawlerId, CrawlerCounts>,
) => Promise<void>;

const minuteMs = 60_000;

export class MinuteFigures {
  #counts = summed(minuteColumns);
  #crawlers = new Map<CrawlerId, CrawlerCounts>();
  #minuteMs: number | null = null;

  /**
   * `stored`: how many of the batch's results were stored. Which ones they were is not told, so of a batch that
   * holds others too (sent again, or without a lease) everything counts for that share; what was shipped was shipped.
   */
  results({ crawlerId, results }: ResultBatch, stored: number): void {
    const share = results.length === 0 ? 0 : Math.min(1, stored / results.length);
    const part = (of: (result: (typeof results)[number]["result"]) => number) =>
      Math.round(share * results.reduce((sum, { result }) => sum + of(result), 0));
    const failed = (blame: Blame) =>
      part(({ outcome }) => (outcome.type === "failed" && outcome.blame === blame ? 1 : 0));
    const counted = {
      fetches: stored,
      pages: part(({ page }) => (page === null ? 0 : 1)),
      target_failures: failed("target"),
      network_failures: failed("network"),
      crawler_failures: failed("crawler"),
      our_failures: failed("us"),
    };
    this.#counts = summed(minuteColumns, this.#counts, {
      ...counted,
      fetched_bytes: part(({ page, bodyBytes }) => (page === null ? 0 : bodyBytes)),
      shipped_bytes: results.reduce((sum, { wireBytes }) => sum + wireBytes, 0),
    });
    this.#addCrawler(crawlerId, { ...counted, wire_bytes: part(({ wireBytes }) => wireBytes) });
  }

  round(probes: number): void {
    this.#counts = summed(minuteColumns, this.#counts, { rounds: 1, probes });
  }

  /** Called every second; writes what there is to write. */
  async turn(write: WriteFigures, now: Date): Promise<void> {
    const thisMinuteMs = Math.floor(now.getTime() / minuteMs) * minuteMs;
    this.#minuteMs ??= thisMinuteMs;
    const isOver = thisMinuteMs !== this.#minuteMs;
    const minute = new Date(this.#minuteMs);
    this.#minuteMs = thisMinuteMs;
    if (isOver || this.#crawlers.size > 0 || this.#counts.rounds > 0) await this.#write(write, minute);
  }

  /** What there is of the minute under way: for a coordinator that stops. */
  async flush(write: WriteFigures): Promise<void> {
    if (this.#minuteMs !== null) await this.#write(write, new Date(this.#minuteMs));
  }

  #addCrawler(crawlerId: CrawlerId, more: CrawlerCounts): void {
    this.#crawlers.set(crawlerId, summed(crawlerColumns, this.#crawlers.get(crawlerId) ?? {}, more));
  }

  async #write(write: WriteFigures, minute: Date): Promise<void> {
    const [counts, crawlers] = [this.#counts, this.#crawlers];
    this.#counts = summed(minuteColumns);
    this.#crawlers = new Map();
    try {
      await write(minute, counts, crawlers);
    } catch (error) {
      this.#counts = summed(minuteColumns, this.#counts, counts);
      for (const [crawlerId, one] of crawlers) this.#addCrawler(crawlerId, one);
      throw error;
    }
  }
}

function summed<Name extends string>(
  names: readonly Name[],
  ...all: readonly Partial<Counts<Name>>[]
): Counts<Name> {
  const sums = names.map((name) => [name, all.reduce((sum, one) => sum + (one[name] ?? 0), 0)]);
  return Object.fromEntries(sums) as Counts<Name>;
}

/** How long the minutes are kept. */
export const minuteDays = 90;

/** And the crawlers' quarters: a week is what anybody compares crawlers over. */
export const quarterDays = 7;

/** The sums of a crawler's days: a year, and what it takes to see the same weeks of the year before. */
export const crawlerDays = 400;

/** How long a sample of how the fleet stands is kept: a year, and what it takes to see the same weeks of the year before. */
export const gaugeDays = 400;

/**
 * Counts what happens and adds it to its minute every second, so that a coordinator that is killed loses at most one second's
 * figures. What cannot be written is kept for a later attempt. A row for an idle minute shows that a coordinator ran.
 */
import type { CrawlerId } from "#core/ids";
import type { ResultBatch } from "../../place/crawlers/crawler.ts";
import type { Blame } from "../fleet/fleet-api.ts";

export const failureColumns = {
  target: "target_failures",
  network: "network_failures",
  crawler: "crawler_failures",
  us: "our_failures",
} as const satisfies Readonly<Record<Blame, string>>;

const failures = Object.values(failureColumns);

/**
 * Columns for the whole crawl by minute and by day. fetched_bytes are the decoded bodies of the pages, and shipped_bytes all
 * results on the wire to the coordinator. probes excludes measurements of the crawl's own fetches.
 */
export const minuteColumns = [
  ...(["fetches", "pages", "fetched_bytes", "shipped_bytes", "rounds", "probes"] as const),
  ...failures,
];

/** Columns for one crawler by quarter of an hour and by day. wire_bytes are those on the partner's line. */
export const crawlerColumns = [...(["fetches", "pages", "wire_bytes"] as const), ...failures];

type Counts<Name extends string> = Readonly<Record<Name, number>>;
type MinuteCounts = Counts<(typeof minuteColumns)[number]>;
export type CrawlerCounts = Counts<(typeof crawlerColumns)[number]>;

/** Adds to the figures of a minute, and of the quarter of an hour around it. */
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
   * `stored` is how many of the batch's results were stored. If not all were (some were sent again, or had no lease), it is
   * unknown which, so all figures but the shipped bytes are counted in proportion.
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

  /** Called every second. */
  async turn(write: WriteFigures, now: Date): Promise<void> {
    const thisMinuteMs = Math.floor(now.getTime() / minuteMs) * minuteMs;
    this.#minuteMs ??= thisMinuteMs;
    const isOver = thisMinuteMs !== this.#minuteMs;
    const minute = new Date(this.#minuteMs);
    this.#minuteMs = thisMinuteMs;
    if (isOver || this.#crawlers.size > 0 || this.#counts.rounds > 0) await this.#write(write, minute);
  }

  /** Writes the current minute. Call it when a coordinator stops. */
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

/** How many days minutes are kept. */
export const minuteDays = 90;

/** How many days crawlers' quarters are kept. People compare crawlers over a week. */
export const quarterDays = 7;

/** How many days a crawler's daily sums and the fleet's gauges are kept, so that weeks can be compared with a year before. */
export const crawlerDays = 400;
export const gaugeDays = 400;

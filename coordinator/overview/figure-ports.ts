/** Figures of the past that outlive a coordinator: of the whole crawl by minute, of each crawler by quarter of an hour. */
import type { CrawlerId } from "#core/ids";
import type { FetchOutcome } from "#protocol/result";

/** Who is to blame for a failed fetch (protocol/result). */
export type Blame = Extract<FetchOutcome, { readonly type: "failed" }>["blame"];
export type FailuresByBlame = Readonly<Record<Blame, number>>;

export const noFailures: FailuresByBlame = { target: 0, network: 0, crawler: 0, us: 0 };

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

export const noFigures: Figures = {
  ...{ fetches: 0, pages: 0, fetchedBytes: 0, shippedBytes: 0, rounds: 0, probes: 0 },
  failures: noFailures,
};

export interface CrawlerFigures {
  readonly crawlerId: CrawlerId;
  readonly fetches: number;
  /** As they came over the partner's line. */
  readonly wireBytes: number;
  readonly failures: FailuresByBlame;
}

export interface FigureStore {
  /** Adds to what is there of that minute, and of the quarter of an hour around it. */
  add(minute: Date, figures: Figures, crawlers: readonly CrawlerFigures[]): Promise<void>;
  /** Removes what is older; returns how many minutes. */
  forget(before: { readonly minutes: Date; readonly quarters: Date }): Promise<number>;
}

/** How long the minutes are kept. */
export const minuteDays = 90;
/** And the crawlers' quarters: a week is what anybody compares crawlers over. */
export const quarterDays = 7;

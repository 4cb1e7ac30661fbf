/**
 * Which fetched pages another crawler fetches again. Decided after the result has arrived, by a number that nobody
 * outside can foresee, so that a crawler cannot know which of its pages will be compared.
 */

export interface SamplingRule {
  /** Of an established crawler's pages, 0 to 1. */
  readonly share: number;
  /** Of a crawler's first `newcomerPages`. */
  readonly newcomerShare: number;
  readonly newcomerPages: number;
  /** Of the `watchedPages` after a page of it stood alone. */
  readonly watchedShare: number;
  readonly watchedPages: number;
}

/**
 * 1 % costs the fleet and the sites one fetch in a hundred. A newcomer's first 2000 pages make 300 comparisons, in
 * which one that alters 5 % of its pages stands out some dozen times, where it takes four or five; 30 % for a while after
 * the first time makes sure of it sooner. No more than that: an honest crawler stands alone about once in 200
 * comparisons, and being watched must not lead to being watched again (test/bench/results/trust.md).
 */
export const defaultSamplingRule: SamplingRule = {
  share: 0.01,
  newcomerShare: 0.15,
  newcomerPages: 2000,
  watchedShare: 0.3,
  watchedPages: 500,
};

/** What a crawler has fetched under leases so far, and the last page until which it is watched more closely. */
export interface SampledCrawler {
  readonly pages: number;
  readonly watchedUntilPage: number;
}

/** The share of its pages that is fetched again now. */
export function samplingShare({ pages, watchedUntilPage }: SampledCrawler, rule: SamplingRule): number {
  const asNewcomer = pages < rule.newcomerPages ? rule.newcomerShare : 0;
  const asWatched = pages < watchedUntilPage ? rule.watchedShare : 0;
  return Math.max(rule.share, asNewcomer, asWatched);
}

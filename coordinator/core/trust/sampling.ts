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
 * 1 % costs the fleet and the sites one fetch in a hundred. A newcomer's first 2000 pages make 200 comparisons, in
 * which one that alters 5 % of its pages stands out some eight times, where it takes four or five; 20 % after the first
 * time makes sure of it sooner. With 1000 pages one liar in thirty was missed (test/bench/results/trust.md).
 */
export const defaultSamplingRule: SamplingRule = {
  share: 0.01,
  newcomerShare: 0.1,
  newcomerPages: 2000,
  watchedShare: 0.2,
  watchedPages: 1000,
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

/**
 * In which order the due URLs of a host are fetched, by name. Each strategy keeps two lists, of new URLs (never visited)
 * and of old ones, and gives a URL of either a score; the higher goes first, then the longest due, then the shallowest.
 * A lease is filled from both lists (slice-mix.ts), except where a strategy wants none of that.
 *
 * A strategy is pure. The lease asks the same in SQL (coordinator/frontier/order/order-sql.ts), which a test compares.
 */
export interface UrlFacts {
  /** I: links to it, as far as they are known. */
  readonly backLinks: number;
  /** O: links on the page as last visited; null: not visited. */
  readonly outLinks: number | null;
  /** C: the share of its links that changed between its last two visits (results/change-ratio); null: not known. */
  readonly changeRatio: number | null;
  /** Estimated content changes a day (recrawl/change-rate); null: not known. */
  readonly changesPerDay: number | null;
  /** PageRank, summing up to 1 over the graph; null: none was computed with this URL in it. */
  readonly pageRank: number | null;
  /** Since the last visit; null: it was never visited. */
  readonly ageSeconds: number | null;
  /** Since it became due; below 0: it is not due yet. */
  readonly dueSeconds: number;
  readonly depth: number;
}

export interface OrderStrategy {
  readonly name: string;
  /** One sentence for operators: what goes first. */
  readonly words: string;
  /** True: a lease takes the share of new URLs that the operator wants, and fills up with old ones. */
  readonly mixesNewAndOld: boolean;
  readonly newScore: (url: UrlFacts) => number;
  /** `ageSeconds` is known here. */
  readonly oldScore: (url: UrlFacts) => number;
  /** The score with how it came about, in words and numbers. */
  readonly reason: (url: UrlFacts) => string;
}

export function isNew(url: UrlFacts): boolean {
  return url.ageSeconds === null;
}

export function scoreOf(strategy: OrderStrategy, url: UrlFacts): number {
  return isNew(url) ? strategy.newScore(url) : strategy.oldScore(url);
}

/** A number as reasons tell it: three digits that count. */
export function told(value: number): string {
  return Number(value.toPrecision(3)).toString();
}

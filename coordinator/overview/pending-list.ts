/**
 * How many URLs wait while a crawl goes through the whole web: the pending list P(n) after n pages (Anansi, section
 * 5.2, equation 5.3 and table 5.3).
 *
 *   P(n) = P(n-1) + S·(N − P(n-1) − n − 1)/N − 1
 *
 * With Q(n) = P(n) + n, the pages that are known, it is a geometric series: N − 2 − Q(n) shrinks by (1 − S/N) a page.
 * So Q(n) = N − 2 − (N − 3 − S)·(1 − S/N)^(n−1), which starts with the first page's S links: P(1) = S. Everything is
 * computed by logarithms: (1 − 2·10⁻⁷)^(3·10⁷) would lose its last digits otherwise.
 *
 * The thesis' derivative (5.4) has the power rule in place of the exponential's, and a sign that leaves it without a
 * root. Its table does not: it holds by the derivative of the series above.
 */
export interface WebSize {
  /** Pages of the web, N. */
  readonly pages: number;
  /** Links on a page, S. */
  readonly outDegree: number;
}

export interface PendingPeak {
  /** n1: pages crawled when the most wait. */
  readonly crawled: number;
  /** P_max. */
  readonly pending: number;
}

/** The pages that wait when `crawled` have been fetched; never fewer than none. */
export function pendingAfter({ pages, outDegree }: WebSize, crawled: number): number {
  if (crawled < 1) return 1;
  const left = (pages - 3 - outDegree) * Math.exp((crawled - 1) * Math.log1p(-outDegree / pages));
  return Math.max(0, pages - 2 - left - crawled);
}

/** Where the list is longest: as many known pages are added by a page as it takes away. */
export function pendingPeak(web: WebSize): PendingPeak {
  const shrink = Math.log1p(-web.outDegree / web.pages);
  const crawled = Math.max(1, 1 - Math.log((web.pages - 3 - web.outDegree) * -shrink) / shrink);
  return { crawled, pending: pendingAfter(web, crawled) };
}

/** The out-degree with which the list's peak is after `crawled` pages, by halving; the peak falls as the degree grows. */
export function outDegreeOfPeak(pages: number, crawled: number): number {
  let low = Math.E + 0.1;
  let high = pages / 4;
  for (let step = 0; step < 200 && high - low > low * 1e-13; step++) {
    const middle = Math.sqrt(low * high);
    if (pendingPeak({ pages, outDegree: middle }).crawled > crawled) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

export interface PrintedPeak extends PendingPeak {
  readonly pages: number;
}

/** Table 5.3 as printed: "N is different and S is equal to 200". */
export const printedPeaks: readonly PrintedPeak[] = [
  { pages: 1e9, pending: 968_508_416, crawled: 26_491_535 },
  { pages: 2e9, pending: 1_965_042_680, crawled: 29_957_321 },
  { pages: 3e9, pending: 2_963_015_354, crawled: 31_984_648 },
  { pages: 4e9, pending: 3_961_576_944, crawled: 33_423_058 },
  { pages: 5e9, pending: 4_960_461_226, crawled: 34_538_777 },
];

export const printedOutDegree = 200;

export interface PeakComparison {
  readonly printed: PrintedPeak;
  /** The out-degree that the printed n1 fits. */
  readonly fittedOutDegree: number;
  /** The whole number nearest to it: what the row was computed with. */
  readonly usedOutDegree: number;
  readonly withUsed: PendingPeak;
  /** What the row would be with the out-degree that the table is printed for. */
  readonly withPrinted: PendingPeak;
  /** Relative difference from the printed row, the larger of both columns. */
  readonly usedOff: number;
  readonly printedOff: number;
}

/** Every row of table 5.3 beside what it comes to, with the out-degree it fits and with the one it names. */
export function comparePeaks(): PeakComparison[] {
  return printedPeaks.map((printed) => {
    const fittedOutDegree = outDegreeOfPeak(printed.pages, printed.crawled);
    const usedOutDegree = Math.round(fittedOutDegree);
    const withUsed = pendingPeak({ pages: printed.pages, outDegree: usedOutDegree });
    const withPrinted = pendingPeak({ pages: printed.pages, outDegree: printedOutDegree });
    const usedOff = offBy(withUsed, printed);
    return {
      printed,
      fittedOutDegree,
      usedOutDegree,
      withUsed,
      withPrinted,
      usedOff,
      printedOff: offBy(withPrinted, printed),
    };
  });
}

function offBy(peak: PendingPeak, printed: PrintedPeak): number {
  const off = (is: number, said: number) => Math.abs(is / said - 1);
  return Math.max(off(peak.pending, printed.pending), off(peak.crawled, printed.crawled));
}

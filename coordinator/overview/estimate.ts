/**
 * What it takes to crawl the whole web in some months: Anansi's feasibility study (sections 5.2 and 5.3), with every
 * assumption open to change. The thesis' own figures come out with its own assumptions (test/bench/results/anansi.md).
 */

export interface CrawlAssumptions {
  /** N, pages of the web. Section 5.3.1: 200 million hosts by 200 links a page, by 10 links to each. */
  readonly pages: number;
  /** S, links on a page; table 5.1 has 205.322 of 420,989 pages. */
  readonly outDegree: number;
  /** Of 30 days, as the thesis has them: six are 15,552,000 s. */
  readonly months: number;
  /** α, the share of fetches that is for new pages (equation 5.1). */
  readonly newShare: number;
  /** A URL in the store and on the wire. */
  readonly urlBytes: number;
  /** Copies of what is stored (HDFS). */
  readonly replication: number;
  /** One link's HEAD request; a page takes as many as it has links. */
  readonly headSeconds: number;
  /** A work unit's two templates, down with every page. */
  readonly templateBytes: number;
  /** TCP/IP headers of a transfer. */
  readonly headerBytes: number;
  /** Original size over compressed size. */
  readonly compression: number;
  /** URLs ranked a second, by three data nodes at a compression rate of 1 (section 5.3.3). */
  readonly rankedPerSecond: number;
}

export const thesisAssumptions: CrawlAssumptions = {
  pages: 4e9,
  outDegree: 200,
  months: 6,
  newShare: 0.9,
  urlBytes: 100,
  replication: 3,
  headSeconds: 0.1,
  templateBytes: 600,
  headerBytes: 30,
  compression: 10,
  rankedPerSecond: 10_000,
};

/** What a running crawl tells in place of an assumption. */
export interface MeasuredInputs {
  /** Of one crawler while it works. */
  readonly pagesPerSecondPerCrawler?: number;
  /** Up per page as it is on the wire, compressed. */
  readonly bytesUpPerPage?: number;
  /** Of one URL with all that is kept of it and every index, each copy. */
  readonly storedBytesPerUrl?: number;
}

export interface CrawlEstimate {
  readonly seconds: number;
  /** F without revisits, and with the share of new pages. */
  readonly pagesPerSecond: number;
  readonly pagesPerSecondWithRevisits: number;
  readonly pagesPerSecondPerCrawler: number;
  /** The thesis counts from whole pages a second: 257 and not 257.2. */
  readonly crawlers: number;
  readonly crawlersWithRevisits: number;
  readonly storageBytes: number;
  /** Of the coordinator: down to crawlers and up from them, as it is and compressed. */
  readonly downBytesPerSecond: number;
  readonly upBytesPerSecond: number;
  readonly downCompressedBytesPerSecond: number;
  readonly upCompressedBytesPerSecond: number;
  readonly rankSeconds: number;
  /** Of the whole crawl's time. */
  readonly rankShare: number;
  readonly peak: PendingPeak;
}

const secondsPerMonth = 30 * 86_400;

/** The thesis' "Megabytes/s": 0.183 comes out of equation 5.6 with this many bytes, and with no other usual one. */
export const thesisMegabyte = 1_024_000;

export function estimateCrawl(given: CrawlAssumptions, measured: MeasuredInputs = {}): CrawlEstimate {
  const seconds = given.months * secondsPerMonth;
  const pagesPerSecond = given.pages / seconds;
  const withRevisits = pagesPerSecond / given.newShare;
  const perCrawler = measured.pagesPerSecondPerCrawler ?? 1 / (given.outDegree * given.headSeconds);
  const down = pagesPerSecond * (given.templateBytes + given.urlBytes + given.headerBytes);
  const up = pagesPerSecond * upBytesOf(given, measured);
  const rankSeconds = given.pages / given.rankedPerSecond;
  return {
    seconds,
    pagesPerSecond,
    pagesPerSecondWithRevisits: withRevisits,
    pagesPerSecondPerCrawler: perCrawler,
    crawlers: crawlersFor(pagesPerSecond, perCrawler),
    crawlersWithRevisits: crawlersFor(withRevisits, perCrawler),
    storageBytes: given.pages * (measured.storedBytesPerUrl ?? given.urlBytes) * given.replication,
    downBytesPerSecond: down,
    upBytesPerSecond: up,
    downCompressedBytesPerSecond: down / given.compression,
    upCompressedBytesPerSecond: measured.bytesUpPerPage === undefined ? up / given.compression : up,
    rankSeconds,
    rankShare: rankSeconds / seconds,
    peak: pendingPeak(given),
  };
}

/** What was measured is on the wire already, headers and compression included. */
function upBytesOf(given: CrawlAssumptions, { bytesUpPerPage }: MeasuredInputs): number {
  return bytesUpPerPage ?? given.outDegree * given.urlBytes + given.headerBytes;
}

/** By whole pages a second where there are any (5.3.2), and whole crawlers: half a one crawls nothing. */
function crawlersFor(pagesPerSecond: number, perCrawler: number): number {
  const rate = pagesPerSecond >= 1 ? Math.floor(pagesPerSecond) : pagesPerSecond;
  return Math.ceil(Number((rate / perCrawler).toPrecision(12)));
}

/** What is wrong with assumptions, with the values; empty: nothing. */
export function assumptionFaults(given: CrawlAssumptions): string[] {
  const unusable = Object.entries(given)
    .filter(([, value]) => !(Number.isFinite(value) && value > 0))
    .map(([name, value]) => `${name}: ${value} is not a number above 0`);
  if (unusable.length > 0) return unusable;
  const { pages, outDegree, newShare, compression } = given;
  return [
    ...(outDegree >= pages - 3
      ? [`outDegree: a page with ${outDegree} links would link to all of the web, which has ${pages} pages`]
      : []),
    ...(outDegree < 1
      ? [`outDegree: with ${outDegree} links a page no crawl goes on by itself; at least 1`]
      : []),
    ...(newShare > 1 ? [`newShare: ${newShare} is more than all fetches; at most 1`] : []),
    ...(compression < 1 ? [`compression: ${compression} would make transfers longer; at least 1`] : []),
  ];
}

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
interface WebSize {
  /** Pages of the web, N. */
  readonly pages: number;
  /** Links on a page, S. */
  readonly outDegree: number;
}

interface PendingPeak {
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

interface PrintedPeak extends PendingPeak {
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

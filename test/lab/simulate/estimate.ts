/**
 * What it takes to crawl the whole web in some months: Anansi's feasibility study (sections 5.2 and 5.3), with every
 * assumption open to change, and table 5.3. The thesis' own figures come out with its own assumptions
 * (test/bench/results/anansi.md).
 */
import { Command, Option } from "commander";
import { UsageError } from "#core/errors";
import { boundedNumber } from "#ops/cli/bounded-number";
import { formatTable, printAnswer } from "#ops/cli/output";

interface EstimateOptions extends Omit<CrawlAssumptions, "newShare"> {
  readonly alpha: number;
  readonly json?: boolean;
}

const help = `
Every default is the thesis' ("Anansi", chapter 5). One crawler's rate is one page in out-degree x HEAD seconds, as
there.

Examples:
  npm run lab -- estimate
  npm run lab -- estimate --pages 50e9 --months 1 --head-seconds 0.02 --json
`;

export function estimateCommand(): Command {
  const command = new Command("estimate")
    .description("what crawling a whole web takes: crawlers, bandwidth, storage, ranking, the pending list")
    .option("--json", "for programs")
    .addHelpText("after", help)
    .action((options: EstimateOptions) => estimate(options));
  for (const option of assumptionOptions()) command.addOption(option);
  return command;
}

function assumptionOptions(): Option[] {
  const given = thesisAssumptions;
  const option = (flags: string, words: string, value: number) =>
    new Option(flags, words).default(value).argParser(positive);
  return [
    option("--pages <n>", "N, pages of the web", given.pages),
    option("--out-degree <s>", "S, links on a page", given.outDegree),
    option("--months <m>", "of 30 days", given.months),
    option("--alpha <share>", "α, of the fetches those of new pages", given.newShare),
    option("--url-bytes <n>", "of one URL, stored and sent", given.urlBytes),
    option("--replication <n>", "copies of what is stored", given.replication),
    option("--head-seconds <s>", "of one link's HEAD request", given.headSeconds),
    option("--template-bytes <n>", "down with every page", given.templateBytes),
    option("--header-bytes <n>", "of a transfer, each way", given.headerBytes),
    option("--compression <ratio>", "original size over compressed size", given.compression),
    option("--ranked-per-second <n>", "URLs that are ranked a second", given.rankedPerSecond),
  ];
}

/** Zero and less are no numbers to divide by; what goes beyond is no web. */
const positive = boundedNumber(1e-9, 1e18);

function estimate(options: EstimateOptions): void {
  const { json = false, alpha: newShare, ...sizes } = options;
  const assumptions = { ...sizes, newShare };
  const faults = assumptionFaults(assumptions);
  if (faults.length > 0) throw new UsageError(faults.join("; "));
  const answer: EstimateAnswer = {
    assumptions,
    estimate: estimateCrawl(assumptions),
    table53: comparePeaks(),
  };
  printAnswer({ json }, answer, estimateText(answer));
}

// For people: the thesis' printed figures beside the ones with these assumptions.

interface EstimateAnswer {
  readonly assumptions: CrawlAssumptions;
  readonly estimate: CrawlEstimate;
  readonly table53: readonly PeakComparison[];
}

export function estimateText(answer: EstimateAnswer): string {
  return [assumptionLines(answer.assumptions), figureTable(answer), table53Text(answer.table53)].join("\n\n");
}

function assumptionLines(given: CrawlAssumptions): string {
  const changed = Object.keys(given).filter((name) => {
    const key = name as keyof CrawlAssumptions;
    return given[key] !== thesisAssumptions[key];
  });
  const whose =
    changed.length === 0
      ? "the thesis' assumptions"
      : `the thesis' assumptions, but for ${changed.join(", ")}`;
  return `${count(given.pages)} pages of ${count(given.outDegree)} links in ${given.months} months of 30 days, by ${whose}`;
}

interface FigureRow {
  readonly title: string;
  readonly printed: string;
  readonly of: (estimate: CrawlEstimate) => string;
}

const figureRows: readonly FigureRow[] = [
  { title: "pages/s without revisits", printed: "257", of: (one) => fixed(one.pagesPerSecond, 2) },
  { title: "pages/s with revisits (α)", printed: "", of: (one) => fixed(one.pagesPerSecondWithRevisits, 2) },
  { title: "pages/s of one crawler", printed: "0.05", of: (one) => precise(one.pagesPerSecondPerCrawler) },
  { title: "crawlers without revisits", printed: "5,140", of: (one) => count(one.crawlers) },
  { title: "crawlers with revisits", printed: "", of: (one) => count(one.crawlersWithRevisits) },
  { title: "stored, GB", printed: "1,200", of: (one) => count(one.storageBytes / 1e9) },
  { title: "sent, MB/s", printed: "0.183", of: (one) => megabytes(one.downBytesPerSecond) },
  { title: "received, MB/s", printed: "5", of: (one) => megabytes(one.upBytesPerSecond) },
  {
    title: "sent compressed, MB/s",
    printed: "0.0183",
    of: (one) => megabytes(one.downCompressedBytesPerSecond),
  },
  {
    title: "received compressed, MB/s",
    printed: "0.5",
    of: (one) => megabytes(one.upCompressedBytesPerSecond),
  },
  { title: "ranking, s", printed: "400,000", of: (one) => count(one.rankSeconds) },
  { title: "ranking, % of the time", printed: "0.2", of: (one) => precise(100 * one.rankShare) },
  { title: "most URLs waiting (P_max)", printed: "3,961,576,944", of: (one) => count(one.peak.pending) },
  { title: "after pages (n1)", printed: "33,423,058", of: (one) => count(one.peak.crawled) },
];

function figureTable({ estimate }: EstimateAnswer): string {
  const right = (title: string) => ({ title, align: "right" as const });
  const columns = [{ title: "Figure" }, right("Thesis prints"), right("This estimate")];
  const rows = figureRows.map(({ title, printed, of }) => [
    title,
    printed === "" ? "–" : printed,
    of(estimate),
  ]);
  return [
    formatTable(columns, rows),
    `MB: ${count(thesisMegabyte)} bytes, with which alone equation 5.6 comes to the printed 0.183. The printed 0.2 % is 2.57 %:`,
    "400,000 s of 15,552,000 s. P_max and n1 are the row of table 5.3 for 4 billion pages (see there).",
  ].join("\n");
}

function table53Text(rows: readonly PeakComparison[]): string {
  const right = (title: string) => ({ title, align: "right" as const });
  const only = rows.filter((row) => row.usedOutDegree === printedOutDegree).length;
  return [
    `Table 5.3, printed for S = ${printedOutDegree}; S is what each row fits`,
    formatTable(
      [
        "N",
        "P_max printed",
        "P_max",
        "n1 printed",
        "n1",
        "S",
        "off by",
        `off with S = ${printedOutDegree}`,
      ].map(right),
      rows.map((row) => [
        count(row.printed.pages),
        count(row.printed.pending),
        count(row.withUsed.pending),
        count(row.printed.crawled),
        count(row.withUsed.crawled),
        row.fittedOutDegree.toFixed(4),
        row.usedOff.toExponential(1),
        row.printedOff.toExponential(1),
      ]),
    ),
    `S = ${printedOutDegree} holds for the first ${only === 1 ? "row only" : `${only} rows`}: the others were computed with 200 links for each billion of pages (S/N`,
    "kept at 2e-7). With S the same for all, n1/N is the same in every row, and a larger web is not crawled relatively sooner.",
  ].join("\n");
}

const count = (value: number) => Math.round(value).toLocaleString("en-GB");

const fixed = (value: number, digits: number) =>
  value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const precise = (value: number) => value.toLocaleString("en-GB", { maximumSignificantDigits: 3 });
const megabytes = (bytes: number) => precise(bytes / thesisMegabyte);

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

export function estimateCrawl(given: CrawlAssumptions): CrawlEstimate {
  const seconds = given.months * secondsPerMonth;
  const pagesPerSecond = given.pages / seconds;
  const withRevisits = pagesPerSecond / given.newShare;
  const perCrawler = 1 / (given.outDegree * given.headSeconds);
  const down = pagesPerSecond * (given.templateBytes + given.urlBytes + given.headerBytes);
  const up = pagesPerSecond * (given.outDegree * given.urlBytes + given.headerBytes);
  const rankSeconds = given.pages / given.rankedPerSecond;
  return {
    seconds,
    pagesPerSecond,
    pagesPerSecondWithRevisits: withRevisits,
    pagesPerSecondPerCrawler: perCrawler,
    crawlers: crawlersFor(pagesPerSecond, perCrawler),
    crawlersWithRevisits: crawlersFor(withRevisits, perCrawler),
    storageBytes: given.pages * given.urlBytes * given.replication,
    downBytesPerSecond: down,
    upBytesPerSecond: up,
    downCompressedBytesPerSecond: down / given.compression,
    upCompressedBytesPerSecond: up / given.compression,
    rankSeconds,
    rankShare: rankSeconds / seconds,
    peak: pendingPeak(given),
  };
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

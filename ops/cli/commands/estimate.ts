/** `nearcrawl estimate`: what crawling a whole web takes, by Anansi's feasibility study and by what this crawl measures. */
import { Command, Option } from "commander";
import {
  assumptionFaults,
  type CrawlAssumptions,
  type CrawlEstimate,
  comparePeaks,
  estimateCrawl,
  type PeakComparison,
  printedOutDegree,
  thesisAssumptions,
  thesisMegabyte,
} from "#coordinator/overview/estimate";
import { type CrawlMeasures, measureCrawl } from "#coordinator/overview/overview-reads";
import { UsageError } from "#core/errors";
import { howMany, instantWords } from "#core/format";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface EstimateOptions extends DatabaseOptions {
  readonly pages: number;
  readonly outDegree: number;
  readonly months: number;
  readonly alpha: number;
  readonly urlBytes: number;
  readonly replication: number;
  readonly headSeconds: number;
  readonly templateBytes: number;
  readonly headerBytes: number;
  readonly compression: number;
  readonly rankedPerSecond: number;
  readonly measured?: boolean;
}

const help = `
Every default is the thesis' ("Anansi", chapter 5). One crawler's rate is one page in out-degree x HEAD seconds, as
there; with --measured it is what this crawl's crawlers do, and so are links, bytes and storage, in a column of their own.
--measured reads a running or past crawl's database; without it nothing is opened.

Examples:
  nearcrawl estimate
  nearcrawl estimate --pages 50e9 --months 1 --head-seconds 0.02
  nearcrawl estimate --measured --json

Exit codes: 0 done, 1 failed, 2 wrong usage or assumptions that contradict each other, 3 nothing was measured yet.
`;

export function estimateCommand(): Command {
  const command = withDatabaseOptions(new Command("estimate"))
    .description("what crawling a whole web takes: crawlers, bandwidth, storage, ranking, the pending list")
    .option("--measured", "beside it, with what this crawl has measured")
    .addHelpText("after", help)
    .action(async (options: EstimateOptions) => await estimate(options));
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

async function estimate(options: EstimateOptions): Promise<void> {
  const assumptions = assumptionsOf(options);
  refuseFaults(assumptions);
  const measured = options.measured ? await measuredAnswer(options, assumptions) : null;
  const answer: EstimateAnswer = {
    assumptions,
    estimate: estimateCrawl(assumptions),
    table53: comparePeaks(),
    measured,
  };
  printAnswer(options, answer, estimateText(answer));
  if (measured !== null && measured.measures.pages === 0) process.exitCode = exitCodes.notFound;
}

function assumptionsOf(options: EstimateOptions): CrawlAssumptions {
  const { pages, outDegree, months, alpha: newShare, urlBytes, replication } = options;
  const { headSeconds, templateBytes, headerBytes, compression, rankedPerSecond } = options;
  const sizes = { pages, outDegree, months, newShare, urlBytes, replication };
  return { ...sizes, headSeconds, templateBytes, headerBytes, compression, rankedPerSecond };
}

function refuseFaults(assumptions: CrawlAssumptions): void {
  const faults = assumptionFaults(assumptions);
  if (faults.length > 0) throw new UsageError(faults.join("; "));
}

async function measuredAnswer(options: EstimateOptions, given: CrawlAssumptions): Promise<MeasuredAnswer> {
  const measures = await readDatabase(commandContext(options), async ({ pool }) => await measureCrawl(pool));
  return withMeasures(given, measures);
}

// An estimate with what a crawl measured in place of what the thesis assumes.

export function withMeasures(given: CrawlAssumptions, measures: CrawlMeasures): MeasuredAnswer {
  const assumptions = assumptionsWith(given, measures);
  const { pagesPerSecondPerCrawler: rate, bytesUpPerPage, storedBytesPerUrl } = measures;
  const inputs = {
    ...(rate ? { pagesPerSecondPerCrawler: rate } : {}),
    ...(bytesUpPerPage ? { bytesUpPerPage } : {}),
    ...(storedBytesPerUrl ? { storedBytesPerUrl } : {}),
  };
  return {
    measures,
    assumptions,
    estimate: estimateCrawl(assumptions, inputs),
    assumed: notMeasured(measures),
  };
}

/** What is stored is one copy. A web smaller than a page's links stays as assumed. */
function assumptionsWith(given: CrawlAssumptions, measures: CrawlMeasures): CrawlAssumptions {
  const replaced = {
    ...given,
    outDegree: Math.max(1, measures.outDegree ?? given.outDegree),
    ...(measures.urlBytes === null ? {} : { urlBytes: measures.urlBytes }),
    ...(measures.storedBytesPerUrl === null ? {} : { replication: 1 }),
  };
  return assumptionFaults(replaced).length === 0 ? replaced : given;
}

function notMeasured(measures: CrawlMeasures): string[] {
  return [
    ...(measures.pagesPerSecondPerCrawler ? [] : ["pages/s of a crawler"]),
    ...(measures.bytesUpPerPage ? [] : ["bytes up per page"]),
    ...(measures.outDegree === null ? ["links a page"] : []),
    ...(measures.storedBytesPerUrl === null ? ["bytes stored per URL"] : []),
    "templates and headers",
    "ranked a second",
  ];
}

// An estimate for people: the thesis' printed figures beside the ones with these assumptions, and with ours measured.

interface EstimateAnswer {
  readonly assumptions: CrawlAssumptions;
  readonly estimate: CrawlEstimate;
  readonly table53: readonly PeakComparison[];
  /** Null: it was not asked for. */
  readonly measured: MeasuredAnswer | null;
}

interface MeasuredAnswer {
  readonly measures: CrawlMeasures;
  readonly assumptions: CrawlAssumptions;
  readonly estimate: CrawlEstimate;
  /** What could not be measured and was taken from the assumptions. */
  readonly assumed: readonly string[];
}

export function estimateText(answer: EstimateAnswer): string {
  return [
    assumptionLines(answer.assumptions),
    figureTable(answer),
    measuredLines(answer.measured),
    table53Text(answer.table53),
  ]
    .filter((block) => block !== "")
    .join("\n\n");
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

function figureTable({ estimate, measured }: EstimateAnswer): string {
  const right = (title: string) => ({ title, align: "right" as const });
  const columns = [{ title: "Figure" }, right("Thesis prints"), right("This estimate")];
  const rows = figureRows.map(({ title, printed, of }) => [
    title,
    printed === "" ? "–" : printed,
    of(estimate),
    ...(measured ? [of(measured.estimate)] : []),
  ]);
  return [
    formatTable(measured ? [...columns, right("With ours measured")] : columns, rows),
    `MB: ${count(thesisMegabyte)} bytes, with which alone equation 5.6 comes to the printed 0.183. The printed 0.2 % is 2.57 %:`,
    "400,000 s of 15,552,000 s. P_max and n1 are the row of table 5.3 for 4 billion pages (see there).",
  ].join("\n");
}

function measuredLines(measured: MeasuredAnswer | null): string {
  if (measured === null) return "";
  const { measures, assumed } = measured;
  const { since, until } = measures;
  return [
    `Ours measured: ${howMany(measures.pages, "page")} by ${howMany(measures.crawlers, "crawler")}${since && until ? `, ${instantWords(since)} to ${instantWords(until)}` : ""}`,
    ...told("pages/s of a crawler", measures.pagesPerSecondPerCrawler),
    ...told("bytes up per page, compressed", measures.bytesUpPerPage),
    ...told(`links a page, of ${howMany(measures.pagesWithLinks, "page")}`, measures.outDegree),
    ...told("bytes of a URL", measures.urlBytes),
    ...told("bytes stored per URL, with indexes, one copy", measures.storedBytesPerUrl),
    ...told("share of revisits that found a change", measures.changedShare),
    ...(assumed.length > 0 ? [`  not measured, assumed as above: ${assumed.join(", ")}`] : []),
  ].join("\n");
}

function told(name: string, value: number | null): string[] {
  return value === null ? [] : [`  ${name}: ${precise(value)}`];
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

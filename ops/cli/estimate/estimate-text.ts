/** An estimate for people: the thesis' printed figures beside the ones with these assumptions, and with ours measured. */

import {
  type CrawlAssumptions,
  type CrawlEstimate,
  type PeakComparison,
  printedOutDegree,
  thesisAssumptions,
  thesisMegabyte,
} from "#coordinator/overview/estimate";
import type { CrawlMeasures } from "#coordinator/overview/overview-reads";
import { howMany, instantWords } from "#core/format";
import { formatTable } from "../output.ts";

export interface EstimateAnswer {
  readonly assumptions: CrawlAssumptions;
  readonly estimate: CrawlEstimate;
  readonly table53: readonly PeakComparison[];
  /** Null: it was not asked for. */
  readonly measured: MeasuredAnswer | null;
}

export interface MeasuredAnswer {
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

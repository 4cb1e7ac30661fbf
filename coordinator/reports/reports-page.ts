/** The reports as pages: what it comes to in a sentence, a picture, a table with links onward, and how it was counted. */
import { bytesText, msText, tooFewWords } from "#core/format";
import { empty, small, tableOf, tile, titleRow } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import { rangePicker, type TimeRange, timeChart } from "../web/time-chart.ts";
import {
  columnText,
  comparedWords,
  countryColumns,
  countryText,
  coverageLead,
  crawlersLead,
  type FarLine,
  farColumns,
  languageColumns,
  languageName,
  type MissedLine,
  missedColumns,
  organisationColumns,
  organisationsLead,
  type PlacementLine,
  pagesText,
  placementColumns,
  placementLead,
  type ReportColumn,
  shareText,
  subnetsLead,
  waitedText,
} from "./report-columns.ts";
import type {
  CoverageReport,
  CrawlersReport,
  OrganisationsReport,
  PlacementReport,
  SubnetsReport,
} from "./reports-api.ts";

interface ReportTable<Line> {
  readonly label: string;
  readonly columns: readonly ReportColumn<Line>[];
  readonly lines: readonly Line[];
  /** Of a line, in place of a second column. */
  readonly bar?: (line: Line) => Html;
}

function reportTable<Line>({ label, columns, lines, bar }: ReportTable<Line>): Html {
  const shown = columns.filter(({ title }) => title !== undefined);
  const isLong = (column: ReportColumn<Line>) => lines.some((line) => columnText(column, line).length > 40);
  const [first = "", ...others] = shown.map((column, at) => {
    const kind = at > 0 && isLong(column) ? "wide break" : "break";
    return `${column.title} .${column.isNumber ? "number" : kind}`;
  });
  return tableOf(label, [first, bar !== undefined && "(Picture) .bar-column", ...others], lines, (line) => {
    const [head = "", ...rest] = shown.map((column) => cell(column, line));
    return [head, bar?.(line) ?? null, ...rest];
  });
}

function cell<Line>(column: ReportColumn<Line>, line: Line): Html {
  const text = html`<bdi>${columnText(column, line)}</bdi>`;
  const to = column.link?.(line) ?? null;
  const more = column.more?.(line) ?? "";
  return html`${to === null ? text : html`<a href="${to}">${text}</a>`}${more !== "" && small(html`<bdi>${more}</bdi>`)}`;
}

export function reportCsv<Line>(columns: readonly ReportColumn<Line>[], lines: readonly Line[]): CsvTable {
  return {
    columns: columns.map(({ key }) => key),
    rows: lines.map((line) => columns.map(({ value }) => value(line))),
  };
}

interface BarPart {
  /** From 0 to 100. */
  readonly width: number;
  readonly kind: "value" | "saved" | "predicted" | "unknown";
}

/** Parts beside each other, the first at the start of the line. */
function bar(parts: readonly BarPart[], label: string): Html {
  let x = 0;
  const drawn = parts.map(({ width, kind }) => {
    const shown = Math.max(0, Math.min(100 - x, width));
    const part = html`<rect class="bar-${kind}" x="${round(x)}" width="${round(shown)}" height="8"/>`;
    x += shown;
    return part;
  });
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="${label}"><rect class="bar-ground" width="100"
height="8"/>${drawn}</svg>`;
}

const round = (value: number) => Math.round(10 * value) / 10;
const most = (values: readonly number[]) => Math.max(1e-9, ...values);

const legend = (...entries: readonly (readonly [kind: BarPart["kind"], words: string])[]) =>
  html`<p class="bar-legend small">${entries.map(([kind, words]) => html`<span class="bar-key bar-key-${kind}">${words}</span> `)}</p>`;

// Coverage.

export interface CoveragePage {
  readonly report: CoverageReport;
  readonly range: TimeRange;
  /** As the address has it. */
  readonly query: Readonly<Record<string, string | null>>;
}

export function coverageReportBody({ report, range, query }: CoveragePage): Html {
  const { all, day } = report;
  if (day === null)
    return html`${titleRow("Coverage")}
${empty(
  "Nothing was counted yet.",
  html`A running coordinator counts hosts and pages by country and language once an hour, first within a minute of its
start. Meanwhile, <a href="/sites">the list of sites</a> has them one by one.`,
)}`;
  return html`${titleRow("Coverage", dayForm(report, query))}
<p class="lead">${coverageLead(report)}</p>
${chosen(report, query)}
<dl class="tiles">
${tile("Hosts", countText(all.hosts))}
${tile("Pages", countText(all.pages), `${bytesText(all.bytes)} fetched so far`)}
${tile("Fetched within 7 days", shareText(all.fresh7), sampleWords(all))}
${tile("Fetched within 30 days", shareText(all.fresh30), sampleWords(all))}
</dl>
<section><h2>Over time</h2>
${rangePicker("/reports/coverage", query, range)}
<div class="charts">
${timeChart({
  ...{ title: "Pages", range, text: countText, empty: noDays },
  series: [
    { name: "Pages", points: report.days.map(({ day: of, pages }) => ({ at: noon(of), value: pages })) },
  ],
})}
${timeChart({
  ...{ title: "Fetched lately", range, text: (share: number) => shareText(share), empty: noDays },
  series: [
    {
      name: "within 7 days",
      points: report.days.map(({ day: of, fresh7 }) => ({ at: noon(of), value: fresh7 })),
    },
    {
      name: "within 30 days",
      points: report.days.map(({ day: of, fresh30 }) => ({ at: noon(of), value: fresh30 })),
    },
  ],
})}
</div></section>
<section><h2>By country</h2>
${coverageTable("Coverage by country", countryColumns, report.countries)}</section>
<section><h2>By language</h2>
${coverageTable("Coverage by language", languageColumns, report.languages)}</section>
<p class="small">As of ${day}, counted ${report.countedAt === null ? "" : instant(report.countedAt)}, once an hour.
Countries are those that the registries name for a host's subnet, wherever its servers stand; languages are those of most of a host's pages.
Of a large index the age of a random part of the pages is looked at; under 30 of them say nothing.</p>`;
}

const noDays = "No day of this range was counted.";
const noon = (day: string) => new Date(`${day}T12:00:00Z`);

function sampleWords({ sampledPages, pages }: CoverageReport["all"]): string {
  return sampledPages < pages ? `of ${countText(sampledPages)} pages looked at` : "of all pages";
}

function coverageTable(
  label: string,
  columns: typeof countryColumns,
  lines: CoverageReport["countries"],
): Html {
  if (lines.length === 0) return empty("No host is counted.", "");
  const mostPages = most(lines.map(({ pages }) => pages));
  return reportTable({
    ...{ label, columns, lines: lines.slice(0, 250) },
    bar: ({ pages }) =>
      bar([{ width: (100 * pages) / mostPages, kind: "value" }], `${countText(pages)} pages`),
  });
}

function dayForm(
  { day, countries, languages, country: of, language }: CoverageReport,
  query: CoveragePage["query"],
): Html {
  const kept = ["range", "since", "until"].flatMap((name) =>
    query[name] ? [html`<input type="hidden" name="${name}" value="${query[name]}">`] : [],
  );
  const choice = (value: string, name: string, current: string | null) =>
    html`<option value="${value}"${value === (current ?? "") ? html` selected` : nothing}>${name}</option>`;
  return html`<form class="filters" method="get" action="/reports/coverage">${kept}
<label class="hidden" for="report-day">As of</label><input id="report-day" type="date" name="day" value="${query.day ?? day ?? ""}">
<label class="hidden" for="report-country">Country</label><select id="report-country"
name="country">${choice("", "every country", of)}${options(countries, of).map((key) => choice(key, countryText(key), of))}</select>
<label class="hidden" for="report-language">Language</label><select id="report-language"
name="language">${choice("", "every language", language)}${options(languages, language).map((key) => choice(key, languageName(key), language))}</select>
<button class="slim">Show</button></form>`;
}

function options(lines: CoverageReport["countries"], chosenKey: string | null): string[] {
  const keys = lines.map(({ key }) => key).filter((key) => key !== "");
  return chosenKey !== null && !keys.includes(chosenKey) ? [chosenKey, ...keys] : keys;
}

function chosen({ country: of, language }: CoverageReport, query: CoveragePage["query"]): Html {
  if (of === null && language === null) return nothing;
  return html`<p class="small"><a href="${pathWith("/reports/coverage", { ...query, country: null, language: null })}">Every country and language</a></p>`;
}

// Organisations.

export function organisationsReportBody(report: OrganisationsReport): Html {
  const { lines } = report;
  if (lines.length === 0)
    return html`${titleRow("Organisations")}
${empty("No page was crawled yet.", html`<a href="/submit">Submit a URL</a>: its host is looked up, and counts for whoever holds its addresses.`)}`;
  const mostPages = most(lines.map(({ pages }) => pages));
  return html`${titleRow("Organisations")}
<p class="lead">${organisationsLead(report)}</p>
<dl class="tiles">
${tile("Organisations", countText(report.organisations))}
${tile("Subnets with hosts", countText(report.subnets))}
${tile("Hosts", countText(report.hosts))}
${tile("Pages", countText(report.pages), `${bytesText(report.bytes)} fetched so far`)}
</dl>
<section aria-label="Organisations">${reportTable({
    ...{ label: "Organisations by pages", columns: organisationColumns, lines },
    bar: ({ pages }) =>
      bar([{ width: (100 * pages) / mostPages, kind: "value" }], `${countText(pages)} pages`),
  })}</section>
<p class="small">${lines.length < report.organisations ? `The ${countText(lines.length)} with the most pages. ` : ""}By the holder that the registries name
for each host's subnet. A hoster's customers count for the hoster where the registry does not name them.</p>`;
}

// Subnets that are served badly.

export function subnetsReportBody(report: SubnetsReport): Html {
  const { lines, compared } = report;
  const slowest = most(lines.map(({ rttMs }) => rttMs));
  return html`${titleRow("Subnets served badly")}
<p class="lead">${subnetsLead(report)}</p>
${
  lines.length === 0
    ? compared.subnets === 0
      ? empty(
          "There is nothing to compare.",
          html`Subnets are measured when a host in them is known and crawlers are online: see <a href="/fleet">the crawlers</a> and <a
href="/fleet/queue">the queue</a>.`,
        )
      : empty(
          "Every subnet is served about as well as it can be.",
          html`<a href="/reports/placement">Where one more crawler would help</a>.`,
        )
    : html`${legend(["value", "RTT that would stay"], ["saved", "RTT that could be saved"])}
${reportTable({
  ...{ label: "Subnets by what would be saved", columns: farColumns, lines },
  bar: (line) => farBar(line, slowest),
})}`
}
<p class="small">${comparedWords(compared)} ${lines.length < report.far ? `The first ${countText(lines.length)} are listed. ` : ""}In the order of pages
per day times what the best help would save. Less than 10 ms is not counted.</p>`;
}

function farBar({ rttMs, savesMs }: FarLine, slowest: number): Html {
  const rest = (100 * Math.max(0, rttMs - savesMs)) / slowest;
  return bar(
    [
      { width: rest, kind: "value" },
      { width: (100 * savesMs) / slowest, kind: "saved" },
    ],
    `${msText(savesMs)} of ${msText(rttMs)} could be saved`,
  );
}

// Crawlers that would be missed.

export function crawlersReportBody(report: CrawlersReport): Html {
  const { lines } = report;
  if (lines.length === 0)
    return html`${titleRow("Crawlers that would be missed")}
${empty("No crawler is online.", html`<a href="/fleet">The crawlers</a> say why; <a href="/fleet/invitations">invite one</a>.`)}`;
  const mostPages = most(lines.map(({ pagesPerDay }) => pagesPerDay));
  return html`${titleRow("Crawlers that would be missed")}
<p class="lead">${crawlersLead(report)}</p>
${legend(["value", "next nearest measured"], ["predicted", "predicted"], ["unknown", "nobody else known"])}
${reportTable({
  ...{ label: "Crawlers by what would be lost", columns: missedColumns, lines },
  bar: (line) => missedBar(line, mostPages),
})}
<p class="small">${comparedWords(report.compared)} ${
    lines.length < report.crawlers
      ? `The first ${countText(lines.length)} of ${countText(report.crawlers)} crawlers are listed. `
      : ""
  }Each subnet would go to the next nearest crawler, as measured in its last probe round, or as predicted from the crawlers'
distances to each other. Budgets are not considered.</p>`;
}

function missedBar(line: MissedLine, mostPages: number): Html {
  const { measuredPages, predictedPages, unknownPages, pagesPerDay } = line;
  const width = (pages: number) => (100 * pages) / mostPages;
  return bar(
    [
      { width: width(measuredPages), kind: "value" },
      { width: width(predictedPages), kind: "predicted" },
      { width: width(unknownPages), kind: "unknown" },
    ],
    `${pagesText(pagesPerDay)} pages per day`,
  );
}

// Where the next crawlers should stand.

export function placementReportBody(report: PlacementReport): Html {
  const { lines, isEstimated } = report;
  const slowest = most(lines.map(({ nowMs }) => nowMs));
  return html`${titleRow("Where the next crawlers should stand")}
<p class="lead">${placementLead(report)}</p>
${
  lines.length === 0
    ? empty(
        "Nothing to place.",
        html`Savings are told from subnets with hosts that were measured: see <a href="/reports/subnets">how subnets are served</a>.`,
      )
    : html`${isEstimated ? legend(["value", "expected RTT"], ["saved", "saved"]) : nothing}
${reportTable({
  ...{ label: "Places by what a crawler there would save", columns: placementColumns, lines },
  bar: (line) => placementBar(line, slowest),
})}
<p><a href="/fleet/invitations">Invite a crawler</a></p>`
}
<p class="small">A crawler is expected to reach its own place as fast as crawlers reach their own countries now:
the median of the subnets measured so, of the same country where there are 30, else of all.
What it would save elsewhere follows from what the same crawlers measured of both places, where they measured 5 subnets of its own.
Countries without a crawler and holders with 5 measured subnets are compared, each beside those before it;
± is the standard deviation for a page.${report.meanRttMs === null ? "" : ` ${countText(report.pagesPerDay)} pages per day come from measured subnets.`}</p>`;
}

function placementBar({ nowMs, thenMs, savedMsPages }: PlacementLine, slowest: number): Html {
  if (thenMs === null)
    return bar(
      [{ width: (100 * nowMs) / slowest, kind: "value" }],
      `${msText(nowMs)} now, expected: ${tooFewWords}`,
    );
  return bar(
    [
      { width: (100 * Math.min(thenMs, nowMs)) / slowest, kind: "value" },
      { width: (100 * Math.max(0, nowMs - thenMs)) / slowest, kind: "saved" },
    ],
    `${msText(nowMs)} now, ${msText(thenMs)} expected, ${waitedText(savedMsPages ?? 0)} per day`,
  );
}

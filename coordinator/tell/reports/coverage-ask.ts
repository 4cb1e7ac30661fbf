/** /reports/coverage: hosts and pages by country and language, their freshness, and its history. */
import { z } from "zod";
import { bytesText, howMany, tooFewWords } from "#core/format";
import { timeRange } from "#core/time-range";
import { column, filters, history, lead, member, note, section, table, tiles } from "../../ask/document.ts";
import { type Document, type Node, operationsOf } from "../../ask/operation.ts";
import { type ChartHistory, chartHistory, rangeParameters } from "../../web/chart-history.ts";
import { countText, instant } from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";
import type { ReportReads } from "./report-store.ts";
import { countryText, figure, pagesBar, shareText } from "./report-table-page.ts";
import { coverageReport, isDay } from "./reports.ts";
import { type CoverageReport, coverageSchema } from "./reports-api.ts";

const { get } = operationsOf<{ readonly reads: ReportReads }>();

const coverageQuestion = z.object({
  day: z
    .string()
    .refine(isDay, "not a day such as 2026-03-01")
    .optional()
    .meta({
      ...{ title: "As of", format: "date", example: "2026-03-01" },
      description: "As of this day; left out: the latest.",
    }),
  country: z
    .string()
    .regex(/^[A-Za-z]{2}$/, "not a country code of two letters")
    .optional()
    .meta({ title: "Country", description: "Only hosts of this country.", example: "DE" }),
  language: z
    .string()
    .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$/, "not a language's code such as de")
    .optional()
    .meta({ title: "Language", description: "Only hosts of this language.", example: "de" }),
  ...rangeParameters,
});
type CoverageQuestion = z.infer<typeof coverageQuestion>;

export const coverageOperations = {
  coverageReport: get({
    ...{ path: "/api/reports/coverage", needs: "read" },
    navigation: { group: "Crawl", order: 50, entry: "Reports", tab: "Coverage" },
    summary: "Coverage by country and language, over time",
    description: "Counted once an hour; what a day had last stays.",
    input: coverageQuestion,
    output: coverageSchema,
    faults: { 400: "That is no day, country or language" },
    command: {
      name: "report coverage",
      group: {
        says: "what the crawl comes to: coverage, organisations, subnets, crawlers, placement",
        help: `

The same as pages: /reports/coverage, /reports/organisations and so on.

Examples:
  nearcrawl report coverage --country DE
  nearcrawl report subnets --csv > subnets.csv`,
      },
    },
    run: async ({ input, ports, now }) => {
      const [country = null, language = null] = [input.country?.toUpperCase(), input.language?.toLowerCase()];
      const range = timeRange(input, now, usualRange);
      return await coverageReport(ports.reads, { day: input.day ?? null, country, language, ...range }, now);
    },
    view: (report, { input, now }) => coverageDocument(report, input, now),
  }),
};

type CoverageLine = CoverageReport["countries"][number];

const usualRange = "90d";

const languageNames = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

function languageName(code: string): string {
  if (code === "") return "not known yet";
  try {
    return languageNames.of(code) ?? code;
  } catch {
    return code;
  }
}

function coverageDocument(report: CoverageReport, asked: CoverageQuestion, now: Date): Document {
  const { all, day, countedAt, countries, languages } = report;
  const title = "Coverage";
  if (day === null) return { title, nodes: [coverageTable("country", [], nothingCounted)] };
  const sampled =
    all.sampledPages < all.pages ? `of ${countText(all.sampledPages)} sampled pages` : "of all pages";
  const fresh = (share: number | null) => (share === null ? tooFewWords : shareText(share));
  return {
    title,
    nodes: [
      lead(coverageLead(report)),
      filters({
        ...{ names: ["day", "country", "language"], label: "Part of the crawl" },
        choices: {
          country: choicesOf(countries, report.country, countryText),
          language: choicesOf(languages, report.language, languageName),
        },
      }),
      tiles([
        ["Hosts", countText(all.hosts)],
        ["Pages", countText(all.pages), `${bytesText(all.bytes)} fetched so far`],
        ["Fetched within 7 days", fresh(all.fresh7), sampled],
        ["Fetched within 30 days", fresh(all.fresh30), sampled],
      ]),
      history(coverageHistory(report, asked, now)),
      section("By country", [coverageTable("country", countries)]),
      section("By language", [coverageTable("language", languages)]),
      note(html`As of ${day}, counted ${countedAt && instant(countedAt)}, once an hour.
Countries are those that the registries name for a host's subnet, wherever its servers stand; languages are those of most of a host's pages.
A large index is sampled at random; shares are shown from 30 pages.`),
    ],
  };
}

const nothingCounted = [
  "Nothing was counted yet.",
  html`A running coordinator counts hosts and pages by country and language once an hour, first within a minute of its
start. Meanwhile, <a href="/sites">the list of sites</a> has them one by one.`,
] as const;

function coverageTable(
  by: "country" | "language",
  rows: readonly CoverageLine[],
  empty: readonly [string, Html | string] = ["No host is counted.", ""],
): Node {
  const name = by === "country" ? countryText : languageName;
  return table<CoverageLine>({
    ...{ label: `Coverage by ${by}`, rows, empty, most: 250 },
    columns: [
      column(by, by === "country" ? "Country" : "Language", ({ key }) => name(key), {
        value: ({ key }) => key,
        link: ({ key }) => (key === "" ? null : pathWith("/sites", { [by]: key })),
      }),
      pagesBar(rows),
      figure("hosts", "Hosts"),
      figure("pages", "Pages"),
      figure("fresh7", "Within 7 days", shareText, { key: "fresh_7" }),
      figure("fresh30", "Within 30 days", shareText, { key: "fresh_30" }),
      figure("bytes", "Fetched", "bytes"),
      member("sampledPages"),
    ],
  });
}

/** The values to choose from: those of the report, and the chosen one even if it is missing. */
function choicesOf(
  lines: readonly CoverageLine[],
  chosen: string | null,
  name: (key: string) => string,
): Record<string, string> {
  const keys = [...(chosen === null ? [] : [chosen]), ...lines.map(({ key }) => key)];
  return Object.fromEntries(keys.filter((key) => key !== "").map((key) => [key, name(key)]));
}

function coverageHistory({ days }: CoverageReport, asked: CoverageQuestion, now: Date): ChartHistory {
  // Each day is drawn at its noon. In the morning, today is drawn at this moment, because charts leave out the future.
  const noonOrNow = (day: string) => new Date(Math.min(Date.parse(`${day}T12:00:00.000Z`), now.getTime()));
  const times = days.map(({ day }) => noonOrNow(day).toISOString());
  const whenEmpty = "No data in this range.";
  const charts: ChartHistory["charts"] = [
    {
      ...{ key: "pages", title: "Pages", unit: "count", times, whenEmpty },
      series: [{ name: "Pages", values: days.map(({ pages }) => pages) }],
    },
    {
      ...{ key: "fresh", title: "Recently fetched", unit: "share", times, whenEmpty },
      series: [
        { name: "within 7 days", values: days.map(({ fresh7 }) => fresh7) },
        { name: "within 30 days", values: days.map(({ fresh30 }) => fresh30) },
      ],
    },
  ];
  return chartHistory(timeRange(asked, now, usualRange), charts, { marks: [], more: 0 });
}

function coverageLead({ all, country, language, countries, languages }: CoverageReport): string {
  const { hosts, pages, fresh7 } = all;
  const known = (lines: readonly CoverageLine[]) => lines.filter(({ key }) => key !== "").length;
  const [ofCountries, ofLanguages] = [known(countries), known(languages)];
  const where = [
    ...(ofCountries > 0 ? [howMany(ofCountries, "country", "countries")] : []),
    ...(ofLanguages > 0 ? [howMany(ofLanguages, "language")] : []),
  ].join(" and ");
  const fresh = fresh7 === null ? `freshness: ${tooFewWords}` : `${shareText(fresh7)} fetched within 7 days`;
  const figures = `${howMany(hosts, "host")} with ${howMany(pages, "page")}`;
  const chosen = [
    ...(country === null ? [] : [countryText(country)]),
    ...(language === null ? [] : [languageName(language)]),
  ];
  if (chosen.length > 0) return `${chosen.join(", ")}: ${figures}; ${fresh}.`;
  return `${figures}${where === "" ? "" : ` in ${where}`}; ${fresh}.`;
}

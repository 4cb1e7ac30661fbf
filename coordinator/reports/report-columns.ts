/** The columns of each report's tables, which page, CSV and command share; and what each report says first. */
import { countryName } from "#core/country-names";
import { bytesText, howMany, msText, tooFewWords } from "#core/format";
import type {
  ComparedPart,
  CoverageReport,
  CrawlersReport,
  OrganisationsReport,
  PlacementReport,
  SubnetsReport,
} from "./reports-api.ts";

export interface ReportColumn<Line> {
  /** In CSV. */
  readonly key: string;
  /** On the page; left out: in CSV alone. */
  readonly title?: string;
  readonly isNumber?: boolean;
  readonly value: (line: Line) => string | number | null;
  /** For people; left out: the value. */
  readonly text?: (line: Line) => string;
  /** Where it leads on the page. */
  readonly link?: (line: Line) => string | null;
  /** Of the page: below the text, in small letters. */
  readonly more?: (line: Line) => string;
}

export function columnText<Line>({ value, text }: ReportColumn<Line>, line: Line): string {
  if (text !== undefined) return text(line);
  const plain = value(line);
  return plain === null ? "–" : typeof plain === "number" ? countText(plain) : plain;
}

type ForPeople<Line> = Omit<ReportColumn<Line>, "key" | "title" | "isNumber" | "value">;

/** The columns of lines of one kind: of texts, of numbers with their words, and such as stand in CSV alone. */
const columnsOf = <Line>() => ({
  text: (
    key: string,
    title: string,
    value: ReportColumn<Line>["value"],
    shown: ForPeople<Line> = {},
  ): ReportColumn<Line> => ({ key, title, value, ...shown }),
  number: (
    key: string,
    title: string,
    value: (line: Line) => number | null,
    words: (value: number) => string = countText,
    shown: ForPeople<Line> = {},
  ): ReportColumn<Line> => {
    const text = (line: Line) => {
      const known = value(line);
      return known === null ? tooFewWords : words(known);
    };
    return { key, title, isNumber: true, value, text, ...shown };
  },
  inCsv: (key: string, value: ReportColumn<Line>["value"]): ReportColumn<Line> => ({ key, value }),
});

const countText = (count: number) => Math.round(count).toLocaleString("en-GB");

/** Few pages a day have a decimal. */
export const pagesText = (pages: number): string =>
  pages > 0 && pages < 10 ? pages.toFixed(1) : countText(pages);

/** A share of at least 30 samples; null: there were fewer. */
export function shareText(share: number | null): string {
  if (share === null) return tooFewWords;
  return share > 0 && share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/** Round-trip time of a day's pages together: "44 ms", "1.2 h". */
export function waitedText(msPages: number): string {
  const seconds = msPages / 1000;
  if (seconds < 1) return `${Math.round(msPages)} ms`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(seconds < 36_000 ? 1 : 0)} h`;
}

const who = (question: string) => `/who?${new URLSearchParams({ q: question })}`;
const sites = (filter: Record<string, string>) => `/sites?${new URLSearchParams(filter)}`;
const crawlerPage = (name: string) => `/crawlers/${encodeURIComponent(name)}`;

// Coverage.

type CoverageLine = CoverageReport["countries"][number];

const ofCoverage = columnsOf<CoverageLine>();

const coverageFigures = [
  ofCoverage.number("hosts", "Hosts", ({ hosts }) => hosts),
  ofCoverage.number("pages", "Pages", ({ pages }) => pages),
  ofCoverage.number("fresh_7", "Within 7 days", ({ fresh7 }) => fresh7, shareText),
  ofCoverage.number("fresh_30", "Within 30 days", ({ fresh30 }) => fresh30, shareText),
  ofCoverage.number("bytes", "Fetched", ({ bytes }) => bytes, bytesText),
  ofCoverage.inCsv("sampled_pages", ({ sampledPages }) => sampledPages),
];

const languageNames = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

export function languageName(code: string): string {
  if (code === "") return "not known yet";
  try {
    return languageNames.of(code) ?? code;
  } catch {
    return code;
  }
}

export const countryText = (code: string | null): string =>
  code === null || code === "" ? "not known" : countryName(code);

export const countryColumns = [
  ofCoverage.text("country", "Country", ({ key }) => key, {
    text: ({ key }) => countryText(key),
    link: ({ key }) => (key === "" ? null : sites({ country: key })),
  }),
  ...coverageFigures,
];

export const languageColumns = [
  ofCoverage.text("language", "Language", ({ key }) => key, {
    text: ({ key }) => languageName(key),
    link: ({ key }) => (key === "" ? null : sites({ language: key })),
  }),
  ...coverageFigures,
];

export function coverageLead(report: CoverageReport): string {
  if (report.day === null) return "Nothing was counted yet.";
  const { hosts, pages, fresh7 } = report.all;
  const chosen = [
    ...(report.country === null ? [] : [countryText(report.country)]),
    ...(report.language === null ? [] : [languageName(report.language)]),
  ];
  const [countries, languages] = [report.countries, report.languages].map(
    (lines) => lines.filter(({ key }) => key !== "").length,
  );
  const where = [
    ...(countries ? [number(countries, "country", "countries")] : []),
    ...(languages ? [number(languages, "language", "languages")] : []),
  ].join(" and ");
  const fresh = fresh7 === null ? `freshness: ${tooFewWords}` : `${shareText(fresh7)} fetched within 7 days`;
  const figures = `${howMany(hosts, "host")} with ${howMany(pages, "page")}`;
  if (chosen.length > 0) return `${chosen.join(", ")}: ${figures}; ${fresh}.`;
  return `${figures}${where === "" ? "" : ` in ${where}`}; ${fresh}.`;
}

const number = (count: number, one: string, many: string) =>
  count === 1 ? `1 ${one}` : `${countText(count)} ${many}`;

// Organisations.

type OrganisationLine = OrganisationsReport["lines"][number];

const ofOrganisations = columnsOf<OrganisationLine>();

export const organisationColumns = [
  ofOrganisations.text("organisation", "Organisation", ({ name }) => name, {
    text: ({ name }) => name ?? "no holder registered",
    link: ({ name, handle }) => (name === null ? null : who(handle ?? name)),
    more: ({ handle }) => handle ?? "",
  }),
  ofOrganisations.inCsv("handle", ({ handle }) => handle),
  ofOrganisations.text("country", "Country", ({ country }) => country),
  ofOrganisations.number("subnets", "Subnets", ({ subnets }) => subnets),
  ofOrganisations.number("hosts", "Hosts", ({ hosts }) => hosts, countText, {
    link: ({ name, handle }) => (name === null ? null : sites({ organisation: handle ?? name })),
  }),
  ofOrganisations.number("pages", "Pages", ({ pages }) => pages),
  ofOrganisations.number("share", "Share", ({ share }) => share, shareText),
  ofOrganisations.number("bytes", "Fetched", ({ bytes }) => bytes, bytesText),
];

export function organisationsLead({ organisations, pages, lines }: OrganisationsReport): string {
  const first = lines.find(({ name }) => name !== null);
  if (first === undefined || pages === 0) return "No page was crawled yet.";
  const top = lines.slice(0, 10);
  const share = top.reduce((sum, one) => sum + one.pages, 0) / pages;
  const most =
    first.share === null ? "" : ` ${first.name ?? ""} has most: ${shareText(first.share)} of all pages.`;
  const ten =
    organisations > 10 && first.share !== null ? ` The first ten together have ${shareText(share)}.` : "";
  return `${howMany(pages, "page")} lie with ${howMany(organisations, "organisation")}.${most}${ten}`;
}

// Subnets that are served badly.

export type FarLine = SubnetsReport["lines"][number];

const ofFar = columnsOf<FarLine>();

export const farColumns = [
  ofFar.text("subnet", "Subnet", ({ subnet }) => subnet, {
    link: ({ subnet }) => who(subnet),
    more: ({ holder, name, country }) =>
      [holder ?? name, country ?? ""].filter((text) => text !== "").join(", "),
  }),
  ofFar.inCsv("holder", ({ holder }) => holder),
  ofFar.inCsv("country", ({ country }) => country),
  ofFar.text("crawler", "Crawler", ({ crawler }) => crawler, {
    link: ({ crawler }) => crawlerPage(crawler),
    more: ({ crawlerCountry }) => (crawlerCountry === null ? "" : `in ${crawlerCountry}`),
  }),
  ofFar.inCsv("crawler_country", ({ crawlerCountry }) => crawlerCountry),
  ofFar.number("rtt_ms", "RTT", ({ rttMs }) => rttMs, msText),
  ofFar.number("pages_per_day", "Pages per day", ({ pagesPerDay }) => pagesPerDay, pagesText),
  ofFar.number("saves_ms", "Would save", ({ savesMs }) => savesMs, msText, {
    more: ({ savedMsPages }) => `${waitedText(savedMsPages)} per day`,
  }),
  ofFar.inCsv("saved_ms_pages", ({ savedMsPages }) => savedMsPages),
  ofFar.inCsv("help", ({ help }) => help),
  ofFar.text("words", "What would help", ({ words }) => words),
  ofFar.inCsv("decided_at", ({ decidedAt }) => decidedAt?.toISOString() ?? null),
];

export function subnetsLead({ far, savedMsPages, compared }: SubnetsReport): string {
  if (compared.subnets === 0) return "No subnet with hosts was measured yet.";
  if (far === 0)
    return `None of ${howMany(compared.subnets, "measured subnet")} is served worse than it could be.`;
  return (
    `${howMany(far, "subnet")} of ${countText(compared.subnets)} could be served from nearer, ` +
    `which would save ${waitedText(savedMsPages)} of waiting per day.`
  );
}

export function comparedWords(compared: ComparedPart): string {
  const { subnets, ofSubnets, pagesPerDay, ofPagesPerDay, unmeasuredSubnets, unmeasuredPagesPerDay } =
    compared;
  const part =
    subnets === ofSubnets
      ? `All ${howMany(subnets, "measured subnet")} with hosts are compared.`
      : `The ${countText(subnets)} subnets with the most to wait for are compared, of ${countText(ofSubnets)} that were measured: ` +
        `${pagesText(pagesPerDay)} of ${pagesText(ofPagesPerDay)} pages per day.`;
  return unmeasuredSubnets === 0
    ? part
    : `${part} ${howMany(unmeasuredSubnets, "subnet")} with ${pagesText(unmeasuredPagesPerDay)} pages per day ` +
        `${unmeasuredSubnets === 1 ? "was" : "were"} never measured.`;
}

// Crawlers that would be missed.

export type MissedLine = CrawlersReport["lines"][number];

const ofMissed = columnsOf<MissedLine>();

export const missedColumns = [
  ofMissed.text("crawler", "Crawler", ({ crawler }) => crawler, {
    link: ({ crawler }) => crawlerPage(crawler),
    more: ({ country }) => (country === null ? "" : countryText(country)),
  }),
  ofMissed.inCsv("country", ({ country }) => country),
  ofMissed.number("subnets", "Subnets", ({ subnets }) => subnets),
  ofMissed.number("pages_per_day", "Pages per day", ({ pagesPerDay }) => pagesPerDay, pagesText),
  ofMissed.number("lost_ms_pages", "Lost per day", ({ lostMsPages }) => lostMsPages, waitedText),
  ofMissed.number(
    "mean_lost_ms",
    "Per page",
    ({ meanLostMs }) => meanLostMs,
    (ms) => `+${msText(ms)}`,
  ),
  ofMissed.text("successor", "Next nearest", ({ successor }) => successor, {
    link: ({ successor }) => (successor === null ? null : crawlerPage(successor)),
    more: ({ successor, successorPages }) =>
      successor === null ? "" : `for ${pagesText(successorPages)} pages per day`,
  }),
  ofMissed.inCsv("measured_pages", ({ measuredPages }) => measuredPages),
  ofMissed.inCsv("predicted_pages", ({ predictedPages }) => predictedPages),
  ofMissed.inCsv("unknown_pages", ({ unknownPages }) => unknownPages),
  ofMissed.inCsv("spread_ms", ({ spreadMs }) => spreadMs),
  ofMissed.text("how_sure", "How sure", (line) => sureWords(line)),
];

/** "64 % measured, 36 % predicted ± 12 ms". */
export function sureWords({ measuredPages, predictedPages, unknownPages, spreadMs }: MissedLine): string {
  const all = measuredPages + predictedPages + unknownPages;
  if (all === 0) return "nothing to fetch";
  const share = (pages: number) => `${Math.round((100 * pages) / all)} %`;
  return [
    ...(measuredPages > 0 ? [`${share(measuredPages)} measured`] : []),
    ...(predictedPages > 0
      ? [`${share(predictedPages)} predicted${spreadMs === null ? "" : ` ± ${msText(spreadMs)}`}`]
      : []),
    ...(unknownPages > 0 ? [`${share(unknownPages)} not known`] : []),
  ].join(", ");
}

export function crawlersLead({ lines, crawlers }: CrawlersReport): string {
  const [first] = lines;
  if (first === undefined) return "No crawler is online.";
  if (crawlers === 1) return `${first.crawler} is the only crawler online: without it, nothing is crawled.`;
  if (first.lostMsPages === 0) return "No crawler is known to be nearer than the next one to anything.";
  return (
    `${first.crawler} would be missed most: without it, ` +
    `its ${pagesText(first.pagesPerDay)} pages per day would take ${waitedText(first.lostMsPages)} longer in all.`
  );
}

// Where the next crawlers should stand.

export type PlacementLine = PlacementReport["lines"][number];

const ofPlacement = columnsOf<PlacementLine>();

export const placementColumns = [
  ofPlacement.text("place", "Place", ({ place }) => place, {
    text: (line) => placeText(line),
    link: ({ kind, place }) => who(kind === "country" ? `country:${place}` : place),
  }),
  ofPlacement.inCsv("kind", ({ kind }) => kind),
  ofPlacement.inCsv("country", ({ country }) => country ?? ""),
  ofPlacement.number("pages_per_day", "Pages per day", ({ pagesPerDay }) => pagesPerDay, pagesText),
  ofPlacement.number("now_ms", "RTT now", ({ nowMs }) => nowMs, msText),
  ofPlacement.number("then_ms", "Expected", ({ thenMs }) => thenMs, msText, {
    text: ({ thenMs, spreadMs }) =>
      thenMs === null ? tooFewWords : `${msText(thenMs)} ± ${msText(spreadMs ?? 0)}`,
    more: (line) => basisWords(line),
  }),
  ofPlacement.number("saved_ms_pages", "Saves per day", ({ savedMsPages }) => savedMsPages, waitedText),
  ofPlacement.inCsv("spread_ms", ({ spreadMs }) => spreadMs),
  ofPlacement.inCsv("place_subnets", ({ placeSubnets }) => placeSubnets),
  ofPlacement.inCsv("measured_subnets", ({ measuredSubnets }) => measuredSubnets),
  ofPlacement.text("subnets", "Where it matters most", ({ subnets }) =>
    subnets.map(({ subnet, holder }) => (holder === null ? subnet : `${subnet} (${holder})`)).join("; "),
  ),
];

/** "India", or "Example Networks, India". */
export function placeText({ kind, place, country }: PlacementLine): string {
  if (kind === "country") return countryText(place);
  return country === null ? place : `${place}, ${countryText(country)}`;
}

function basisWords({ thenMs, placeSubnets, measuredSubnets, isOwnMeasure }: PlacementLine): string {
  if (thenMs === null) return "";
  const home = `${howMany(measuredSubnets, "subnet")} measured from ${isOwnMeasure ? "within the country" : "their own country, anywhere"}`;
  return `${howMany(placeSubnets, "subnet")} here; ${home}`;
}

export function placementLead(report: PlacementReport): string {
  const [first, ...others] = report.lines;
  if (report.pagesPerDay === 0) return "Nothing is fetched from a measured subnet yet.";
  if (first === undefined) return "No place is known where one more crawler would be nearer to anything.";
  if (!report.isEstimated)
    return `Fewer than 30 subnets were measured from their own country: ${tooFewWords} to expect anything. Most is waited for here: ${placeText(first)}.`;
  const then = others.slice(0, 4).map((line) => placeText(line));
  const next = then.length === 0 ? "" : ` Then, each beside those before it: ${then.join("; ")}.`;
  const mean =
    report.meanRttMs === null || report.thenMeanRttMs === null
      ? ""
      : ` With one in each place listed, the mean RTT goes from ${msText(report.meanRttMs)} to ${msText(report.thenMeanRttMs)}.`;
  return `Next: ${placeText(first)}. A crawler there would save about ${waitedText(first.savedMsPages ?? 0)} of waiting per day.${next}${mean}`;
}

/** Fetches that failed: whose fault it was, by crawler, and the latest of them with words. */
import { mayDo } from "#core/actor";
import { leastSamples, sampledShare } from "#core/format";
import { blameNames } from "../fleet/crawler-page.ts";
import type { Blame, FailureLine, FailureShares } from "../fleet/fleet-api.ts";
import type { ChartHistory } from "../web/chart-history.ts";
import { crawlerOr, empty, options, small, tableOf, tile, titleRow } from "../web/components.ts";
import { type FilterChip, filterChips } from "../web/filter-chips.ts";
import { askAbout, countText, instant, percentText } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { historySection } from "../web/time-chart.ts";

export interface FailuresPage {
  readonly blame: Blame | "";
  readonly crawler: string;
  readonly host: string;
  readonly hours: 1 | 24;
  readonly shares: FailureShares;
  readonly latest: readonly FailureLine[];
  readonly isCut: boolean;
  readonly history: ChartHistory;
}

const blames = ["target", "network", "crawler", "us"] as const;

function chipsOf({ blame, crawler, host }: FailuresPage): FilterChip[] {
  const chips = [
    { name: "blame", label: "The fault of", value: blame === "" ? "" : blameNames[blame] },
    { name: "crawler", label: "Crawler", value: crawler },
    { name: "host", label: "Host", value: host },
  ];
  return chips.filter(({ value }) => value !== "");
}

export function failuresBody(page: FailuresPage, viewer: PageViewer): Html {
  const { blame, crawler, host, hours, latest, isCut } = page;
  const query = { blame, crawler, host, hours: hours === 24 ? null : String(hours) };
  const causes = [["", "anybody"], ...blames.map((one) => [one, blameNames[one]] as const)] as const;
  const spans = [
    ["1", "hour"],
    ["24", "24 hours"],
  ] as const;
  return html`${titleRow("Failed fetches")}
<form class="filter-row fleet-filters" method="get" action="/fleet/failures" role="search" aria-label="Failed fetches">
<label>The fault of <select name="blame">${options(causes, blame)}</select></label>
<label>Crawler <input name="crawler" value="${crawler}" maxlength="63" size="14"></label>
<label>Host <input name="host" value="${host}" maxlength="253" size="20"></label>
<label>In the last <select name="hours">${options(spans, String(hours))}</select></label>
<button class="slim">Show</button></form>
${filterChips("/fleet/failures", query, chipsOf(page))}
${shareTiles(page)}
${crawlerTable(page, viewer)}
${historySection("/fleet/failures", query, page.history)}
<section><h2>The latest</h2>${
    latest.length === 0
      ? empty(
          "Nothing failed.",
          crawler + host + blame === ""
            ? "Every fetch in this time was answered."
            : html`<a href="/fleet/failures?hours=${hours}">Show all failures</a>`,
        )
      : html`${latestTable(latest)}${isCut && html`<p class="small">These are the latest ${countText(latest.length)}.</p>`}`
  }</section>`;
}

const hints: Readonly<Record<Blame, string>> = {
  target: "the site answered wrongly, or not in time",
  network: "names, routes, connections on the way",
  crawler: "its machine, its disk, its limits",
  us: "a fault of our own: report it",
};

function shareTiles({ shares, hours, crawler, host }: FailuresPage): Html {
  const query = { crawler, host, hours };
  return html`<dl class="tiles">${blames.map((blame) =>
    tile(
      `The fault of ${blameNames[blame]}`,
      sampledShare(shares.failures[blame], shares.fetches),
      html`<a href="${pathWith("/fleet/failures", { ...query, blame })}">${countText(shares.failures[blame])}</a> of
${countText(shares.fetches)} fetches: ${hints[blame]}`,
    ),
  )}</dl><p class="small">Of all fetches of the fleet since ${instant(shares.since)}.</p>`;
}

const crawlersShown = 50;

function crawlerTable({ shares, hours }: FailuresPage, { actor }: PageViewer): Html {
  if (shares.byCrawler.length === 0 || !mayDo(actor, "read")) return nothing;
  const heads = ["Crawler", "Fetches .number", ...blames.map((blame) => `${blameNames[blame]} .number`)];
  const figure = (count: number, fetches: number, to: string) =>
    count === 0
      ? "0"
      : html`<a href="${to}">${countText(count)}</a>${fetches >= leastSamples && small(percentText(count / fetches))}`;
  const lines = shares.byCrawler.slice(0, crawlersShown);
  return html`<section><h2>By crawler</h2>${tableOf(
    "By crawler",
    heads,
    lines,
    ({ crawler, fetches, failures }) => [
      crawlerOr(crawler, ""),
      countText(fetches),
      ...blames.map((blame) =>
        figure(failures[blame], fetches, pathWith("/fleet/failures", { crawler, blame, hours })),
      ),
    ],
  )}</section>`;
}

function latestTable(latest: readonly FailureLine[]): Html {
  const heads = ["When", "URL .break", "By", "The fault of", "In words .why"];
  return tableOf("Failed fetches", heads, latest, ({ at, url, host, crawler, blame, words }) => [
    instant(at),
    url === null ? (host ?? "no longer known") : askAbout(url),
    crawlerOr(crawler, "(removed)"),
    blameNames[blame],
    words ?? small("It was fetched again since."),
  ]);
}

/** Fetches that failed: whose fault it was, by crawler, and the latest of them with words. */
import { mayDo } from "#core/actor";
import { leastSamples, sampledShare } from "#core/format";
import { blameNames } from "../fleet/crawler-page.ts";
import type { Blame, FailureLine, FailureShares } from "../fleet/fleet-api.ts";
import type { ChartHistory } from "../web/chart-history.ts";
import { crawlerOr, empty, options, tile, titleRow } from "../web/components.ts";
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
  return html`${titleRow("Failed fetches")}
<form class="filter-row fleet-filters" method="get" action="/fleet/failures" role="search" aria-label="Failed fetches">
<label>The fault of <select name="blame">${options([["", "anybody"], ...blames.map((one) => [one, blameNames[one]] as const)], blame)}</select></label>
<label>Crawler <input name="crawler" value="${crawler}" maxlength="63" size="14"></label>
<label>Host <input name="host" value="${host}" maxlength="253" size="20"></label>
<label>In the last <select name="hours">${options(
    [
      ["1", "hour"],
      ["24", "24 hours"],
    ],
    String(hours),
  )}</select></label>
<button class="slim">Show</button></form>
${filterChips("/fleet/failures", { blame, crawler, host, hours: hours === 24 ? null : String(hours) }, chipsOf(page))}
${shareTiles(page)}
${crawlerTable(page, viewer)}
${historySection("/fleet/failures", { blame, crawler, host, hours: hours === 24 ? null : String(hours) }, page.history)}
<section><h2>The latest</h2>${
    latest.length === 0
      ? empty(
          "Nothing failed.",
          crawler + host + blame === ""
            ? "Every fetch in this time was answered."
            : html`<a href="/fleet/failures?hours=${hours}">Show all failures</a>`,
        )
      : html`${latestTable(latest)}${isCut ? html`<p class="small">These are the latest ${countText(latest.length)}.</p>` : nothing}`
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
      html`<a href="${pathWith("/fleet/failures", { ...query, blame })}">${countText(shares.failures[blame])}</a> of ${countText(shares.fetches)} fetches: ${hints[blame]}`,
    ),
  )}</dl><p class="small">Of all fetches of the fleet since ${instant(shares.since.toISOString())}.</p>`;
}

const crawlersShown = 50;

function crawlerTable({ shares, hours }: FailuresPage, { actor }: PageViewer): Html {
  if (shares.byCrawler.length === 0 || !mayDo(actor, "read")) return nothing;
  const cell = (crawler: string, blame: Blame, count: number, fetches: number) =>
    count === 0
      ? html`<td class="number">0</td>`
      : html`<td class="number"><a href="${pathWith("/fleet/failures", { crawler, blame, hours })}">${countText(count)}</a>${fetches < leastSamples ? nothing : html`<span class="small">${percentText(count / fetches)}</span>`}</td>`;
  return html`<section><h2>By crawler</h2><div class="scroll"><table>
<thead><tr><th scope="col">Crawler</th><th scope="col" class="number">Fetches</th>${blames.map((blame) => html`<th scope="col" class="number">${blameNames[blame]}</th>`)}</tr></thead>
<tbody>${shares.byCrawler
    .slice(0, crawlersShown)
    .map(
      (line) =>
        html`<tr><th scope="row">${crawlerOr(line.crawler, "")}</th><td class="number">${countText(line.fetches)}</td>${blames.map((blame) => cell(line.crawler, blame, line.failures[blame], line.fetches))}</tr>`,
    )}</tbody></table></div></section>`;
}

function latestTable(latest: readonly FailureLine[]): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">When</th><th scope="col">URL</th><th scope="col">By</th><th scope="col">The fault of</th><th scope="col">In words</th></tr></thead>
<tbody>${latest.map(
    (line) =>
      html`<tr><td>${instant(line.at.toISOString())}</td><td class="break">${line.url !== null ? askAbout(line.url) : (line.host ?? "no longer known")}</td><td>${crawlerOr(line.crawler, "(removed)")}</td><td>${blameNames[line.blame]}</td><td class="why">${line.words ?? html`<span class="small">It was fetched again since.</span>`}</td></tr>`,
  )}</tbody></table></div>`;
}

/**
 * The overview that operators keep open: alerts, figures, history, what waits and what fails, the fleet on a map and
 * in a table, the latest decisions. It comes in regions; the live script replaces a region as a whole, so that page
 * and update are one rendering. Each figure leads to what is behind it.
 */
import { rangeOf } from "#core/chart-history";
import { bytesText, howMany, leastSamples, sampledShare } from "#core/format";
import { nearlyBestMs } from "../delegation/delegation.ts";
import { fleetMap } from "../fleet/fleet-map-page.ts";
import { fleetTable } from "../fleet/fleet-page.ts";
import {
  ago,
  askAbout,
  country,
  countText,
  crawlerLink,
  instant,
  msOrDash,
  percentText,
  rateText,
} from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { historyCharts, rangePicker } from "../web/time-chart.ts";
import type { Alert } from "./alert-rules.ts";
import { type AlertReader, alertSection } from "./alerts-page.ts";
import { crawlPicture } from "./crawl-picture-page.ts";
import type { Blame } from "./minute-figures.ts";
import type { Overview } from "./overview.ts";
import type { RecentDelegation } from "./overview-api.ts";
import { blames, blameWords, spanOrDash, timesSmaller, waitReasonWords } from "./overview-words.ts";
import type { QueueAge, QueueAges, SpanFigures } from "./queue-api.ts";

export function overviewBody(overview: Overview, reader: AlertReader): Html {
  const regions = overviewRegions(overview);
  const { history } = overview;
  const live = (name: string) => html`<section data-live="${name}">${regions[name]}</section>`;
  return html`<div class="title-row"><h1>The crawl</h1><p class="live" id="live" hidden>live</p></div>
<div class="first-look"><div>${live(alertRegion(reader))}
<form class="ask" action="/who" method="get" role="search">
<label for="q">Who crawls it, and why?</label>
<div class="field"><input id="q" name="q" type="search" maxlength="2048" placeholder="URL, host, IP, range, organisation or crawler" autocomplete="off" spellcheck="false"><button>Look up</button></div>
</form></div>
${live("picture")}</div>
${live("figures")}
<section class="history" id="history"><h2>History</h2>
${rangePicker("/", {}, rangeOf(history))}
${history.range === usualRange ? live("history") : regions.history}</section>
<div class="two-columns">${live("queue")}${live("errors")}</div>
${live("map")}
${live("fleet")}
${live("recent")}`;
}

const alertRegion = (reader: AlertReader) => `alerts-${reader}`;

/** The alerts of every reader alone, while the rest cannot be read. */
export function alertRegions(alerts: readonly Alert[]): Readonly<Record<string, Html>> {
  return {
    [alertRegion("operator")]: alertSection(alerts, "operator"),
    [alertRegion("reader")]: alertSection(alerts, "reader"),
  };
}

/** Of the history, where nobody asks for another: the one that is kept live. */
export const usualRange = "1h";

/** By name: what the live events carry, with the alerts of every reader, that a page may show. */
export function overviewRegions(overview: Overview): Readonly<Record<string, Html>> {
  return {
    ...alertRegions(overview.alerts),
    picture: crawlPicture(overview),
    figures: figures(overview),
    history: historyCharts(overview.history),
    queue: queueSection(overview.queue),
    errors: errorSection(overview.lastHour, overview.lastDay),
    map: fleetMap(overview.fleet),
    fleet: fleetTable(overview.fleet, overview.at),
    recent: recentTable(overview),
  };
}

function figures(overview: Overview): Html {
  const { totals, rates } = overview;
  const done = totals.urls - totals.urlsPending;
  const about = totals.isEstimate ? "about " : "";
  return html`<p class="lead">${leadWords(overview)}</p>
<dl class="tiles">
${tile("Pages", about + countText(totals.pages), "/search", html`${howMany(totals.hostsResolved, "host")}${totals.hostsUnresolved > 0 ? `, ${countText(totals.hostsUnresolved)} without an address yet` : ""}`)}
${tile("Pages per minute", rateText(rates.pagesPerMinute), "#history", html`${bytesText(Math.round(rates.fetchedBytesPerMinute))} per minute, ${rateText(rates.probesPerMinute)} probes`)}
${tile("Subnets delegated", about + countText(totals.subnetsDelegated), "/explore?state=delegated", subnetsWaiting(totals.subnetsWaiting))}
${tile("Mean RTT", msOrDash(totals.meanRttMs), "/explore?view=list&sort=rtt", html`from the crawler to its subnets`)}
${probesTile(overview)}
${shippedTile(overview)}
${accuracyTile(overview)}
${waitingTile(overview)}
</dl>
${progress(done, totals.urls)}
${urlStates(overview)}`;
}

function leadWords(overview: Overview): Html {
  const { phase, sessions, roundsUnderWay, probesUnderWay, startedAt } = overview;
  const underWay =
    roundsUnderWay === null || probesUnderWay === null
      ? ""
      : ` · ${howMany(roundsUnderWay, "probe round")} and ${howMany(probesUnderWay, "probe")} in progress`;
  return html`<strong>${phase.charAt(0).toUpperCase() + phase.slice(1)}</strong> · ${howMany(sessions, "crawler")} connected${underWay}${startedAt === null ? nothing : html` · coordinator up since ${instant(startedAt)}`}`;
}

function tile(name: string, figure: string | Html, link: string, small: Html): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><a class="figure" href="${link}">${figure}</a><span class="small">${small}</span></dd></div>`;
}

function subnetsWaiting(waiting: number): Html {
  if (waiting === 0) return html`none is waiting`;
  return html`<a href="/explore?state=waiting">${countText(waiting)} waiting</a> for a probe round`;
}

function probesTile({ totals, rates }: Overview): Html {
  const figure = totals.rounds > 0 ? (totals.probes / totals.rounds).toFixed(2) : "–";
  const small = html`${countText(totals.probes)} in ${howMany(totals.rounds, "round")}, ${rateText(rates.probesPerMinute)} per minute`;
  return tile("Probes per round", figure, "#recent", small);
}

/** Of the last day; before anything was fetched in it, of what is stored. */
function shippedTile({ lastDay, totals }: Overview): Html {
  const isOfDay = lastDay.fetchedBytes > 0;
  const bytes = isOfDay ? lastDay : { fetchedBytes: totals.bodyBytes, shippedBytes: totals.shippedBytes };
  const small = html`${bytesText(bytes.shippedBytes)} of ${bytesText(bytes.fetchedBytes)} fetched${isOfDay ? " in 24 hours" : ""}`;
  return tile("Shipped", timesSmaller(bytes), "#fleet", small);
}

function accuracyTile({ accuracy: { samples, nearlyBest, low, high } }: Overview): Html {
  const small =
    samples === 0
      ? html`no subnet has been sampled`
      : samples < leastSamples
        ? html`of the subnets that are sampled`
        : html`${percentText(low)} to ${percentText(high)}, by ${howMany(samples, "sample")}`;
  return tile(
    `Within ${nearlyBestMs} ms of the nearest`,
    samples > 0 && samples < leastSamples
      ? html`<span class="few">${sampledShare(nearlyBest, samples)}</span>`
      : sampledShare(nearlyBest, samples),
    "/accuracy",
    small,
  );
}

function waitingTile({ queue }: Overview): Html {
  const { hosts, p95Seconds, isEstimate } = queue;
  const small = p95Seconds === null ? html`none is due` : html`95 % for less than ${spanOrDash(p95Seconds)}`;
  return tile("Waiting hosts", `${isEstimate ? "about " : ""}${countText(hosts)}`, "/fleet/queue", small);
}

function progress(done: number, all: number): Html {
  if (all === 0) {
    return html`<div class="empty"><p><strong>The frontier is empty.</strong> Start with URLs of your own: <code>npm start -- --no-world --url https://…</code></p></div>`;
  }
  return html`<div class="progress"><label for="progress">${countText(done)} of ${howMany(all, "known URL")} processed</label><span class="percent">${percentText(done / all)}</span><progress id="progress" max="${all}" value="${done}"></progress></div>`;
}

function urlStates({ totals }: Overview): Html {
  const parts = [
    [totals.urlsDue, "scheduled or due"],
    [totals.urlsLeased, "in progress"],
    [totals.urlsRefused, "refused"],
    [totals.urlsGone, "gone"],
    [totals.urlsPaymentRequired, "not crawled: the site asks for payment"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0);
  if (shown.length === 0) return nothing;
  const gated = html` · <a href="/fleet/queue#bot-gates">${howMany(totals.hostsGated, "host")} behind bot gates</a>`;
  return html`<p class="small">${shown.map(([count, words]) => `${countText(count)} ${words}`).join(" · ")}${totals.hostsGated === 0 ? nothing : gated}</p>`;
}

function recentTable(overview: Overview): Html {
  if (overview.recent.length === 0) {
    return html`<h2 id="recent">Latest delegations</h2><div class="empty"><p><strong>No subnet is delegated yet.</strong> The first probe round starts when a crawler is connected and a URL lies in a registered subnet.</p></div>`;
  }
  return html`<h2 id="recent">Latest delegations</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Latest delegations"><table>
<thead><tr><th scope="col">Subnet</th><th scope="col">Name</th><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col">When</th></tr></thead>
<tbody>${overview.recent.map((line) => recentRow(line, overview.at))}</tbody>
</table></div>`;
}

function recentRow(line: RecentDelegation, at: string): Html {
  return html`<tr><th scope="row">${askAbout(line.range)}</th><td class="wide">${line.name || "–"} ${country(line.country)}</td><td>${crawlerLink(line.crawler)}</td><td class="number">${msOrDash(line.rttMs)}</td><td>${ago(line.since, at)}</td></tr>`;
}

// The overview's two tables of what does not go: what waits and for what, and what failed by whose fault.

function queueSection(queue: QueueAges): Html {
  if (queue.hosts === 0) {
    return html`<h2><a href="/fleet/queue">Queue</a></h2><div class="empty"><p><strong>No host is due.</strong> Hosts appear here as soon as one of their URLs may be fetched.</p></div>`;
  }
  return html`<h2><a href="/fleet/queue">Queue</a></h2>
<p class="small">The crawl is ${queue.verdict.words}.</p>
${queueTable(queue)}`;
}

/** Hosts that are due, by what they wait for. */
export function queueTable(queue: QueueAges): Html {
  const about = queue.isEstimate ? "about " : "";
  const cells = (age: QueueAge) =>
    html`<td class="number">${about}${countText(age.hosts)}</td><td class="number">${spanOrDash(age.medianSeconds)}</td><td class="number">${spanOrDash(age.p95Seconds)}</td><td class="number">${spanOrDash(age.oldestSeconds)}</td>`;
  const rows = queue.reasons.map(
    (line) =>
      html`<tr><th scope="row"><a href="${pathWith("/fleet/queue", { reason: line.reason })}">${waitReasonWords[line.reason]}</a></th>${cells(line)}</tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Hosts that are due, by what they wait for"><table>
<thead><tr><th scope="col">Hosts waiting for</th><th scope="col" class="number">Hosts</th><th scope="col" class="number">Median wait</th><th scope="col" class="number">95 % less than</th><th scope="col" class="number">Longest</th></tr></thead>
<tbody>${rows}<tr class="total"><th scope="row">all that is due</th>${cells(queue)}</tr></tbody>
</table></div>`;
}

function errorSection(hour: SpanFigures, day: SpanFigures): Html {
  const note =
    day.fetches === 0
      ? html`<p class="small">Nothing was fetched in the last 24 hours.</p>`
      : html`<p class="small">Shares of all fetches: ${countText(hour.fetches)} in the last hour, ${countText(day.fetches)} in 24 hours. What a site answers, such as 404, is no failure.</p>`;
  return html`<h2><a href="/fleet/failures">Failures</a></h2>
<div class="scroll" tabindex="0" role="region" aria-label="Failed fetches by who is to blame"><table>
<thead><tr><th scope="col">To blame</th><th scope="col" class="number">Last hour</th><th scope="col" class="number">Share</th><th scope="col" class="number">24 hours</th><th scope="col" class="number">Share</th></tr></thead>
<tbody>${blames.map((blame) => errorRow(blame, hour, day))}</tbody>
</table></div>${note}`;
}

function errorRow(blame: Blame, hour: SpanFigures, day: SpanFigures): Html {
  const cells = ({ failures, fetches }: SpanFigures) =>
    html`<td class="number">${countText(failures[blame])}</td><td class="number">${sampledShare(failures[blame], fetches)}</td>`;
  return html`<tr><th scope="row"><a href="${pathWith("/fleet/failures", { blame })}">${blameWords[blame]}</a>${blame === "us" ? html` <span class="small inline">(should be none)</span>` : nothing}</th>${cells(hour)}${cells(day)}</tr>`;
}

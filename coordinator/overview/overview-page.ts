/**
 * The overview that operators keep open: alerts, figures, history, what waits and what fails, the fleet on a map and
 * in a table, the latest decisions. It comes in regions; the live script replaces a region as a whole, so that page
 * and update are one rendering. Each figure leads to what is behind it.
 */

import { bytesText, howMany, leastSamples, sampledShare } from "#core/format";
import { type AlertReader, alertSection } from "../alerts/alerts-ask.ts";
import { nearlyBestMs } from "../delegation/delegation.ts";
import { fleetMap } from "../fleet/fleet-map-page.ts";
import { fleetTable } from "../fleet/fleet-page.ts";
import { rangeOf } from "../web/chart-history.ts";
import { empty, small, tableOf } from "../web/components.ts";
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
import { crawlPicture } from "./crawl-picture-page.ts";
import type { Overview } from "./overview.ts";
import { blames, blameWords, spanOrDash, timesSmaller, waitReasonWords } from "./overview-words.ts";
import type { QueueAges, SpanFigures } from "./queue-api.ts";

export function overviewBody(overview: Overview, reader: AlertReader): Html {
  const regions = overviewRegions(overview);
  const { history } = overview;
  const live = (name: string) => html`<section data-live="${name}">${regions[name]}</section>`;
  return html`<div class="title-row"><h1>The crawl</h1><p class="live" id="live" hidden>live</p></div>
<div class="first-look"><div>${live(alertRegion(reader))}
<form class="ask" action="/who" method="get" role="search">
<label for="q">Who crawls it, and why?</label>
<div class="field"><input id="q" name="q" type="search" maxlength="2048" autocomplete="off" spellcheck="false"
placeholder="URL, host, IP, range, organisation or crawler"><button>Look up</button></div>
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
  const unresolved =
    totals.hostsUnresolved > 0 && `, ${countText(totals.hostsUnresolved)} without an address yet`;
  const bytes = bytesText(Math.round(rates.fetchedBytesPerMinute));
  return html`<p class="lead">${leadWords(overview)}</p>
<dl class="tiles">
${tile("Pages", about + countText(totals.pages), "/search", html`${howMany(totals.hostsResolved, "host")}${unresolved}`)}
${tile("Pages per minute", rateText(rates.pagesPerMinute), "#history", `${bytes} per minute, ${rateText(rates.probesPerMinute)} probes`)}
${tile("Subnets delegated", about + countText(totals.subnetsDelegated), "/explore?state=delegated", subnetsWaiting(totals.subnetsWaiting))}
${tile("Mean RTT", msOrDash(totals.meanRttMs), "/explore?view=list&sort=rtt", "from the crawler to its subnets")}
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
  return html`<strong>${phase.charAt(0).toUpperCase() + phase.slice(1)}</strong> · ${howMany(sessions, "crawler")} connected${underWay}${
    startedAt !== null && html` · coordinator up since ${instant(startedAt)}`
  }`;
}

const tile = (name: string, figure: string | Html, link: string, words: Html | string) =>
  html`<div class="tile"><dt>${name}</dt><dd><a class="figure" href="${link}">${figure}</a>${small(words)}</dd></div>`;

function subnetsWaiting(waiting: number): Html | string {
  if (waiting === 0) return "none is waiting";
  return html`<a href="/explore?state=waiting">${countText(waiting)} waiting</a> for a probe round`;
}

function probesTile({ totals, rates }: Overview): Html {
  const figure = totals.rounds > 0 ? (totals.probes / totals.rounds).toFixed(2) : "–";
  const perMinute = `${rateText(rates.probesPerMinute)} per minute`;
  const words = `${countText(totals.probes)} in ${howMany(totals.rounds, "round")}, ${perMinute}`;
  return tile("Probes per round", figure, "#recent", words);
}

/** Of the last day; before anything was fetched in it, of what is stored. */
function shippedTile({ lastDay, totals }: Overview): Html {
  const isOfDay = lastDay.fetchedBytes > 0;
  const bytes = isOfDay ? lastDay : { fetchedBytes: totals.bodyBytes, shippedBytes: totals.shippedBytes };
  const of = `${bytesText(bytes.shippedBytes)} of ${bytesText(bytes.fetchedBytes)} fetched`;
  return tile("Shipped", timesSmaller(bytes), "#fleet", `${of}${isOfDay ? " in 24 hours" : ""}`);
}

function accuracyTile({ accuracy: { samples, nearlyBest, low, high } }: Overview): Html {
  const isFew = samples < leastSamples;
  const figure = sampledShare(nearlyBest, samples);
  const words =
    samples === 0
      ? "no subnet has been sampled"
      : isFew
        ? "of the subnets that are sampled"
        : `${percentText(low)} to ${percentText(high)}, by ${howMany(samples, "sample")}`;
  const shown = samples > 0 && isFew ? html`<span class="few">${figure}</span>` : figure;
  return tile(`Within ${nearlyBestMs} ms of the nearest`, shown, "/accuracy", words);
}

function waitingTile({ queue: { hosts, p95Seconds, isEstimate } }: Overview): Html {
  const words = p95Seconds === null ? "none is due" : `95 % for less than ${spanOrDash(p95Seconds)}`;
  return tile("Waiting hosts", `${isEstimate ? "about " : ""}${countText(hosts)}`, "/fleet/queue", words);
}

function progress(done: number, all: number): Html {
  if (all === 0) {
    return empty(
      "The frontier is empty.",
      html`Start with URLs of your own: <code>npm start -- --no-world --url https://…</code>`,
    );
  }
  return html`<div class="progress"><label for="progress">${countText(done)} of ${howMany(all, "known URL")} processed</label>
<span class="percent">${percentText(done / all)}</span><progress id="progress" max="${all}" value="${done}"></progress></div>`;
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
  const words = shown.map(([count, state]) => `${countText(count)} ${state}`).join(" · ");
  const gated = html` · <a href="/fleet/queue#bot-gates">${howMany(totals.hostsGated, "host")} behind bot gates</a>`;
  return html`<p class="small">${words}${totals.hostsGated > 0 && gated}</p>`;
}

function recentTable({ recent, at }: Overview): Html {
  const none =
    "The first probe round starts when a crawler is connected and a URL lies in a registered subnet.";
  const heads = ["Subnet", "Name .wide", "Crawler", "RTT .number", "When"];
  return html`<h2 id="recent">Latest delegations</h2>
${
  recent.length === 0
    ? empty("No subnet is delegated yet.", none)
    : tableOf("Latest delegations", heads, recent, (line) => [
        askAbout(line.range),
        html`${line.name || "–"} ${country(line.country)}`,
        crawlerLink(line.crawler),
        msOrDash(line.rttMs),
        ago(line.since, at),
      ])
}`;
}

// The overview's two tables of what does not go: what waits and for what, and what failed by whose fault.

function queueSection(queue: QueueAges): Html {
  if (queue.hosts === 0) {
    const none = empty("No host is due.", "Hosts appear here as soon as one of their URLs may be fetched.");
    return html`<h2><a href="/fleet/queue">Queue</a></h2>${none}`;
  }
  return html`<h2><a href="/fleet/queue">Queue</a></h2>
<p class="small">The crawl is ${queue.verdict.words}.</p>
${queueTable(queue)}`;
}

/** Hosts that are due, by what they wait for. */
export function queueTable(queue: QueueAges): Html {
  const about = queue.isEstimate ? "about " : "";
  const heads = [
    "Hosts waiting for",
    "Hosts .number",
    "Median wait .number",
    "95 % less than .number",
    "Longest .number",
  ];
  const all = { ...queue, name: html`all that is due` };
  const rows = queue.reasons.map((one) => {
    const to = pathWith("/fleet/queue", { reason: one.reason });
    return { ...one, name: html`<a href="${to}">${waitReasonWords[one.reason]}</a>` };
  });
  return tableOf(
    "Hosts that are due, by what they wait for",
    heads,
    [...rows, all],
    ({ name, hosts, medianSeconds, p95Seconds, oldestSeconds }) => [
      name,
      about + countText(hosts),
      ...[medianSeconds, p95Seconds, oldestSeconds].map(spanOrDash),
    ],
    "with-total",
  );
}

function errorSection(hour: SpanFigures, day: SpanFigures): Html {
  const figures = `${countText(hour.fetches)} in the last hour, ${countText(day.fetches)} in 24 hours`;
  const words =
    day.fetches === 0
      ? "Nothing was fetched in the last 24 hours."
      : `Shares of all fetches: ${figures}. What a site answers, such as 404, is no failure.`;
  const heads = ["To blame", "Last hour .number", "Share .number", "24 hours .number", "Share .number"];
  return html`<h2><a href="/fleet/failures">Failures</a></h2>
${tableOf("Failed fetches by who is to blame", heads, blames, (blame) => [
  html`<a href="${pathWith("/fleet/failures", { blame })}">${blameWords[blame]}</a>${
    blame === "us" &&
    html` <span
class="small inline">(should be none)</span>`
  }`,
  ...[hour, day].flatMap(({ failures, fetches }) => [
    countText(failures[blame]),
    sampledShare(failures[blame], fetches),
  ]),
])}<p class="small">${words}</p>`;
}

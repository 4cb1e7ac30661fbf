/**
 * The overview: figures, progress, the fleet on a map and in a table, the latest decisions. It comes in
 * regions; the live script replaces a region as a whole, so that page and update are one rendering.
 */
import type { FleetLine, Overview, RecentDelegation } from "../flows/show-overview.ts";
import { howMany } from "../flows/spoken-time.ts";
import { bytesText } from "../flows/who-words.ts";
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
  shippedShare,
  stateBadge,
} from "./figures.ts";
import { fleetMap } from "./fleet-map.ts";
import { type Html, html, nothing } from "./html.ts";
import { sparkline } from "./sparkline.ts";

/** Crawlers listed in the table; the map shows all. */
const fleetShown = 200;

export function overviewBody(overview: Overview): Html {
  const regions = Object.entries(overviewRegions(overview));
  return html`<div class="title-row"><h1>The crawl</h1><p class="live" id="live" hidden>live</p></div>
<form class="ask" action="/who" method="get" role="search">
<label for="q">Who crawls it, and why?</label>
<div class="field"><input id="q" name="q" type="search" maxlength="2048" placeholder="URL, host, IP, range, organisation or crawler" autocomplete="off" spellcheck="false"><button>Look up</button></div>
</form>
${regions.map(([name, region]) => html`<section data-live="${name}">${region}</section>`)}`;
}

/** By name: what the live events carry. */
export function overviewRegions(overview: Overview): Readonly<Record<string, Html>> {
  return {
    figures: figures(overview),
    map: fleetMap(overview.fleet),
    fleet: fleetTable(overview),
    recent: recentTable(overview),
  };
}

function figures(overview: Overview): Html {
  const { totals, rates } = overview;
  const done = totals.urls - totals.urlsPending;
  const perSubnet = totals.rounds > 0 ? totals.probes / totals.rounds : null;
  const minutes = Math.max(1, Math.round((rates.pagesHistory.length * rates.stepSeconds) / 60));
  return html`<p class="lead"><strong>${capitalised(overview.phase)}</strong> · ${howMany(overview.sessions, "crawler")} connected · ${howMany(overview.roundsUnderWay, "probe round")} and ${howMany(overview.probesUnderWay, "probe")} under way · coordinator up since ${instant(overview.startedAt)}</p>
<dl class="tiles">
${tile("Pages", countText(totals.pages), `${howMany(totals.hostsResolved, "host")}${totals.hostsUnresolved > 0 ? `, ${countText(totals.hostsUnresolved)} without an address yet` : ""}`)}
${tile("Pages a minute", rateText(rates.pagesPerMinute), `${bytesText(Math.round(rates.fetchedBytesPerMinute))} a minute`, sparkline(rates.pagesHistory, `Pages a minute over the last ${minutes} minutes`))}
${tile("Subnets delegated", countText(totals.subnetsDelegated), totals.subnetsWaiting > 0 ? `${countText(totals.subnetsWaiting)} wait for a probe round` : "none waits")}
${tile("Mean RTT", msOrDash(totals.meanRttMs), "from the crawler to its subnets")}
${tile("Probes a round", perSubnet === null ? "–" : perSubnet.toFixed(2), `${countText(totals.probes)} in ${howMany(totals.rounds, "round")}, ${rateText(rates.probesPerMinute)} a minute`)}
${tile("Shipped", shippedShare(totals), `${bytesText(totals.shippedBytes)} of ${bytesText(totals.bodyBytes)} fetched`)}
</dl>
${progress(done, totals.urls)}
${urlStates(overview)}`;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function tile(name: string, figure: string, small: string, extra: Html = nothing): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><span class="figure">${figure}</span>${extra}<span class="small">${small}</span></dd></div>`;
}

function progress(done: number, all: number): Html {
  if (all === 0) {
    return html`<div class="empty"><p><strong>The frontier is empty.</strong> Start with URLs of your own: <code>npm start -- --no-world --url https://…</code></p></div>`;
  }
  return html`<div class="progress"><label for="progress">${countText(done)} of ${howMany(all, "known URL")} dealt with</label><span class="percent">${percentText(done / all)}</span><progress id="progress" max="${all}" value="${done}"></progress></div>`;
}

function urlStates(overview: Overview): Html {
  const { totals } = overview;
  const parts = [
    [totals.urlsDue, "due or fetched, waiting for their time"],
    [totals.urlsLeased, "in a crawler's hands"],
    [totals.urlsRefused, "refused"],
    [totals.urlsGone, "gone"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0);
  if (shown.length === 0) return nothing;
  return html`<p class="small">${shown.map(([count, words]) => `${countText(count)} ${words}`).join(" · ")}</p>`;
}

function fleetTable(overview: Overview): Html {
  const { fleet } = overview;
  if (fleet.length === 0) {
    return html`<h2>Crawlers</h2><div class="empty"><p><strong>No crawler is registered yet.</strong> Issue a key with <code>nearcrawl coordinator add-crawler NAME</code>, then start <code>nearcrawl crawler</code> at the partner.</p></div>`;
  }
  const most = Math.max(1, ...fleet.map((crawler) => crawler.subnets));
  return html`<h2>Crawlers</h2>
<div class="scroll"><table class="fleet">
<thead><tr><th scope="col">Crawler</th><th scope="col">State</th><th scope="col" class="number">Subnets</th><th scope="col" class="bar-column"><span class="hidden">Share</span></th><th scope="col" class="number">Mean RTT</th><th scope="col" class="number">Pages</th><th scope="col" class="number">Shipped</th><th scope="col" class="number">Leases</th><th scope="col">Place</th></tr></thead>
<tbody>${fleet.slice(0, fleetShown).map((crawler) => fleetRow(crawler, most, overview.at))}</tbody>
</table></div>${fleet.length > fleetShown ? html`<p class="small">and ${countText(fleet.length - fleetShown)} more</p>` : nothing}`;
}

function fleetRow(crawler: FleetLine, most: number, at: string): Html {
  const why = whyNotAtWork(crawler, at);
  return html`<tr><th scope="row">${crawlerLink(crawler.name)}</th><td class="wide">${stateBadge(crawler.state)}${why && html`<span class="small">${why}</span>`}</td><td class="number">${countText(crawler.subnets)}</td><td class="bar-column">${shareBar(crawler.subnets / most)}</td><td class="number">${msOrDash(crawler.meanRttMs)}</td><td class="number">${countText(crawler.pages)}</td><td class="number">${shippedShare(crawler)}</td><td class="number">${countText(crawler.openLeases)}</td><td class="wide">${crawler.place ?? "–"} ${country(crawler.country)}</td></tr>`;
}

function whyNotAtWork(crawler: FleetLine, at: string): Html | null {
  if (crawler.state === "draining") return html`finishes what it has`;
  if (crawler.state === "online") {
    return crawler.holdingBack.length > 0 ? html`${crawler.holdingBack.join("; ")}` : null;
  }
  if (crawler.lastSeenAt === null) return html`has not connected yet`;
  return html`${crawler.offlineReason ?? "no reason known"}, seen ${ago(crawler.lastSeenAt, at)}`;
}

function shareBar(share: number): Html {
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-ground" width="100" height="8" rx="2"/><rect class="bar-value" width="${Math.round(share * 1000) / 10}" height="8" rx="2"/></svg>`;
}

function recentTable(overview: Overview): Html {
  if (overview.recent.length === 0) {
    return html`<h2>Latest delegations</h2><div class="empty"><p><strong>No subnet is delegated yet.</strong> The first probe round starts when a crawler is connected and a URL lies in a registered subnet.</p></div>`;
  }
  return html`<h2>Latest delegations</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">Subnet</th><th scope="col">Name</th><th scope="col">Crawler</th><th scope="col" class="number">RTT</th><th scope="col">When</th></tr></thead>
<tbody>${overview.recent.map((line) => recentRow(line, overview.at))}</tbody>
</table></div>`;
}

function recentRow(line: RecentDelegation, at: string): Html {
  return html`<tr><th scope="row">${askAbout(line.range)}</th><td class="wide">${line.name || "–"} ${country(line.country)}</td><td>${crawlerLink(line.crawler)}</td><td class="number">${msOrDash(line.rttMs)}</td><td>${ago(line.since, at)}</td></tr>`;
}

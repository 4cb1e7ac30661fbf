/** Crawlers in a table, on the overview: those that need a look first, then those with the most subnets. */
import { nothingDueReason } from "../frontier/hand-out-tasks.ts";
import type { FleetLine } from "../overview/overview.ts";
import { ago, country, countText, crawlerLink, msOrDash, shippedShare, stateBadge } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";

/** The map shows all, and /fleet lists them. */
const fleetShown = 25;

export function fleetTable(fleet: readonly FleetLine[], at: string): Html {
  if (fleet.length === 0) {
    return html`<h2 id="fleet">Crawlers</h2><div class="empty"><p><strong>No crawler is registered yet.</strong> Invite a partner with <code>nearcrawl fleet invite --name NAME</code>; it prints the line that starts a crawler there.</p></div>`;
  }
  const most = Math.max(1, ...fleet.map((crawler) => crawler.subnets));
  const shown = [...fleet].sort(byNeedOfALook).slice(0, fleetShown);
  return html`<h2 id="fleet"><a href="/fleet">Crawlers</a> <span class="small">${stateCounts(fleet)}</span></h2>
<div class="scroll" tabindex="0" role="region" aria-label="Crawlers"><table class="fleet">
<thead><tr><th scope="col">Crawler</th><th scope="col">State</th><th scope="col" class="number">Subnets</th><th scope="col" class="bar-column"><span class="hidden">Share</span></th><th scope="col" class="number">Mean RTT</th><th scope="col" class="number">Pages</th><th scope="col" class="number">Shipped</th><th scope="col" class="number">Leases</th><th scope="col">Place</th></tr></thead>
<tbody>${shown.map((crawler) => fleetRow(crawler, most, at))}</tbody>
</table></div>${fleet.length > shown.length ? html`<p class="small"><a href="/fleet">and ${countText(fleet.length - shown.length)} more</a></p>` : nothing}`;
}

function stateCounts(fleet: readonly FleetLine[]): string {
  return (["online", "draining", "offline"] as const)
    .map((state) => ({ state, count: fleet.filter((crawler) => crawler.state === state).length }))
    .filter(({ count }) => count > 0)
    .map(({ state, count }) => `${countText(count)} ${state}`)
    .join(" · ");
}

function byNeedOfALook(a: FleetLine, b: FleetLine): number {
  const need = ({ state, revoked, holdingBack }: FleetLine) => {
    if (revoked) return 3;
    return state !== "online" ? 0 : holdingBack.some((words) => words !== nothingDueReason) ? 1 : 2;
  };
  return need(a) - need(b) || b.subnets - a.subnets || (a.name < b.name ? -1 : 1);
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

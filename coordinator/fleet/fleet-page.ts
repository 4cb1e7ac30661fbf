/** Crawlers in a table, on the overview: those that need a look first, then those with the most subnets. */
import { nothingDueReason } from "../frontier/hand-out-tasks.ts";
import { empty, shareBar, small, tableOf } from "../web/components.ts";
import { ago, country, countText, crawlerLink, msOrDash, shippedShare, stateBadge } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import type { FleetLine } from "./fleet-api.ts";

/** The map shows all, and /fleet lists them. */
const fleetShown = 25;

export function fleetTable(fleet: readonly FleetLine[], at: string): Html {
  if (fleet.length === 0) {
    return html`<h2 id="fleet">Crawlers</h2>${empty(
      "No crawler is registered yet.",
      html`Invite a partner with <code>nearcrawl fleet invite --name NAME</code>; it prints the line that starts a crawler there.`,
    )}`;
  }
  const most = Math.max(1, ...fleet.map((crawler) => crawler.subnets));
  const shown = [...fleet].sort(byNeedOfALook).slice(0, fleetShown);
  const heads = [
    ...["Crawler", "State .wide", "Subnets .number", "(Share) .bar-column", "Mean RTT .number"],
    ...["Pages .number", "Shipped .number", "Leases .number", "Place .wide"],
  ];
  const row = (crawler: FleetLine) => {
    const why = whyNotAtWork(crawler, at);
    return [
      crawlerLink(crawler.name),
      html`${stateBadge(crawler.state)}${why && small(why)}`,
      countText(crawler.subnets),
      shareBar(crawler.subnets / most),
      msOrDash(crawler.meanRttMs),
      countText(crawler.pages),
      shippedShare(crawler),
      countText(crawler.openLeases),
      html`${crawler.place ?? "–"} ${country(crawler.country)}`,
    ];
  };
  const more = fleet.length - shown.length;
  return html`<h2 id="fleet"><a href="/fleet">Crawlers</a> ${small(stateCounts(fleet))}</h2>
${tableOf("Crawlers", heads, shown, row, "fleet")}${more > 0 && html`<p class="small"><a href="/fleet">and ${countText(more)} more</a></p>`}`;
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

function whyNotAtWork(crawler: FleetLine, at: string): Html | null {
  if (crawler.state === "draining") return html`finishes what it has`;
  if (crawler.state === "online") {
    return crawler.holdingBack.length > 0 ? html`${crawler.holdingBack.join("; ")}` : null;
  }
  if (crawler.lastSeenAt === null) return html`has not connected yet`;
  return html`${crawler.offlineReason ?? "no reason known"}, seen ${ago(crawler.lastSeenAt, at)}`;
}

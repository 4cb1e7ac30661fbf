/** The fleet: every crawler with its state and why, what it does against what it may, and open invitations. */
import { mayDo } from "#core/actor";
import { howMany } from "#core/format";
import type { InvitationRecord } from "../crawlers/identity.ts";
import { nothingDueReason } from "../frontier/hand-out-tasks.ts";
import type { FleetLine } from "../overview/overview.ts";
import { standingWords } from "../trust/trust-api.ts";
import { empty, onlyOperators, options, pager, tile, titleRow } from "../web/components.ts";
import { ago, country, countText, crawlerLink, msOrDash, shippedShare, stateBadge } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { fleetSorts, fleetStates } from "./fleet-api.ts";
import { type FleetColumn, type FleetEntry, fleetColumns, stateWords } from "./fleet-entry.ts";
import { invitationTable } from "./invitations-page.ts";
import { type FleetView, isTrusted } from "./list.ts";

interface FleetPage {
  readonly view: FleetView;
  /** Null: not for this viewer. */
  readonly invitations: readonly InvitationRecord[] | null;
  readonly at: string;
}

export function fleetBody({ view, invitations, at }: FleetPage, viewer: PageViewer): Html {
  const mayInvite = mayDo(viewer.actor, "fleet-write");
  const add = mayInvite ? html`<a class="button slim" href="/fleet/invite">Add a partner</a>` : nothing;
  return html`${titleRow("Fleet", add)}
${totalTiles(view)}
${filters(view)}
${table(view, at, viewer)}
${invitations === null ? nothing : openInvitations(invitations, viewer)}
${onlyOperators(viewer.actor, "fleet-write", "Adding partners and controlling crawlers")}`;
}

function totalTiles({ totals }: FleetView): Html {
  return html`<dl class="tiles">
${tile("Connected", countText(totals.connected), `of ${howMany(totals.crawlers, "crawler")}`)}
${tile("Offline", countText(totals.offline), totals.offline === 0 ? "none" : html`<a href="/fleet?state=offline">which, and why</a>`)}
${tile("Draining", countText(totals.draining), totals.draining === 0 ? "none" : html`<a href="/fleet?state=draining">which, and progress</a>`)}
${tile("Untrusted crawlers", countText(totals.distrusted), totals.distrusted === 0 ? "none" : html`<a href="/fleet?state=distrusted">which</a>`)}
${tile("Pages today (UTC)", countText(totals.pagesToday), `of ${countText(totals.pagesPerDay)} allowed for those connected`)}
${tile("Incidents in 7 days", countText(totals.incidents), totals.incidents === 0 ? "none" : html`<a href="/fleet?sort=incidents">by crawler</a>`)}
</dl>`;
}

const stateNames: Readonly<Record<(typeof fleetStates)[number], string>> = {
  online: "online",
  draining: "draining",
  offline: "offline",
  never: "never connected",
  revoked: "revoked",
  distrusted: "untrusted",
};

const sortNames: Readonly<Record<(typeof fleetSorts)[number], string>> = {
  name: "name",
  state: "state, offline first",
  subnets: "most subnets",
  pages: "most pages today",
  rtt: "longest RTT",
  incidents: "most incidents",
  trust: "least trusted",
  seen: "longest not seen",
};

function filters({ query, countries, versions }: FleetView): Html {
  const any = [["", "any"]] as const;
  return html`<form class="filter-row fleet-filters" method="get" action="/fleet" role="search" aria-label="Crawlers">
<label>Name or place <input name="q" value="${query.q}" maxlength="63" size="14"></label>
<label>State <select name="state">${options([...any, ...fleetStates.map((state) => [state, stateNames[state]] as const)], query.state ?? "")}</select></label>
<label>Country <select name="country">${options([...any, ...countries.map((code) => [code, code] as const)], query.country ?? "")}</select></label>
<label>Version <select name="version">${options([...any, ...versions.map((version) => [version, version] as const)], query.version ?? "")}</select></label>
<label>Sorted by <select name="sort">${options(
    fleetSorts.map((sort) => [sort, sortNames[sort]] as const),
    query.sort,
  )}</select></label>
<button class="slim">Show</button>
</form>`;
}

function table(view: FleetView, at: string, viewer: PageViewer): Html {
  if (view.totals.crawlers === 0) return nobodyYet(viewer);
  if (view.crawlers.length === 0)
    return empty(
      "No crawler matches.",
      html`<a href="/fleet">Show all ${countText(view.totals.crawlers)}</a>`,
    );
  const { q, state, country: of, version, sort } = view.query;
  const query = { q, state, country: of, version, sort: sort === "name" ? null : sort };
  return html`<section aria-label="Crawlers"><p class="small">${howMany(view.found, "crawler")}</p>
<div class="scroll"><table class="fleet">
<thead><tr>${pageColumns.map(({ page, isNumber }) => html`<th scope="col"${isNumber ? html` class="number"` : nothing}>${page}</th>`)}</tr></thead>
<tbody>${view.crawlers.map((entry) => row(entry, at, viewer))}</tbody></table></div>
${pager({ path: "/fleet", query, page: view.query.page, more: view.more })}</section>`;
}

function nobodyYet({ actor }: PageViewer): Html {
  return empty(
    "No crawlers yet.",
    mayDo(actor, "fleet-write")
      ? html`<a href="/fleet/invite">Add a partner</a>: its crawler joins with one command.`
      : html`An operator adds partners here, or with <code>nearcrawl fleet invite --name NAME</code>.`,
  );
}

const pageColumns = fleetColumns.filter(({ page }) => page !== undefined);

interface CellContext {
  readonly at: string;
  readonly isInside: boolean;
}

/** Cells that are more than their text. */
const cells: Readonly<Record<string, (entry: FleetEntry, context: CellContext) => Html>> = {
  state: (entry, { at, isInside }) => html`<td class="why">${stateCell(entry, at, isInside)}</td>`,
  subnets: ({ name, subnets }) =>
    numberCell(
      subnets > 0
        ? html`<a href="${pathWith("/explore", { crawler: name })}">${countText(subnets)}</a>`
        : "0",
    ),
  pages_today: ({ pagesToday, pagesPerDay }) =>
    numberCell(html`${countText(pagesToday)}<span class="small">of ${countText(pagesPerDay)}</span>`),
  mean_rtt_ms: ({ meanRttMs }) => numberCell(msOrDash(meanRttMs)),
  incidents_7_days: ({ name, incidents }, { isInside }) =>
    numberCell(
      isInside && incidents > 0
        ? html`<a href="${pathWith("/fleet/incidents", { crawler: name })}">${countText(incidents)}</a>`
        : countText(incidents),
    ),
  trust: (entry) =>
    html`<td>${isTrusted(entry) ? standingWords[entry.trust] : html`<strong class="warn">${standingWords[entry.trust]}</strong>`}</td>`,
};

const numberCell = (figure: Html | string) => html`<td class="number">${figure}</td>`;

function row(entry: FleetEntry, at: string, viewer: PageViewer): Html {
  const context = { at, isInside: mayDo(viewer.actor, "fleet-read") };
  const [, ...others] = pageColumns;
  const cellOf = ({ key, isNumber, value }: FleetColumn) => {
    const text = String(value(entry) ?? "–");
    return cells[key]?.(entry, context) ?? (isNumber ? numberCell(text) : html`<td>${text}</td>`);
  };
  return html`<tr><th scope="row">${crawlerLink(entry.name)}<span class="small">${entry.place ?? "place not stated"} ${country(entry.country)}</span></th>
${others.map(cellOf)}</tr>`;
}

/** The badge, since when, why; last words of one that is away are for operators. */
function stateCell(entry: FleetEntry, at: string, isInside: boolean): Html {
  const { state, since, why } = stateWords(entry);
  const { lastEnd } = entry.identity;
  const words =
    isInside && state === "offline" && lastEnd !== null
      ? html`<span class="small">last message: ${lastEnd.reason}</span>`
      : nothing;
  return html`${stateBadge(stateNames[state])}${since === null ? nothing : html` <span class="since">${ago(since, at)}</span>`}${why === null ? nothing : html`<span class="small">${why}</span>`}${words}`;
}

function openInvitations(invitations: readonly InvitationRecord[], viewer: PageViewer): Html {
  const open = invitations.filter(({ state }) => state === "open" || state === "joining");
  return html`<section><h2>Open invitations</h2>${
    open.length === 0
      ? empty("No open invitations.", html`<a href="/fleet/invitations">All invitations</a>`)
      : html`${invitationTable(open, viewer)}<p class="small"><a href="/fleet/invitations">All invitations</a></p>`
  }</section>`;
}

// Crawlers in a table, on the overview: those that need a look first, then those with the most subnets.

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
